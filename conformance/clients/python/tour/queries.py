"""Queries: each one on a container of one range and on one of five, in pages of one, of three and of any size.

The expected rows are computed here from the same forty bodies that were stored.
"""

from checks import equal, pages, refused, rows
from tour.world import FIVE_RANGES, add

BODIES = [
    {
        "id": f"item {n:02}",
        "pk": f"p{n % 12}",
        "n": n * 37 % 40,
        "kind": ("bolt", "nut", "washer")[n % 3],
        "size": {"mm": n / 4},
        "used": n % 2 == 0,
    }
    for n in range(40)
]
BY_N = sorted(BODIES, key=lambda body: body["n"])

# Name, query, parameters, expected rows, and whether their order counts.
QUERIES = [
    ("every item", "SELECT VALUE c.id FROM c", {}, [b["id"] for b in BODIES], False),
    (
        "filter with parameters",
        "SELECT VALUE c.id FROM c WHERE c.n >= @low AND c.n < @high",
        {"@low": 10, "@high": 20},
        [b["id"] for b in BODIES if 10 <= b["n"] < 20],
        False,
    ),
    (
        "in, between, not and or",
        "SELECT VALUE c.id FROM c WHERE (c.kind IN ('nut', 'washer') OR c.n BETWEEN 1 AND 3) AND NOT c.used",
        {},
        [b["id"] for b in BODIES if (b["kind"] in ("nut", "washer") or 1 <= b["n"] <= 3) and not b["used"]],
        False,
    ),
    (
        "projection with aliases and nested paths",
        "SELECT c.id, c.size.mm AS millimetres FROM c WHERE c.size.mm * 2 > 15",
        {},
        [{"id": b["id"], "millimetres": b["size"]["mm"]} for b in BODIES if b["size"]["mm"] * 2 > 15],
        False,
    ),
    ("order by", "SELECT VALUE c.n FROM c ORDER BY c.n", {}, [b["n"] for b in BY_N], True),
    (
        "order by descending with a filter",
        "SELECT c.id, c.n FROM c WHERE c.kind = 'nut' ORDER BY c.n DESC",
        {},
        [{"id": b["id"], "n": b["n"]} for b in reversed(BY_N) if b["kind"] == "nut"],
        True,
    ),
    ("top", "SELECT TOP 7 VALUE c.n FROM c ORDER BY c.n", {}, [b["n"] for b in BY_N[:7]], True),
    (
        "offset and limit",
        "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 10",
        {},
        [b["n"] for b in BY_N[5:15]],
        True,
    ),
    ("count", "SELECT VALUE COUNT(1) FROM c", {}, [40], True),
    ("sum", "SELECT VALUE SUM(c.n) FROM c", {}, [sum(range(40))], True),
    ("min", "SELECT VALUE MIN(c.n) FROM c WHERE c.used", {}, [min(b["n"] for b in BODIES if b["used"])], True),
    ("max", "SELECT VALUE MAX(c.size.mm) FROM c", {}, [39 / 4], True),
    ("avg", "SELECT VALUE AVG(c.n) FROM c", {}, [19.5], True),
]
PAGE_SIZES = (1, 3, None)


def declare(tour):
    """Adds the checks of this part to the tour."""
    stores = {}

    @tour.check
    async def forty_items_are_stored_on_one_range_and_on_five(world):
        stores["one range"] = await world.container("one range")
        stores["five ranges"] = await world.container("five ranges", offer_throughput=FIVE_RANGES)
        for container in stores.values():
            await add(container, *BODIES)

    for where in ("one range", "five ranges"):
        for name, text, parameters, expected, ordered in QUERIES:
            tour.check(query_check(stores, where, name, text, parameters, expected, ordered))

    @tour.check
    async def query_with_a_partition_key_sees_only_its_items(world):
        for container in stores.values():
            query = "SELECT VALUE c.n FROM c WHERE c.n > 5 ORDER BY c.n"
            found = await rows(container.query_items(query, partition_key="p3"))
            equal(found, [b["n"] for b in BY_N if b["pk"] == "p3" and b["n"] > 5])

    @tour.check
    async def key_pinned_by_the_filter_needs_no_cross_partition_flag(world):
        for container in stores.values():
            query, values = "SELECT VALUE c.id FROM c WHERE c.pk = @pk", [{"name": "@pk", "value": "p3"}]
            found = await rows(container.query_items(query, parameters=values))
            equal(sorted(found), sorted(b["id"] for b in BODIES if b["pk"] == "p3"))

    @tour.check
    async def cross_partition_query_without_the_flag_is_refused_with_400(world):
        for container in stores.values():
            await refused(400, lambda: rows(container.query_items("SELECT * FROM c")))

    @tour.check
    async def continuation_resumes_with_the_rest(world):
        query = lambda: stores["one range"].query_items(
            "SELECT VALUE c.id FROM c", partition_key="p1", max_item_count=1)
        first = query().by_page()
        page = [row async for row in await first.__anext__()] if hasattr(first, "__anext__") else list(next(first))
        resumed = query().by_page(first.continuation_token)
        rest = [row async for part in resumed async for row in part] if hasattr(resumed, "__anext__") else [
            row for part in resumed for row in part]
        equal(sorted(page + rest), sorted(b["id"] for b in BODIES if b["pk"] == "p1"))

    @tour.check
    async def read_feed_returns_every_item_in_pages(world):
        for container in stores.values():
            found = [item["id"] for page in await pages(container.read_all_items(max_item_count=7)) for item in page]
            equal(sorted(found), [b["id"] for b in BODIES])

    @tour.check
    async def malformed_query_is_refused_with_400(world):
        for container in stores.values():
            await refused(400, lambda: rows(container.query_items("SELEKT *", enable_cross_partition_query=True)))


def query_check(stores, where, name, text, parameters, expected, ordered):
    """Makes the check that one query returns the expected rows whatever the page size."""

    async def check(_world):
        for size in PAGE_SIZES:
            pager = stores[where].query_items(
                text,
                parameters=[{"name": key, "value": value} for key, value in parameters.items()],
                enable_cross_partition_query=True,
                max_item_count=size,
            )
            found = [row for page in await pages(pager) for row in page]
            what = f"rows in pages of {size}"
            equal(found if ordered else sorted(found, key=repr), expected if ordered else sorted(expected, key=repr), what)

    check.__name__ = f"query {name} on {where}"
    return check
