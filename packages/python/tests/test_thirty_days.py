"""The examples: thirty days pass in a test, with the official clients."""

from datetime import timedelta

import bolide as bolide_package
import pytest
from azure.cosmos import CosmosClient, PartitionKey, exceptions
from pymongo import MongoClient

DAY = 24 * 60 * 60


def test_item_lives_for_thirty_days():
    with bolide_package.server() as db:
        database = CosmosClient(db.endpoint, db.key).create_database("retention")
        tokens = database.create_container("tokens", PartitionKey("/user"), default_ttl=-1)
        tokens.create_item({"id": "t1", "user": "ada", "ttl": 30 * DAY})

        db.clock.advance(days=29)
        assert tokens.read_item("t1", "ada")["id"] == "t1"
        db.clock.advance(days=1)
        with pytest.raises(exceptions.CosmosResourceNotFoundError):
            tokens.read_item("t1", "ada")


def test_item_lives_for_thirty_days_with_the_fixtures(bolide, bolide_clock):
    client = CosmosClient.from_connection_string(bolide.connection_string)
    tokens = client.create_database("retention").create_container("tokens", PartitionKey("/user"), default_ttl=30 * DAY)
    tokens.create_item({"id": "t1", "user": "ada"})

    bolide_clock.advance(days=29)
    assert tokens.read_item("t1", "ada")["id"] == "t1"
    bolide_clock.advance(timedelta(days=1))
    assert list(tokens.query_items("SELECT * FROM c", partition_key="ada")) == []
    assert bolide.purge("retention", "tokens") == 1


def test_document_lives_for_thirty_days(bolide, bolide_clock):
    with MongoClient(bolide.mongo_uri) as client:
        tokens = client.retention.tokens
        tokens.create_index("createdAt", expireAfterSeconds=30 * DAY)
        tokens.insert_one({"_id": "t1", "user": "ada", "createdAt": bolide_clock.now()})

        bolide_clock.advance(days=29)
        assert tokens.find_one({"user": "ada"})["_id"] == "t1"
        bolide_clock.advance(days=1)
        assert tokens.find_one({"user": "ada"}) is None
