"""The tour with the synchronous client: `python tour_sync.py --endpoint URL --key KEY`."""

import asyncio
import sys

import urllib3
from azure.cosmos import CosmosClient

from checks import refused, rows
from tour import whole_tour
from tour.world import FIVE_RANGES, World, arguments

CROSS_PARTITION = {"enable_cross_partition_query": True}


async def connect(endpoint, key):
    """Returns a synchronous client; its constructor reads the account, so a wrong key fails here."""
    return CosmosClient(endpoint, key)


async def main():
    """Runs the tour and returns how many checks failed."""
    options = arguments()
    # The SDK does not verify certificates of loopback addresses, and urllib3 would warn at every request.
    urllib3.disable_warnings()
    read_account = lambda client: client.get_database_account()
    tour = whole_tour()
    tour.check(cross_partition_query_without_the_flag_is_refused_with_400)
    async with World(options.endpoint, options.key, connect, read_account, CROSS_PARTITION) as world:
        return await tour.run(world)


async def cross_partition_query_without_the_flag_is_refused_with_400(world):
    """Only this client can leave the flag out."""
    for throughput in (400, FIVE_RANGES):
        container = await world.container("flag", offer_throughput=throughput)
        await refused(400, lambda: rows(container.query_items("SELECT * FROM c")))


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
