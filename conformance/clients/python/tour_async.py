"""The tour with the asynchronous client: `python tour_async.py --endpoint URL --key KEY`."""

import asyncio
import sys

from azure.cosmos.aio import CosmosClient

from tour import whole_tour
from tour.world import World, arguments


async def connect(endpoint, key):
    """Returns an entered asynchronous client; entering reads the account, so a wrong key fails here."""
    client = CosmosClient(endpoint, key)
    try:
        return await client.__aenter__()
    except BaseException:
        await client.close()
        raise


async def main():
    """Runs the tour and returns how many checks failed."""
    options = arguments()
    read_account = lambda client: client._get_database_account()
    async with World(options.endpoint, options.key, connect, read_account, everywhere={}) as world:
        return await whole_tour().run(world)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
