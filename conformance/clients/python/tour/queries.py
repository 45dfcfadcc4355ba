"""Queries: each one on a container of one range and on one of five, in pages of one, of three and of any size."""

from checks import equal, first_page, pages, refused, rows
from tour.world import DATA, FIVE_RANGES, add

ITEMS = DATA["items"]
PAGE_SIZES = (1, 3, None)


def declare(tour):
    """Adds the checks of this part to the tour."""
    stores = {}

    @tour.check
    async def items_are_stored_on_one_range_and_on_five(world):
        stores["one range"] = await world.container("one range")
        stores["five ranges"] = await world.container("five ranges", offer_throughput=FIVE_RANGES)
        for container in stores.values():
            await add(container, *ITEMS)

    for where in ("one range", "five ranges"):
        for query in DATA["queries"]:
            tour.check(query_check(stores, where, query))

    @tour.check
    async def query_with_a_partition_key_sees_only_its_items(world):
        for container in stores.values():
            query = "SELECT VALUE c.n FROM c WHERE c.n > 5 ORDER BY c.n"
            found = await rows(container.query_items(query, partition_key="p3"))
            equal(found, [13, 21])

    @tour.check
    async def key_pinned_by_the_filter_needs_no_cross_partition_flag(world):
        for container in stores.values():
            query, values = "SELECT VALUE c.id FROM c WHERE c.pk = @pk", [{"name": "@pk", "value": "p3"}]
            found = await rows(container.query_items(query, parameters=values))
            equal(sorted(found), ["item 03", "item 11", "item 19"])

    @tour.check
    async def continuation_resumes_with_the_rest(world):
        query = lambda: stores["one range"].query_items(
            "SELECT VALUE c.id FROM c", partition_key="p1", max_item_count=1)
        page, token = await first_page(query())
        rest = [row for page in await pages(query(), token) for row in page]
        equal((len(page), sorted(page + rest)), (1, ["item 01", "item 09", "item 17"]))

    @tour.check
    async def read_feed_returns_every_item_in_pages(world):
        for container in stores.values():
            found = [item["id"] for page in await pages(container.read_all_items(max_item_count=7)) for item in page]
            equal(sorted(found), [item["id"] for item in ITEMS])

    @tour.check
    async def malformed_query_is_refused_with_400(world):
        for container in stores.values():
            await refused(400, lambda: rows(container.query_items("SELEKT *", **world.everywhere)))


def query_check(stores, where, query):
    """Makes the check that one query returns the expected rows whatever the page size."""

    async def check(world):
        for size in PAGE_SIZES:
            pager = stores[where].query_items(
                query["text"],
                parameters=[{"name": name, "value": value} for name, value in query["parameters"].items()],
                max_item_count=size,
                **world.everywhere,
            )
            found = [row for page in await pages(pager) for row in page]
            expected = query["rows"]
            if not query["ordered"]:
                found, expected = sorted(found, key=repr), sorted(expected, key=repr)
            equal(found, expected, f"rows in pages of {size}")

    check.__name__ = f"query {query['name']} on {where}"
    return check
