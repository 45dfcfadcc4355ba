"""Change streams."""

from checks import equal, holds, refused
from tour.expiry import date

# Events come at once; a stream that has none is asked again this often.
TRIES = 20


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def a_change_stream_shows_every_kind_of_write(world):
        collection = world.collection("watched", [{"_id": 0}])
        with collection.watch(max_await_time_ms=300) as stream:
            collection.insert_one({"_id": 1, "a": 1})
            collection.update_one({"_id": 1}, {"$set": {"a": 2, "b.c": 3}, "$unset": {"z": ""}})
            collection.replace_one({"_id": 1}, {"c": 1})
            collection.delete_one({"_id": 1})
            events = taken(stream, 4)
        equal([event["operationType"] for event in events], ["insert", "update", "replace", "delete"])
        equal(events[0]["fullDocument"], {"_id": 1, "a": 1})
        equal(events[1]["updateDescription"]["updatedFields"], {"a": 2, "b": {"c": 3}})
        equal(events[2]["fullDocument"], {"_id": 1, "c": 1})
        equal([event["documentKey"] for event in events], [{"_id": 1}] * 4)
        equal(events[0]["ns"], {"db": world.database_name, "coll": "watched"})

    @tour.check
    def a_change_stream_goes_on_after_a_token(world):
        collection = world.collection("watched", [{"_id": 0}])
        with collection.watch(max_await_time_ms=300) as stream:
            collection.insert_many([{"_id": n} for n in range(1, 4)])
            token = taken(stream, 1)[0]["_id"]
        with collection.watch(max_await_time_ms=300, resume_after=token) as stream:
            equal([event["documentKey"]["_id"] for event in taken(stream, 2)], [2, 3])

    @tour.check
    def a_change_stream_looks_documents_up_and_filters_events(world):
        collection = world.collection("watched", [{"_id": 1, "a": 1}])
        pipeline = [{"$match": {"operationType": "update"}}, {"$project": {"fullDocument": 1}}]
        with collection.watch(pipeline, full_document="updateLookup", max_await_time_ms=300) as stream:
            collection.insert_one({"_id": 2})
            collection.update_one({"_id": 1}, {"$set": {"a": 2}})
            equal(taken(stream, 1)[0]["fullDocument"], {"_id": 1, "a": 2})

    @tour.check
    def databases_and_the_cluster_have_change_streams(world):
        one, other = world.collection("watched", [{"_id": 0}]), world.collection("watched2", [{"_id": 0}])
        with world.database.watch(max_await_time_ms=300) as local, world.client.watch(max_await_time_ms=300) as whole:
            one.insert_one({"_id": 1})
            other.insert_one({"_id": 2})
            for stream in (local, whole):
                equal([event["ns"]["coll"] for event in taken(stream, 2)], ["watched", "watched2"])

    @tour.check
    def a_change_stream_ends_with_its_collection(world):
        collection = world.collection("watched", [{"_id": 0}])
        with collection.watch(max_await_time_ms=300) as stream:
            collection.drop()
            equal([event["operationType"] for event in taken(stream, 2)], ["drop", "invalidate"])

    @tour.check
    def a_change_stream_shows_the_delete_of_an_expired_document(world):
        collection = world.collection("watched")
        collection.create_index("expireAt", expireAfterSeconds=0)
        start = world.clock.next_second()
        with collection.watch(max_await_time_ms=300) as stream:
            collection.insert_one({"_id": 1, "expireAt": date(start + 1_000)})
            world.clock.set_ms(start + 1_000)
            world.clock.purge(collection)
            events = taken(stream, 2)
        equal([event["operationType"] for event in events], ["insert", "delete"])
        equal(events[1]["documentKey"], {"_id": 1})

    @tour.check
    def a_transaction_is_in_a_change_stream_once_it_is_committed(world):
        collection = world.collection("watched", [{"_id": 0}])
        with collection.watch(max_await_time_ms=300) as stream:
            with world.client.start_session() as session:
                with session.start_transaction():
                    collection.insert_one({"_id": 1}, session=session)
                    collection.insert_one({"_id": 2}, session=session)
                    holds(stream.try_next() is None, "an event before the commit")
            events = taken(stream, 2)
        equal([event["documentKey"]["_id"] for event in events], [1, 2])
        equal(len({event["clusterTime"] for event in events}), 1, "the instants of one commit")

    @tour.check
    def a_token_that_is_none_is_refused(world):
        collection = world.collection("watched", [{"_id": 0}])
        refused(260, lambda: collection.watch(resume_after={"_data": "00"}).try_next())


def taken(stream, count):
    """Returns the next events of a stream."""
    events = []
    for _ in range(TRIES):
        event = stream.try_next()
        if event is not None:
            events.append(event)
        if len(events) == count:
            return events
    raise AssertionError(f"{len(events)} events, expected {count}: {[event['operationType'] for event in events]}")
