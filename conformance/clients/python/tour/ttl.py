"""Time to live: items expire at their exact second for every kind of request.

The server's clock is virtual, so a test of thirty days takes milliseconds. An item's second is `_ts` plus its time to
live; it is live at the last millisecond before that second and gone from the second on.
"""

from azure.cosmos import PartitionKey

from checks import equal, refused, rows, settle
from tour.world import FIVE_RANGES, add

THIRTY_DAYS = 30 * 24 * 3600


def declare(tour):
    """Adds the checks of this part to the tour."""

    @tour.check
    async def item_ends_at_its_exact_second_for_every_kind_of_request(world):
        container = await world.container("ends", default_ttl=100)
        [item] = await add(container, {"id": "a", "pk": "p", "n": 1})
        world.clock.set_ms((item["_ts"] + 100) * 1000 - 1)
        equal((await settle(container.read_item("a", "p")))["id"], "a")
        equal(await seen(world, container), (["a"], [1], ["a"]), "before its second")
        world.clock.set_seconds(item["_ts"] + 100)
        for call in (
            lambda: container.read_item("a", "p"),
            lambda: container.replace_item("a", {"id": "a", "pk": "p"}),
            lambda: container.patch_item("a", "p", [{"op": "set", "path": "/n", "value": 2}]),
            lambda: container.delete_item("a", "p"),
        ):
            await refused(404, call)
        equal(await seen(world, container), ([], [0], []), "at its second")

    @tour.check
    async def own_ttl_of_an_item_outweighs_the_default(world):
        container = await world.container("own", default_ttl=100)
        first, *_ = await add(
            container,
            {"id": "shorter", "pk": "p", "ttl": 10},
            {"id": "default", "pk": "p"},
            {"id": "longer", "pk": "p", "ttl": THIRTY_DAYS},
            {"id": "never", "pk": "p", "ttl": -1},
        )
        born = first["_ts"]
        for age, alive in (
            (9, ["default", "longer", "never", "shorter"]),
            (10, ["default", "longer", "never"]),
            (100, ["longer", "never"]),
            (THIRTY_DAYS - 1, ["longer", "never"]),
            (THIRTY_DAYS, ["never"]),
        ):
            world.clock.set_seconds(born + age)
            equal((await seen(world, container))[0], alive, f"after {age} s")

    @tour.check
    async def own_ttl_does_nothing_while_the_container_has_none(world):
        container = await world.container("inert")
        [item] = await add(container, {"id": "a", "pk": "p", "ttl": 5})
        world.clock.set_seconds(item["_ts"] + 1000)
        equal((await settle(container.read_item("a", "p")))["ttl"], 5)

    @tour.check
    async def write_renews_an_item_and_a_read_does_not(world):
        container = await world.container("renew", default_ttl=100)
        first, _ = await add(container, {"id": "written", "pk": "p"}, {"id": "read", "pk": "p"})
        born = first["_ts"]
        world.clock.set_seconds(born + 60)
        await settle(container.replace_item("written", {"id": "written", "pk": "p"}))
        await settle(container.read_item("read", "p"))
        world.clock.set_seconds(born + 100)
        equal((await seen(world, container))[0], ["written"])
        world.clock.set_seconds(born + 160)
        equal((await seen(world, container))[0], [])

    @tour.check
    async def id_of_an_expired_item_is_free(world):
        container = await world.container("free", default_ttl=10)
        first, _ = await add(container, {"id": "a", "pk": "p", "v": 1}, {"id": "b", "pk": "p", "v": 1})
        world.clock.set_seconds(first["_ts"] + 10)
        await add(container, {"id": "a", "pk": "p", "v": 2})
        await settle(container.upsert_item({"id": "b", "pk": "p", "v": 2}))
        equal((await settle(container.read_item("b", "p")))["v"], 2)

    @tour.check
    async def shorter_default_ends_older_items_at_once_and_switching_off_revives_none(world):
        container = await world.container("change", default_ttl=1000)
        [item] = await add(container, {"id": "old", "pk": "p"})
        world.clock.set_seconds(item["_ts"] + 50)
        await add(container, {"id": "new", "pk": "p"})
        key = PartitionKey(path="/pk")
        await settle(world.database.replace_container(container, key, default_ttl=50))
        equal((await seen(world, container))[0], ["new"], "under the shorter default")
        await settle(world.database.replace_container(container, key))
        equal((await seen(world, container))[0], ["new"], "without a default")

    @tour.check
    async def items_end_on_every_range_at_the_same_second(world):
        container = await world.container("wide end", default_ttl=100, offer_throughput=FIVE_RANGES)
        stored = await add(container, *({"id": f"i{n:02}", "pk": f"p{n}", "n": n} for n in range(20)))
        equal(len({item["_ts"] for item in stored}), 1, "seconds in which the items were written")
        world.clock.set_ms((stored[0]["_ts"] + 100) * 1000 - 1)
        equal((await seen(world, container))[1], [20], "count before")
        world.clock.set_seconds(stored[0]["_ts"] + 100)
        equal(await seen(world, container), ([], [0], []), "at the second")

    @tour.check
    async def invalid_ttl_of_an_item_is_refused_with_400(world):
        container = await world.container("invalid", default_ttl=-1)
        for value in (0, -2, None, "10", 1.5, True, 2**31):
            await refused(400, lambda: container.create_item({"id": "a", "pk": "p", "ttl": value}))


async def seen(world, container):
    """Returns what a query, a count and the read feed show: sorted ids, the count's rows, sorted ids."""
    queried = await rows(container.query_items("SELECT VALUE c.id FROM c", **world.everywhere))
    counted = await rows(container.query_items("SELECT VALUE COUNT(1) FROM c", **world.everywhere))
    feed = await rows(container.read_all_items())
    return sorted(queried), counted, sorted(item["id"] for item in feed)
