"""The pytest plugin: fixtures with a server.

    def test_tokens_expire(bolide, bolide_clock):
        client = CosmosClient(bolide.endpoint, bolide.key)
        ...
        bolide_clock.advance(days=30)

Pytest loads it by itself when the package is installed. The server starts with the first test that uses it, so it costs nothing otherwise.
"""

from __future__ import annotations

from typing import Iterator

import pytest

from ._clock import Clock
from ._server import Server, server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the option of the server's further arguments."""
    parser.addini("bolide_args", "further options of the Bolide server, such as --enforce-throughput", "args", [])


@pytest.fixture(scope="session")
def bolide_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """A server of the whole session, in memory and with a virtual clock. With pytest-xdist each worker has one of its own."""
    with server(args=pytestconfig.getini("bolide_args")) as running:
        yield running


@pytest.fixture
def bolide(bolide_server: Server) -> Server:
    """The server of the session without the databases of earlier tests."""
    bolide_server.reset()
    return bolide_server


@pytest.fixture
def bolide_clock(bolide: Server) -> Clock:
    """The clock of `bolide`. At which time a test begins is not fixed."""
    return bolide.clock
