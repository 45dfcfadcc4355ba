"""The shared state of the checks: a synchronous or asynchronous client, a database, the clock."""

import argparse
import json
import uuid
from pathlib import Path

from azure.cosmos import PartitionKey

from checks import settle
from clock import Clock

# What the tours of all languages store and expect.
DATA = json.loads((Path(__file__).resolve().parent.parent.parent / "tour_data.json").read_text())

# Enough for five partition key ranges; the default of 400 gives one.
FIVE_RANGES = 30000


class World:
    """A connected client and the tour's database.

    `connect` is how a flavour makes a client: an async function from an endpoint and a key to a client that works.
    `read_account` reads the account's properties with such a client. `everywhere` are the arguments of a query over
    several partitions: the synchronous client wants a flag for it, the asynchronous client refuses that flag.
    """

    def __init__(self, endpoint, key, connect, read_account, everywhere):
        self.endpoint = endpoint
        self.key = key
        self.connect = connect
        self.read_account = read_account
        self.everywhere = everywhere
        self.clock = Clock(endpoint, key)
        self.client = None
        self.database = None

    async def __aenter__(self):
        self.client = await self.connect(self.endpoint, self.key)
        self.database = await settle(self.client.create_database(unique("tour")))
        return self

    async def __aexit__(self, *_error):
        await settle(self.client.delete_database(self.database.id))
        await settle(self.client.close())

    async def container(self, label, paths="/pk", **settings):
        """Creates a container of the tour's database; `paths` is one path or a list for a hierarchical key."""
        kind = "Hash" if isinstance(paths, str) else "MultiHash"
        key = PartitionKey(path=paths, kind=kind)
        return await settle(self.database.create_container(unique(label), key, **settings))


def unique(label):
    """Returns an id that no other check and no other run uses."""
    return f"{label}-{uuid.uuid4().hex[:12]}"


async def add(container, *bodies):
    """Creates the items in this order and returns them as the server stored them."""
    return [await settle(container.create_item(body)) for body in bodies]


def arguments():
    """Returns the endpoint and the account key from the command line."""
    parser = argparse.ArgumentParser(description="Tours a Bolide server that runs with --virtual-clock.")
    parser.add_argument("--endpoint", required=True, help="base URL, for example http://127.0.0.1:8081/")
    parser.add_argument("--key", required=True, help="the account key")
    return parser.parse_args()
