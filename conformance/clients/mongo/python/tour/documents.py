"""Documents: single writes, bulk writes, findAndModify, cursors, types."""

from datetime import datetime

from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo import DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError

from checks import equal, holds, refused


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def an_inserted_document_is_read_back(world):
        collection = world.collection("documents")
        inserted = collection.insert_one({"_id": 1, "a": [1, {"b": None}]})
        equal(inserted.inserted_id, 1)
        equal(collection.find_one({"_id": 1}), {"_id": 1, "a": [1, {"b": None}]})

    @tour.check
    def every_type_comes_back_as_it_was(world):
        collection = world.collection("types")
        document = {
            "_id": ObjectId("0123456789abcdef01234567"),
            "int": 7,
            "long": Int64(8),
            "double": 2.5,
            "decimal": Decimal128("1.10"),
            "text": "Ünï ☃",
            "bytes": Binary(b"\0\1", 128),
            "date": datetime(2026, 1, 2, 3, 4, 5, 678000),
            "timestamp": Timestamp(5, 6),
            "regex": Regex("^a", "i"),
            "code": Code("x"),
            "min": MinKey(),
            "max": MaxKey(),
            "null": None,
            "empty": {},
            "list": [[], [1, [2]]],
        }
        collection.insert_one(document)
        found = collection.find_one()
        equal(found, document)
        equal([type(found["int"]), type(found["long"]), type(found["double"])], [int, Int64, float], "types")
        equal(list(found), list(document), "the order of the fields")

    @tour.check
    def a_taken_id_is_refused(world):
        collection = world.collection("documents", [{"_id": 1}])
        error = refused(11000, lambda: collection.insert_one({"_id": 1}))
        equal(error.details["keyValue"], {"_id": 1})

    @tour.check
    def documents_without_an_id_get_one_from_the_server(world):
        collection = world.collection("documents")
        world.database.command({"insert": "documents", "documents": [{"a": 1}]})
        found = collection.find_one()
        equal(list(found), ["_id", "a"])
        holds(isinstance(found["_id"], ObjectId), "the id is no ObjectId")

    @tour.check
    def updates_count_what_matched_and_what_changed(world):
        collection = world.collection("documents", [{"_id": n, "a": n % 2} for n in range(4)])
        done = collection.update_many({"a": {"$lte": 1}}, {"$set": {"a": 1}})
        equal([done.matched_count, done.modified_count], [4, 2])
        done = collection.replace_one({"_id": 9}, {"b": 1}, upsert=True)
        equal([done.matched_count, done.upserted_id], [0, 9])
        equal(collection.find_one({"_id": 9}), {"_id": 9, "b": 1})

    @tour.check
    def deletes_count_what_they_deleted(world):
        collection = world.collection("documents", [{"_id": n} for n in range(4)])
        equal(collection.delete_one({}).deleted_count, 1)
        equal(collection.delete_many({"_id": {"$gte": 2}}).deleted_count, 2)
        equal(collection.count_documents({}), 1)

    @tour.check
    def an_ordered_bulk_stops_at_its_first_error(world):
        collection = world.collection("documents", [{"_id": 1}])
        requests = [InsertOne({"_id": 2}), InsertOne({"_id": 1}), InsertOne({"_id": 3})]
        details = bulk_error(collection, requests, True)
        equal([details["nInserted"], [one["index"] for one in details["writeErrors"]]], [1, [1]])
        equal(collection.count_documents({}), 2)

    @tour.check
    def an_unordered_bulk_does_all_it_can(world):
        collection = world.collection("documents", [{"_id": 1}])
        requests = [InsertOne({"_id": 1}), InsertOne({"_id": 2}), InsertOne({"_id": 1}), InsertOne({"_id": 3})]
        details = bulk_error(collection, requests, False)
        equal([details["nInserted"], [one["index"] for one in details["writeErrors"]]], [2, [0, 2]])
        equal(collection.count_documents({}), 3)

    @tour.check
    def a_bulk_of_every_kind_counts_each(world):
        collection = world.collection("documents", [{"_id": n} for n in range(3)])
        done = collection.bulk_write(
            [
                InsertOne({"_id": 3}),
                UpdateOne({"_id": 0}, {"$set": {"a": 1}}),
                UpdateMany({"_id": {"$gte": 1}}, {"$set": {"b": 1}}),
                ReplaceOne({"_id": 9}, {"c": 1}, upsert=True),
                DeleteOne({"_id": 2}),
            ]
        )
        counts = [done.inserted_count, done.matched_count, done.modified_count, done.deleted_count]
        equal(counts, [1, 4, 4, 1])
        equal(done.upserted_ids, {3: 9})

    @tour.check
    def find_and_modify_returns_the_document_before_or_after(world):
        collection = world.collection("documents", [{"_id": 1, "n": 1}, {"_id": 2, "n": 5}])
        before = collection.find_one_and_update({}, {"$inc": {"n": 1}}, sort=[("n", -1)])
        equal(before, {"_id": 2, "n": 5})
        after = collection.find_one_and_update(
            {"_id": 1}, {"$inc": {"n": 1}}, return_document=ReturnDocument.AFTER, projection={"_id": 0}
        )
        equal(after, {"n": 2})

    @tour.check
    def find_and_modify_replaces_deletes_and_upserts(world):
        collection = world.collection("documents", [{"_id": 1, "n": 1}])
        equal(collection.find_one_and_replace({"_id": 1}, {"m": 1}), {"_id": 1, "n": 1})
        equal(collection.find_one_and_delete({"m": 1}), {"_id": 1, "m": 1})
        equal(collection.find_one_and_update({"_id": 7}, {"$set": {"a": 1}}, upsert=True), None)
        equal(list(collection.find()), [{"_id": 7, "a": 1}])

    @tour.check
    def a_cursor_gives_every_document_in_batches(world):
        collection = world.collection("documents", [{"_id": n} for n in range(250)])
        equal([one["_id"] for one in collection.find(batch_size=40).sort("_id", 1)], list(range(250)))
        equal(len(list(collection.aggregate([{"$match": {}}], batchSize=7))), 250)

    @tour.check
    def a_closed_cursor_is_gone(world):
        collection = world.collection("documents", [{"_id": n} for n in range(10)])
        reply = world.database.command({"find": "documents", "batchSize": 2})
        cursor = reply["cursor"]["id"]
        killed = world.database.command({"killCursors": "documents", "cursors": [cursor]})
        equal(killed["cursorsKilled"], [cursor])
        refused(43, lambda: world.database.command({"getMore": cursor, "collection": collection.name}))

    @tour.check
    def counts_and_distinct_values(world):
        collection = world.collection("documents", [{"_id": n, "a": [n % 3, 9]} for n in range(6)])
        equal([collection.estimated_document_count(), collection.count_documents({"a": 1})], [6, 2])
        equal(sorted(collection.distinct("a")), [0, 1, 2, 9])
        equal(collection.distinct("a", {"_id": 1}), [1, 9])

    @tour.check
    def a_document_of_16_mib_is_stored_and_a_larger_one_is_refused(world):
        collection = world.collection("large")
        # The rest of the document is 33 bytes: `_id`, the name of the field and lengths.
        text = "x" * (16 * 1024 * 1024 - 64)
        collection.insert_one({"_id": 1, "text": text})
        equal(len(collection.find_one({"_id": 1})["text"]), len(text))
        refused_as_too_large(collection)

    @tour.check
    def twenty_thousand_documents_go_in_one_call(world):
        collection = world.collection("many")
        collection.insert_many(({"_id": n} for n in range(20_000)), ordered=False)
        equal(collection.count_documents({}), 20_000)

    @tour.check
    def unacknowledged_writes_arrive(world):
        collection = world.collection("documents")
        quiet = collection.with_options(write_concern=collection.write_concern.__class__(w=0))
        done = quiet.insert_one({"_id": 1})
        holds(not done.acknowledged, "the write was acknowledged")
        for _ in range(200):
            if collection.find_one({"_id": 1}):
                return
        raise AssertionError("the write did not arrive")


def refused_as_too_large(collection):
    """Grows a document over the limit on the server, where the client cannot see it."""
    collection.insert_one({"_id": 2, "a": "x" * (9 * 1024 * 1024)})
    refused(10334, lambda: collection.update_one({"_id": 2}, [{"$set": {"b": {"$concat": ["$a", "$a"]}}}]))


def bulk_error(collection, requests, ordered):
    """Runs a bulk write that must fail, and returns the details."""
    try:
        collection.bulk_write(requests, ordered=ordered)
    except BulkWriteError as error:
        return error.details
    raise AssertionError("the bulk write did not fail")
