"""Items: writes, reads, conditions, patches, ids, hierarchical keys, sessions, read many, the change feed."""

from azure.core import MatchConditions

from checks import equal, refused, rows, settle
from tour.world import DATA, FIVE_RANGES, add, unique


def declare(tour):
    """Adds the checks of this part to the tour."""

    @tour.check
    async def created_item_is_read_back_with_its_system_properties(world):
        container = await world.container("items")
        body = {"id": "a", "pk": "p", "text": "grüße", "whole": 7, "part": 0.5, "none": None, "nested": {"list": [1, "x"]}}
        created = await settle(container.create_item(body))
        read = await settle(container.read_item("a", "p"))
        equal(read, created)
        equal({name: read[name] for name in body}, body)
        for name in ("_rid", "_self", "_etag", "_ts"):
            equal(name in read, True, name)

    @tour.check
    async def second_item_of_the_same_id_is_refused_with_409(world):
        container = await world.container("items")
        await add(container, {"id": "a", "pk": "p"})
        await refused(409, lambda: container.create_item({"id": "a", "pk": "p"}))
        await add(container, {"id": "a", "pk": "another partition"})

    @tour.check
    async def item_without_an_id_is_refused_with_400(world):
        container = await world.container("items")
        await refused(400, lambda: container.create_item({"pk": "p"}))

    @tour.check
    async def upsert_creates_and_then_replaces(world):
        container = await world.container("items")
        await settle(container.upsert_item({"id": "a", "pk": "p", "v": 1}))
        await settle(container.upsert_item({"id": "a", "pk": "p", "v": 2}))
        equal((await settle(container.read_item("a", "p")))["v"], 2)

    @tour.check
    async def replaced_item_has_a_new_etag_and_the_new_body(world):
        container = await world.container("items")
        [created] = await add(container, {"id": "a", "pk": "p", "old": True})
        replaced = await settle(container.replace_item("a", {"id": "a", "pk": "p", "new": True}))
        equal((replaced["new"], "old" in replaced), (True, False))
        equal(replaced["_etag"] != created["_etag"], True, "new etag")
        await refused(404, lambda: container.replace_item("b", {"id": "b", "pk": "p"}))

    @tour.check
    async def item_handed_over_as_a_dictionary_is_found_by_its_self_link(world):
        container = await world.container("items")
        [created] = await add(container, {"id": "a", "pk": "p"})
        equal((await settle(container.read_item(created, "p")))["id"], "a")
        await settle(container.delete_item(created, "p"))
        await refused(404, lambda: container.read_item("a", "p"))

    @tour.check
    async def stale_etag_is_refused_with_412_and_changes_nothing(world):
        container = await world.container("items")
        [created] = await add(container, {"id": "a", "pk": "p", "v": 1})
        stale = {"etag": created["_etag"], "match_condition": MatchConditions.IfNotModified}
        await settle(container.replace_item("a", {"id": "a", "pk": "p", "v": 2}, **stale))
        for write in (
            lambda: container.replace_item("a", {"id": "a", "pk": "p", "v": 3}, **stale),
            lambda: container.upsert_item({"id": "a", "pk": "p", "v": 3}, **stale),
            lambda: container.delete_item("a", "p", **stale),
        ):
            await refused(412, write)
        equal((await settle(container.read_item("a", "p")))["v"], 2)

    @tour.check
    async def read_of_an_unchanged_item_answers_304_without_a_body(world):
        container = await world.container("items")
        [created] = await add(container, {"id": "a", "pk": "p"})
        unless = {"match_condition": MatchConditions.IfModified}
        equal(await settle(container.read_item("a", "p", etag=created["_etag"], **unless)), {})
        equal((await settle(container.read_item("a", "p", etag='"another"', **unless)))["id"], "a")

    @tour.check
    async def no_response_on_write_returns_headers_only(world):
        container = await world.container("items")
        answer = await settle(container.create_item({"id": "a", "pk": "p"}, no_response=True))
        equal(dict(answer), {})
        read = await settle(container.read_item("a", "p"))
        equal(answer.get_response_headers()["etag"], read["_etag"])

    @tour.check
    async def patch_applies_every_operation_in_order(world):
        container = await world.container("items")
        await add(container, {"id": "a", "pk": "p", "keep": 1, "gone": 1, "n": 3, "list": ["x"], "from": "here"})
        patched = await settle(container.patch_item("a", "p", [
            {"op": "add", "path": "/list/-", "value": "y"},
            {"op": "set", "path": "/fresh", "value": {"deep": True}},
            {"op": "replace", "path": "/keep", "value": 2},
            {"op": "remove", "path": "/gone"},
            {"op": "incr", "path": "/n", "value": 4},
            {"op": "move", "from": "/from", "path": "/to"},
        ]))
        user = {name: value for name, value in patched.items() if not name.startswith("_")}
        equal(user, {"id": "a", "pk": "p", "keep": 2, "n": 7, "list": ["x", "y"], "fresh": {"deep": True}, "to": "here"})

    @tour.check
    async def patch_condition_decides_whether_anything_changes(world):
        container = await world.container("items")
        await add(container, {"id": "a", "pk": "p", "n": 1})
        add_one = [{"op": "incr", "path": "/n", "value": 1}]
        when = lambda predicate: container.patch_item("a", "p", add_one, filter_predicate=predicate)
        await refused(412, lambda: when("FROM c WHERE c.n = 5"))
        equal((await settle(when("FROM c WHERE c.n = 1")))["n"], 2)

    @tour.check
    async def patch_of_a_missing_property_is_refused_with_400(world):
        container = await world.container("items")
        await add(container, {"id": "a", "pk": "p"})
        for operation in ({"op": "replace", "path": "/no", "value": 1}, {"op": "remove", "path": "/no"}):
            await refused(400, lambda: container.patch_item("a", "p", [operation]))

    @tour.check
    async def deleted_item_is_404_and_its_id_is_free(world):
        container = await world.container("items")
        await add(container, {"id": "a", "pk": "p"})
        await settle(container.delete_item("a", "p"))
        for call in (lambda: container.read_item("a", "p"), lambda: container.delete_item("a", "p")):
            await refused(404, call)
        await add(container, {"id": "a", "pk": "p"})

    @tour.check
    async def unusual_ids_and_partition_keys_are_kept_exactly(world):
        container = await world.container("unusual ids")
        for name in DATA["unusualIds"]:
            await add(container, {"id": name, "pk": name})
            equal((await settle(container.read_item(name, name)))["id"], name)
            await settle(container.replace_item(name, {"id": name, "pk": name, "again": True}))
            await settle(container.delete_item(name, name))
            await refused(404, lambda: container.read_item(name, name))

    @tour.check
    async def partition_keys_of_every_type_are_kept_apart(world):
        container = await world.container("key types", offer_throughput=FIVE_RANGES)
        for value in ("1", 1, 1.5, True, False, None):
            await add(container, {"id": "same", "pk": value})
        for value in ("1", 1, 1.5, True, False):
            found = await settle(container.read_item("same", value))
            equal((type(found["pk"]), found["pk"]), (type(value), value))

    @tour.check
    async def hierarchical_key_finds_items_by_the_full_key_and_queries_by_a_prefix(world):
        container = await world.container("tree", paths=["/tenant", "/user", "/session"], offer_throughput=FIVE_RANGES)
        for tenant in ("t1", "t2"):
            for user in ("u1", "u2"):
                for session in ("s1", "s2"):
                    body = {"id": f"{tenant}{user}{session}", "tenant": tenant, "user": user, "session": session}
                    await add(container, body)
        equal((await settle(container.read_item("t1u2s1", ["t1", "u2", "s1"])))["user"], "u2")
        await refused(404, lambda: container.read_item("t1u2s1", ["t1", "u1", "s1"]))
        for prefix, expected in ((["t1"], 4), (["t1", "u2"], 2), (["t1", "u2", "s2"], 1)):
            found = await rows(container.query_items("SELECT * FROM c", partition_key=prefix))
            equal(len(found), expected, f"items under {prefix}")

    @tour.check
    async def read_right_after_a_write_carries_the_same_session_token(world):
        container = await world.container("sessions")
        token = lambda item: item.get_response_headers()["x-ms-session-token"]
        first = await settle(container.create_item({"id": "a", "pk": "p"}))
        equal(token(await settle(container.read_item("a", "p"))), token(first))
        second = await settle(container.upsert_item({"id": "a", "pk": "p", "v": 2}))
        equal(token(second) != token(first), True, "a write moves the token")
        read = await settle(container.read_item("a", "p", session_token=token(second)))
        equal(read["v"], 2)

    @tour.check
    async def read_many_finds_what_exists_over_all_ranges(world):
        container = await world.container("many", offer_throughput=FIVE_RANGES)
        await add(container, *({"id": f"i{n}", "pk": f"p{n % 7}"} for n in range(20)))
        wanted = [(f"i{n}", f"p{n % 7}") for n in range(0, 20, 3)]
        found = await settle(container.read_items([*wanted, ("missing", "p0")]))
        equal(sorted(item["id"] for item in found), sorted(name for name, _ in wanted))

    @tour.check
    async def change_feed_shows_the_latest_version_of_each_item_in_order(world):
        container = await world.container("feed")
        await add(container, *({"id": name, "pk": "p", "v": 1} for name in "abc"))
        await settle(container.upsert_item({"id": "a", "pk": "p", "v": 2}))
        await settle(container.delete_item("c", "p"))
        changes = await rows(container.query_items_change_feed(start_time="Beginning", partition_key="p"))
        equal([(change["id"], change["v"]) for change in changes], [("b", 1), ("a", 2)])

    @tour.check
    async def change_feed_covers_every_range(world):
        container = await world.container("wide feed", offer_throughput=FIVE_RANGES)
        await add(container, *({"id": f"i{n}", "pk": f"p{n}"} for n in range(20)))
        changes = await rows(container.query_items_change_feed(start_time="Beginning", max_item_count=3))
        equal(sorted(change["id"] for change in changes), sorted(f"i{n}" for n in range(20)))

    @tour.check
    async def missing_container_refuses_items_with_404(world):
        container = world.database.get_container_client(unique("nowhere"))
        await refused(404, lambda: container.create_item({"id": "a", "pk": "p"}))
