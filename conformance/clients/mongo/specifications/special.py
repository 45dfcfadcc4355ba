"""Operations on the test itself: fail points, assertions on events, sessions, collections and indexes."""

import time
from concurrent.futures import ThreadPoolExecutor

from matching import MISSING, Differs, Matcher
from operations import snake

WAIT_SECONDS = 10


class Special:
    """The operations whose object is `testRunner`."""

    def __init__(self, test):
        self._test = test
        self._entities = test.entities
        self._fail_points = []

    def run(self, operation):
        """Carries out an operation."""
        method = getattr(self, f"_{snake(operation['name'])}", None)
        if method is None:
            raise NotImplementedError(f"operation {operation['name']} of the test runner")
        return method(operation.get("arguments", {}))

    def disable_fail_points(self):
        """Switches off every fail point of the test, with a client whose events the test does not observe."""
        for name in self._fail_points:
            self._test.setup.admin.command("configureFailPoint", name, mode="off")
        self._fail_points.clear()

    def _fail_point(self, arguments):
        client, command = self._entities[arguments["client"]], arguments["failPoint"]
        client.admin.command({"configureFailPoint": command["configureFailPoint"], **command})
        self._fail_points.append(command["configureFailPoint"])

    def _targeted_fail_point(self, arguments):
        session = self._entities[arguments["session"]]
        command = arguments["failPoint"]
        session.client.admin.command({"configureFailPoint": command["configureFailPoint"], **command})
        self._fail_points.append(command["configureFailPoint"])

    def _create_entities(self, arguments):
        self._entities.create(arguments["entities"])

    def _wait(self, arguments):
        time.sleep(arguments["ms"] / 1000)

    def _loop(self, _arguments):
        raise NotImplementedError("loop")

    # Sessions

    def _last_lsids(self, arguments):
        started = [event for kind, event in self._entities.events[arguments["client"]].commands if "Started" in kind]
        if len(started) < 2:
            raise Differs("fewer than two commands were sent")
        return [event.command["lsid"] for event in started[-2:]]

    def _assert_same_lsid_on_last_two_commands(self, arguments):
        one, other = self._last_lsids(arguments)
        demand(one == other, "the last two commands have different sessions")

    def _assert_different_lsid_on_last_two_commands(self, arguments):
        one, other = self._last_lsids(arguments)
        demand(one != other, "the last two commands have the same session")

    def _assert_session_dirty(self, arguments):
        demand(self._entities[arguments["session"]]._server_session.dirty, "the session is not dirty")

    def _assert_session_not_dirty(self, arguments):
        demand(not self._entities[arguments["session"]]._server_session.dirty, "the session is dirty")

    def _assert_session_transaction_state(self, arguments):
        state = self._entities[arguments["session"]]._transaction.state.name.lower()
        demand(state.replace("_", "") == arguments["state"].replace("_", ""), f"the transaction is {state}")

    def _assert_session_pinned(self, arguments):
        demand(self._entities[arguments["session"]]._pinned_address is not None, "the session is not pinned")

    def _assert_session_unpinned(self, arguments):
        demand(self._entities[arguments["session"]]._pinned_address is None, "the session is pinned")

    # Collections and indexes

    def _assert_collection_exists(self, arguments):
        names = self._test.setup[arguments["databaseName"]].list_collection_names()
        demand(arguments["collectionName"] in names, f"there is no {arguments['collectionName']} in {names}")

    def _assert_collection_not_exists(self, arguments):
        names = self._test.setup[arguments["databaseName"]].list_collection_names()
        demand(arguments["collectionName"] not in names, f"there is {arguments['collectionName']} in {names}")

    def _index_names(self, arguments):
        collection = self._test.setup[arguments["databaseName"]][arguments["collectionName"]]
        return [index["name"] for index in collection.list_indexes()]

    def _assert_index_exists(self, arguments):
        names = self._index_names(arguments)
        demand(arguments["indexName"] in names, f"there is no {arguments['indexName']} in {names}")

    def _assert_index_not_exists(self, arguments):
        names = self._index_names(arguments)
        demand(arguments["indexName"] not in names, f"there is {arguments['indexName']} in {names}")

    # Events

    def _count_events(self, arguments):
        ((kind, expected),) = arguments["event"].items()
        events = self._entities.events[arguments["client"]]
        matcher = Matcher(self._entities)
        return sum(
            found == kind and is_as_expected(matcher, expected, event) for found, event in [*events.commands, *events.pool]
        )

    def _assert_event_count(self, arguments):
        count = self._count_events(arguments)
        demand(count == arguments["count"], f"{count} events, expected {arguments['count']}: {arguments['event']}")

    def _wait_for_event(self, arguments):
        deadline = time.monotonic() + WAIT_SECONDS
        while self._count_events(arguments) < arguments["count"]:
            demand(time.monotonic() < deadline, f"no event within {WAIT_SECONDS} s: {arguments['event']}")
            time.sleep(0.01)

    # Threads

    def _run_on_thread(self, arguments):
        thread = self._entities[arguments["thread"]]
        thread.futures.append(thread.submit(self._test.run_operation, arguments["operation"]))

    def _wait_for_thread(self, arguments):
        for future in self._entities[arguments["thread"]].futures:
            future.result(WAIT_SECONDS)


class Thread(ThreadPoolExecutor):
    """A thread of a test."""

    def __init__(self):
        super().__init__(1)
        self.futures = []


def demand(holds, otherwise):
    """Raises `Differs` unless something holds."""
    if not holds:
        raise Differs(otherwise)


def check_events(matcher, expected, events):
    """Raises `Differs` unless the events of a client are as expected."""
    found = events.pool if expected.get("eventType") == "cmap" else events.commands
    names = [kind for kind, _ in found]
    if expected.get("ignoreExtraEvents"):
        found = found[: len(expected["events"])]
    if len(found) != len(expected["events"]):
        raise Differs(f"events: expected {[*map(list, expected['events'])]}, got {names}")
    for index, (one, (kind, event)) in enumerate(zip(expected["events"], found)):
        ((name, fields),) = one.items()
        demand(name == kind, f"events[{index}]: expected {name}, got {kind}")
        match_event(matcher, fields, event, f"events[{index}]")


def match_event(matcher, expected, event, place):
    """Compares the fields of an event."""
    for field, value in expected.items():
        if field == "command":
            matcher.match(value, dict(event.command), f"{place}.command")
        elif field == "reply":
            matcher.match(value, dict(event.reply), f"{place}.reply")
        elif field in ("commandName", "databaseName", "reason"):
            matcher.match(value, getattr(event, snake(field), MISSING), f"{place}.{field}")
        elif field == "hasServiceId":
            demand(value == (getattr(event, "service_id", None) is not None), f"{place}.{field}: expected {value}")
        elif field == "hasServerConnectionId":
            has = getattr(event, "server_connection_id", None) is not None
            demand(value == has, f"{place}.{field}: expected {value}")
        elif field == "interruptInUseConnections":
            matcher.match(value, event.interrupt_connections, f"{place}.{field}")
        else:
            raise NotImplementedError(f"field {field} of events")


def is_as_expected(matcher, expected, event):
    """Tells whether an event has the expected fields."""
    try:
        match_event(matcher, expected, event, "event")
    except Differs:
        return False
    return True
