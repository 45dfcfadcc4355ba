"""What the pytest plugin promises: an empty server for each test, started with the project's options."""

import subprocess
import sys
from datetime import timedelta

import pytest
from azure.cosmos import CosmosClient, PartitionKey

DAY = 24 * 60 * 60


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_finds_no_databases(bolide, bolide_clock, turn):
    client = CosmosClient.from_connection_string(bolide.connection_string)
    assert list(client.list_databases()) == []
    tokens = client.create_database("retention").create_container("tokens", PartitionKey("/user"), default_ttl=30 * DAY)
    tokens.create_item({"id": "t1", "user": "ada"})
    bolide_clock.advance(timedelta(days=30))
    assert list(tokens.query_items("SELECT * FROM c", partition_key="ada")) == []
    assert bolide.purge("retention", "tokens") == 1


def test_the_server_of_the_session_is_the_same_for_all(bolide_server, bolide):
    assert bolide is bolide_server


def test_the_server_starts_with_the_options_of_the_project(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nbolide_args = --no-such-option\n")
    (tmp_path / "test_it.py").write_text("def test_it(bolide): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "--no-such-option" in done.stdout
