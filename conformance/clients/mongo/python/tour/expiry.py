"""Time to live: the index on `_ts` with the field `ttl`, and indexes on dates, to the millisecond."""

from datetime import datetime, timedelta, timezone

from bson import Int64

from checks import equal, holds, refused


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def documents_end_seconds_after_their_last_change(world):
        collection = world.collection("sessions")
        collection.create_index("_ts", expireAfterSeconds=10)
        start = world.clock.next_second()
        collection.insert_many([{"_id": 1}, {"_id": 2}])
        world.clock.set_ms(start + 5_000)
        collection.update_one({"_id": 2}, {"$set": {"seen": True}})
        world.clock.set_ms(start + 9_999)
        visible(collection, [1, 2])
        world.clock.set_ms(start + 10_000)
        visible(collection, [2])
        world.clock.set_ms(start + 15_000)
        visible(collection, [])

    @tour.check
    def a_document_has_a_time_to_live_of_its_own(world):
        collection = world.collection("sessions")
        collection.create_index("_ts", expireAfterSeconds=10)
        start = world.clock.next_second()
        collection.insert_many(
            [
                {"_id": 1, "ttl": 20.0},
                {"_id": 2, "ttl": 20},
                {"_id": 3, "ttl": Int64(20)},
                {"_id": 4, "ttl": 20.5},
                {"_id": 5, "ttl": Int64(2147483649)},
                {"_id": 6, "ttl": -1},
            ]
        )
        world.clock.set_ms(start + 9_999)
        visible(collection, [1, 2, 3, 4, 5, 6])
        world.clock.set_ms(start + 10_000)
        visible(collection, [1, 2, 3, 6])
        world.clock.set_ms(start + 20_000)
        visible(collection, [6])

    @tour.check
    def the_index_on_ts_answers_as_in_the_documentation(world):
        world.database.drop_collection("fresh")
        index = {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 10}
        reply = world.database.command({"createIndexes": "fresh", "indexes": [index]})
        named = {name: reply[name] for name in ("_t", "ok", "createdCollectionAutomatically", "numIndexesBefore")}
        expected = {"_t": "CreateIndexesResponse", "ok": 1, "createdCollectionAutomatically": True, "numIndexesBefore": 1}
        equal(named, expected)
        equal(reply["numIndexesAfter"], 2)

    @tour.check
    def dates_end_documents_to_the_millisecond(world):
        collection = world.collection("dates")
        collection.create_index("expireAt", expireAfterSeconds=0)
        start = world.clock.next_second()
        collection.insert_many(
            [{"_id": 1, "expireAt": date(start + 1_234)}, {"_id": 2, "expireAt": date(start + 1_235)}, {"_id": 3}]
        )
        world.clock.set_ms(start + 1_233)
        visible(collection, [1, 2, 3])
        world.clock.set_ms(start + 1_234)
        visible(collection, [2, 3])
        world.clock.set_ms(start + 1_235)
        visible(collection, [3])

    @tour.check
    def seconds_after_a_date_and_the_earliest_date_of_an_array_count(world):
        collection = world.collection("dates")
        collection.create_index("created", expireAfterSeconds=60)
        start = world.clock.next_second()
        collection.insert_many(
            [
                {"_id": 1, "created": date(start)},
                {"_id": 2, "created": [date(start + 5_000), date(start + 1), "text"]},
                {"_id": 3, "created": "text"},
                {"_id": 4, "created": start},
            ]
        )
        world.clock.set_ms(start + 60_000)
        visible(collection, [2, 3, 4])
        world.clock.set_ms(start + 60_001)
        visible(collection, [3, 4])

    @tour.check
    def the_earliest_of_both_kinds_of_expiry_counts(world):
        collection = world.collection("both")
        collection.create_index("_ts", expireAfterSeconds=10)
        collection.create_index("expireAt", expireAfterSeconds=0)
        start = world.clock.next_second()
        collection.insert_many([{"_id": 1, "expireAt": date(start + 4_000)}, {"_id": 2, "expireAt": date(start + 40_000)}])
        world.clock.set_ms(start + 4_000)
        visible(collection, [2])
        world.clock.set_ms(start + 10_000)
        visible(collection, [])

    @tour.check
    def an_expired_document_holds_neither_its_id_nor_unique_keys(world):
        collection = world.collection("dates")
        collection.create_index("expireAt", expireAfterSeconds=0)
        collection.create_index("email", unique=True)
        start = world.clock.next_second()
        collection.insert_one({"_id": 1, "email": "a@x", "expireAt": date(start + 1_000)})
        refused(11000, lambda: collection.insert_one({"_id": 2, "email": "a@x"}))
        world.clock.set_ms(start + 1_000)
        collection.insert_one({"_id": 2, "email": "a@x"})
        collection.insert_one({"_id": 1, "email": "b@x"})
        visible(collection, [1, 2])

    @tour.check
    def writes_do_not_see_expired_documents(world):
        collection = world.collection("dates")
        collection.create_index("expireAt", expireAfterSeconds=0)
        start = world.clock.next_second()
        collection.insert_many([{"_id": n, "expireAt": date(start + 1_000)} for n in range(4)])
        world.clock.set_ms(start + 1_000)
        equal(collection.update_one({"_id": 0}, {"$unset": {"expireAt": ""}}).matched_count, 0)
        equal(collection.delete_many({}).deleted_count, 0)
        equal(collection.find_one_and_update({}, {"$set": {"a": 1}}), None)
        equal(collection.update_one({"_id": 3}, {"$set": {"a": 1}}, upsert=True).upserted_id, 3)
        visible(collection, [3])

    @tour.check
    def a_document_that_expires_between_two_batches_is_not_given(world):
        collection = world.collection("dates")
        collection.create_index("expireAt", expireAfterSeconds=0)
        start = world.clock.next_second()
        collection.insert_many([{"_id": n, "expireAt": date(start + (1_000 if n > 4 else 60_000))} for n in range(10)])
        cursor = collection.find(batch_size=2).sort("_id", 1)
        first = [next(cursor)["_id"], next(cursor)["_id"]]
        world.clock.set_ms(start + 1_000)
        equal(first + [one["_id"] for one in cursor], [0, 1, 2, 3, 4])

    @tour.check
    def joins_do_not_see_expired_documents(world):
        left = world.collection("left", [{"_id": 1}])
        right = world.collection("right")
        right.create_index("expireAt", expireAfterSeconds=0)
        start = world.clock.next_second()
        right.insert_many([{"_id": 1, "k": 1, "expireAt": date(start + 500)}, {"_id": 2, "k": 1}])
        world.clock.set_ms(start + 500)
        lookup = {"$lookup": {"from": "right", "localField": "_id", "foreignField": "k", "as": "of"}}
        (found,) = left.aggregate([lookup])
        equal([one["_id"] for one in found["of"]], [2])
        union = [{"$unionWith": "right"}, {"$count": "n"}]
        equal(list(left.aggregate(union)), [{"n": 2}])

    @tour.check
    def a_longer_time_does_not_bring_documents_back(world):
        collection = world.collection("dates")
        collection.create_index("created", name="created", expireAfterSeconds=10)
        start = world.clock.next_second()
        collection.insert_many([{"_id": 1, "created": date(start)}, {"_id": 2, "created": date(start + 5_000)}])
        world.clock.set_ms(start + 10_000)
        visible(collection, [2])
        change = {"collMod": "dates", "index": {"name": "created", "expireAfterSeconds": 100}}
        reply = world.database.command(change)
        equal([reply["expireAfterSeconds_old"], reply["expireAfterSeconds_new"]], [10, 100])
        visible(collection, [2])
        world.clock.set_ms(start + 104_999)
        visible(collection, [2])
        world.clock.set_ms(start + 105_000)
        visible(collection, [])
        collection.drop_index("created")
        visible(collection, [])

    @tour.check
    def a_partial_index_ends_only_what_matches_its_filter(world):
        collection = world.collection("dates")
        collection.create_index("expireAt", expireAfterSeconds=0, partialFilterExpression={"kind": "guest"})
        start = world.clock.next_second()
        when = date(start + 1_000)
        collection.insert_many([{"_id": 1, "kind": "guest", "expireAt": when}, {"_id": 2, "expireAt": when}])
        world.clock.set_ms(start + 1_000)
        visible(collection, [2])

    @tour.check
    def an_index_ends_documents_that_were_there_before_it(world):
        start = world.clock.next_second()
        collection = world.collection("dates", [{"_id": 1, "at": date(start - 5_000)}, {"_id": 2, "at": date(start)}])
        collection.create_index("at", expireAfterSeconds=5)
        visible(collection, [2])

    @tour.check
    def indexes_list_their_expiry_as_int32(world):
        collection = world.collection("dates")
        collection.create_index("a", expireAfterSeconds=60.9)
        collection.create_index("_ts", expireAfterSeconds=-1)
        listed = {index["name"]: index.get("expireAfterSeconds") for index in collection.list_indexes()}
        equal(listed, {"_id_": None, "a_1": 60, "_ts_1": -1})
        holds(type(listed["a_1"]) is int, "another type than int32")

    @tour.check
    def bad_expiry_is_refused(world):
        collection = world.collection("dates", [{"_id": 1}])
        for seconds in (-1, 2147483648, "60", float("nan")):
            refused(67, lambda: collection.create_index("at", expireAfterSeconds=seconds))
        refused(67, lambda: collection.create_index([("a", 1), ("b", 1)], expireAfterSeconds=1))
        refused(197, lambda: collection.create_index("_id", expireAfterSeconds=1))
        refused(67, lambda: collection.create_index("$**", expireAfterSeconds=1))
        collection.create_index("at", expireAfterSeconds=1)
        refused(85, lambda: collection.create_index("at", expireAfterSeconds=2))

    @tour.check
    def the_system_field_ts_is_not_seen(world):
        collection = world.collection("dates", [{"_id": 1, "_ts": 5, "a": 1}])
        equal(list(collection.find()), [{"_id": 1, "a": 1}])
        equal(list(collection.find({"_ts": {"$exists": True}})), [])

    @tour.check
    def a_pipeline_has_the_clock_of_expiry(world):
        collection = world.collection("dates", [{"_id": 1}])
        start = world.clock.next_second()
        (found,) = collection.aggregate([{"$project": {"now": "$$NOW"}}])
        equal(found["now"], date(start))
        collection.update_one({"_id": 1}, {"$currentDate": {"at": True}})
        equal(collection.find_one()["at"], date(start))


def date(instant_ms):
    """Returns an instant as the driver reads dates: without a time zone, in UTC."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc).replace(tzinfo=None) + timedelta(milliseconds=instant_ms)


def visible(collection, ids):
    """Fails unless exactly these documents exist, on every way to read."""
    equal(sorted(one["_id"] for one in collection.find()), ids, "find")
    equal(sorted(collection.distinct("_id")), ids, "distinct")
    equal(collection.count_documents({}), len(ids), "count_documents")
    equal(collection.estimated_document_count(), len(ids), "estimated_document_count")
    groups = list(collection.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}]))
    equal(sum(group["n"] for group in groups), len(ids), "$group")
    for _id in ids:
        equal(collection.find_one({"_id": _id}, {"_id": 1}), {"_id": _id}, "find by _id")
