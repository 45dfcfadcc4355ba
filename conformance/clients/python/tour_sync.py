"""The tour with the synchronous client: `python tour_sync.py --endpoint URL --key KEY`."""

import asyncio
import sys

import urllib3
from azure.cosmos import CosmosClient

from tour import whole_tour
from tour.world import World, arguments


async def connect(endpoint, key):
    """Returns a synchronous client; its constructor reads the account, so a wrong key fails here."""
    return CosmosClient(endpoint, key)


async def main():
    """Runs the tour and returns how many checks failed."""
    options = arguments()
    # The SDK does not verify certificates of loopback addresses, and urllib3 would warn at every request.
    urllib3.disable_warnings()
    read_account = lambda client: client.get_database_account()
    async with World(options.endpoint, options.key, connect, read_account) as world:
        return await whole_tour().run(world)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
