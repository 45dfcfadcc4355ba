"""Sessions, retryable writes, transactions."""

from pymongo import WriteConcern
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from checks import equal, holds, refused


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def a_session_is_causally_consistent(world):
        collection = world.collection("accounts")
        with world.client.start_session(causal_consistency=True) as session:
            collection.insert_one({"_id": 1}, session=session)
            equal(collection.find_one({"_id": 1}, session=session), {"_id": 1})
            holds(session.operation_time is not None, "the session has no operation time")

    @tour.check
    def a_retried_write_is_done_once(world):
        collection = world.collection("accounts", [{"_id": 1, "n": 0}])
        with lost_replies(world, ["update"]):
            collection.update_one({"_id": 1}, {"$inc": {"n": 1}})
        equal(collection.find_one(), {"_id": 1, "n": 1})
        with lost_replies(world, ["insert"]):
            collection.insert_many([{"_id": 2}, {"_id": 3}])
        equal(collection.count_documents({}), 3)
        with lost_replies(world, ["findAndModify"]):
            equal(collection.find_one_and_update({"_id": 1}, {"$inc": {"n": 1}}), {"_id": 1, "n": 1})
        equal(collection.find_one({"_id": 1}), {"_id": 1, "n": 2})

    @tour.check
    def the_same_transaction_number_gives_the_same_reply(world):
        world.collection("accounts", [{"_id": 1, "n": 0}])
        with world.client.start_session() as session:
            lsid = session.session_id
            update = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}
            command = {"update": "accounts", "updates": [update], "lsid": lsid, "txnNumber": 7}
            replies = [raw(world, command) for _ in range(2)]
        equal([reply["nModified"] for reply in replies], [1, 1])
        equal(replies[1].get("retriedStmtIds"), [0])
        equal(world.database["accounts"].find_one(), {"_id": 1, "n": 1})

    @tour.check
    def a_transaction_is_seen_as_a_whole_once_it_is_committed(world):
        left, right = world.collection("left", [{"_id": 1, "n": 5}]), world.collection("right", [{"_id": 1, "n": 0}])
        with world.client.start_session() as session, session.start_transaction():
            left.update_one({"_id": 1}, {"$inc": {"n": -5}}, session=session)
            right.update_one({"_id": 1}, {"$inc": {"n": 5}}, session=session)
            right.insert_one({"_id": 2}, session=session)
            equal(right.find_one({"_id": 1}, session=session)["n"], 5, "inside")
            equal([left.find_one()["n"], right.count_documents({})], [5, 1], "outside")
        equal([left.find_one()["n"], right.find_one({"_id": 1})["n"], right.count_documents({})], [0, 5, 2])

    @tour.check
    def an_aborted_transaction_leaves_nothing(world):
        collection = world.collection("accounts", [{"_id": 1}])
        with world.client.start_session() as session:
            session.start_transaction()
            collection.delete_one({"_id": 1}, session=session)
            collection.insert_one({"_id": 2}, session=session)
            session.abort_transaction()
        equal(list(collection.find()), [{"_id": 1}])

    @tour.check
    def a_transaction_reads_one_snapshot(world):
        collection = world.collection("accounts", [{"_id": 1, "n": 0}])
        with world.client.start_session() as session:
            session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority"))
            equal(collection.find_one({"_id": 1}, session=session)["n"], 0)
            collection.update_one({"_id": 1}, {"$set": {"n": 9}})
            equal(collection.find_one({"_id": 1}, session=session)["n"], 0)
            session.abort_transaction()

    @tour.check
    def of_two_transactions_on_one_document_the_second_conflicts(world):
        collection = world.collection("accounts", [{"_id": 1, "n": 0}])
        with world.client.start_session() as one, world.client.start_session() as other:
            one.start_transaction()
            other.start_transaction()
            collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=one)
            error = refused(112, lambda: collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=other))
            holds(error.has_error_label("TransientTransactionError"), "the error has no label")
            one.commit_transaction()
        equal(collection.find_one(), {"_id": 1, "n": 1})

    @tour.check
    def with_transaction_repeats_what_conflicts(world):
        collection = world.collection("accounts", [{"_id": 1, "n": 0}])
        attempts = []

        def transfer(session):
            attempts.append(1)
            collection.find_one({"_id": 1}, session=session)
            if len(attempts) == 1:
                collection.update_one({"_id": 1}, {"$inc": {"n": 10}})
            collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)

        with world.client.start_session() as session:
            session.with_transaction(transfer)
        equal([collection.find_one()["n"], len(attempts)], [11, 2])

    @tour.check
    def a_transaction_that_is_not_there_has_its_own_error(world):
        collection = world.collection("accounts", [{"_id": 1}])
        with world.client.start_session() as session:
            session.start_transaction()
            collection.find_one(session=session)
            world.client.admin.command("killSessions", [session.session_id])
            error = refused(251, lambda: collection.find_one(session=session))
            holds(error.has_error_label("TransientTransactionError"), "the error has no label")

    @tour.check
    def a_transaction_is_judged_at_its_start(world):
        from tour.expiry import date

        collection = world.collection("dates")
        collection.create_index("expireAt", expireAfterSeconds=0)
        start = world.clock.next_second()
        collection.insert_one({"_id": 1, "expireAt": date(start + 1_000)})
        with world.client.start_session() as session:
            session.start_transaction()
            equal(collection.count_documents({}, session=session), 1)
            world.clock.set_ms(start + 1_000)
            equal(collection.count_documents({}), 0, "outside")
            equal(collection.count_documents({}, session=session), 1, "inside")
            session.commit_transaction()

    @tour.check
    def a_commit_can_be_repeated(world):
        collection = world.collection("accounts")
        with world.client.start_session() as session:
            session.start_transaction()
            collection.insert_one({"_id": 1}, session=session)
            session.commit_transaction()
            session.commit_transaction()
        equal(collection.count_documents({}), 1)


class lost_replies:
    """Lets the server close the connection at the next of these commands, after the client has sent it."""

    def __init__(self, world, commands):
        self._admin = world.client.admin
        self._data = {"failCommands": commands, "closeConnection": True}

    def __enter__(self):
        self._admin.command({"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": self._data})

    def __exit__(self, *_error):
        self._admin.command({"configureFailPoint": "failCommand", "mode": "off"})


def raw(world, command):
    """Sends a command whose session the driver does not replace."""
    client = world.client
    with client._conn_for_writes(None, "update") as connection:
        try:
            return connection.command(world.database_name, command, client=None)
        except OperationFailure as error:
            raise AssertionError(f"{command}: {error}") from error
