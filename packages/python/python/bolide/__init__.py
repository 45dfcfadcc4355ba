"""Bolide for tests: a database server that starts in milliseconds, and a clock that the test moves.

    import bolide

    with bolide.server() as db:
        client = CosmosClient(db.endpoint, db.key)
        ...
        db.clock.advance(days=30)

A server keeps its data in memory, listens on free ports of 127.0.0.1 and has a virtual clock, unless `server` is told otherwise. It ends with
the `with` block, and never outlives the process that started it. The package needs nothing but Python, and works with every client of Cosmos
DB for NoSQL and of MongoDB.
"""

from ._binary import find_binary
from ._clock import Clock
from ._errors import BolideError, RequestError, StartError
from ._server import Server, server

__all__ = ["BolideError", "Clock", "RequestError", "Server", "StartError", "find_binary", "server"]
