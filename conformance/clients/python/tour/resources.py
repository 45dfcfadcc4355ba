"""Account, databases, containers and throughput."""

from azure.cosmos import PartitionKey, ThroughputProperties

from checks import equal, refused, rows, settle
from tour.world import FIVE_RANGES, unique


def declare(tour):
    """Adds the checks of this part to the tour."""

    @tour.check
    async def account_names_a_location_and_session_consistency(world):
        account = await settle(world.read_account(world.client))
        equal(account.ConsistencyPolicy["defaultConsistencyLevel"], "Session")
        equal([bool(place["name"]) for place in account.WritableLocations], [True], "named writable locations")

    @tour.check
    async def wrong_key_is_refused_with_401(world):
        wrong_key = "d3JvbmcgYWNjb3VudCBrZXk="
        await refused(401, lambda: world.connect(world.endpoint, wrong_key))

    @tour.check
    async def database_can_be_read_listed_queried_and_deleted(world):
        name = unique("shelf")
        database = await settle(world.client.create_database(name))
        equal((await settle(database.read()))["id"], name)
        listed = [entry["id"] for entry in await rows(world.client.list_databases())]
        equal(listed.count(name), 1, "listed")
        found = await rows(world.client.query_databases(
            "SELECT * FROM root r WHERE r.id = @id", parameters=[{"name": "@id", "value": name}]))
        equal([entry["id"] for entry in found], [name], "queried")
        await settle(world.client.delete_database(name))
        await refused(404, database.read)

    @tour.check
    async def second_database_of_the_same_name_is_refused_with_409(world):
        await refused(409, lambda: world.client.create_database(world.database.id))

    @tour.check
    async def create_if_not_exists_finds_the_existing_database(world):
        again = await settle(world.client.create_database_if_not_exists(world.database.id))
        equal(again.id, world.database.id)

    @tour.check
    async def missing_database_and_container_are_404(world):
        await refused(404, world.client.get_database_client("nowhere").read)
        await refused(404, world.database.get_container_client("nowhere").read)

    @tour.check
    async def container_echoes_its_partition_key_and_default_ttl(world):
        container = await world.container("echo", default_ttl=3600)
        properties = await settle(container.read())
        equal(properties["partitionKey"], {"paths": ["/pk"], "kind": "Hash", "version": 2})
        equal(properties["defaultTtl"], 3600)
        equal(properties["indexingPolicy"]["includedPaths"][0]["path"], "/*")

    @tour.check
    async def replacing_a_container_changes_and_removes_its_default_ttl(world):
        container = await world.container("replace", default_ttl=60)
        key = PartitionKey(path="/pk")
        await settle(world.database.replace_container(container, key, default_ttl=-1))
        equal((await settle(container.read()))["defaultTtl"], -1)
        await settle(world.database.replace_container(container, key))
        equal("defaultTtl" in await settle(container.read()), False, "defaultTtl is still there")

    @tour.check
    async def container_can_be_listed_queried_and_deleted(world):
        container = await world.container("kept only briefly")
        listed = [entry["id"] for entry in await rows(world.database.list_containers())]
        equal(listed.count(container.id), 1, "listed")
        found = await rows(world.database.query_containers(
            "SELECT * FROM root r WHERE r.id = @id", parameters=[{"name": "@id", "value": container.id}]))
        equal([entry["id"] for entry in found], [container.id], "queried")
        await settle(world.database.delete_container(container))
        await refused(404, container.read)

    @tour.check
    async def second_container_of_the_same_name_is_refused_with_409(world):
        container = await world.container("twice")
        await refused(409, lambda: world.database.create_container(container.id, PartitionKey(path="/pk")))

    @tour.check
    async def default_ttl_of_zero_or_below_minus_one_is_refused_with_400(world):
        for value in (0, -2):
            await refused(400, lambda: world.container("bad-ttl", default_ttl=value))

    @tour.check
    async def manual_throughput_can_be_read_and_replaced(world):
        container = await world.container("manual", offer_throughput=500)
        equal((await settle(container.get_throughput())).offer_throughput, 500)
        await settle(container.replace_throughput(900))
        equal((await settle(container.get_throughput())).offer_throughput, 900)

    @tour.check
    async def autoscale_throughput_keeps_its_maximum(world):
        autoscale = ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=0)
        container = await world.container("autoscale", offer_throughput=autoscale)
        equal((await settle(container.get_throughput())).auto_scale_max_throughput, 4000)
        higher = ThroughputProperties(auto_scale_max_throughput=6000, auto_scale_increment_percent=0)
        await settle(container.replace_throughput(higher))
        equal((await settle(container.get_throughput())).auto_scale_max_throughput, 6000)

    @tour.check
    async def throughput_decides_the_number_of_ranges(world):
        narrow = await world.container("narrow")
        wide = await world.container("wide", offer_throughput=FIVE_RANGES)
        equal(len(await feed_ranges(narrow)), 1, "ranges of the standard throughput")
        equal(len(await feed_ranges(wide)), 5, f"ranges of {FIVE_RANGES} RU/s")


async def feed_ranges(container):
    """Returns the feed ranges, which the asynchronous client hands out as an async iterable."""
    ranges = container.read_feed_ranges()
    return [entry async for entry in ranges] if hasattr(ranges, "__aiter__") else list(await settle(ranges))
