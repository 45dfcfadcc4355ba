"""Plays one test: fills its collections, carries out its operations, compares results, events and the outcome."""

import contextlib

from pymongo import ReadPreference, WriteConcern
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

import errors
from entities import Entities
from matching import Differs, Matcher
from operations import Operations
from special import Special, check_events

MAJORITY = WriteConcern(w="majority")


class Test:
    """One test of a file. `setup` is a client that the test does not observe."""

    def __init__(self, uri, setup, file, test):
        self.setup = setup
        self.entities = Entities(uri)
        self._file = file
        self._test = test
        self._special = Special(self)
        self._operations = Operations(self.entities, self._run_all)
        self._matcher = Matcher(self.entities)

    def play(self):
        """Raises whatever is not as the test says."""
        self._end_sessions()
        self._fill()
        try:
            self.entities.create(self._file.get("createEntities", []))
            self._run_all(self._test["operations"])
            self._special.disable_fail_points()
            for expected in self._test.get("expectEvents", []):
                check_events(self._matcher, expected, self.entities.events[expected["client"]])
            self._check_outcome()
        finally:
            with contextlib.suppress(Exception):
                self._special.disable_fail_points()
            self._end_sessions()
            self.entities.close()

    def _end_sessions(self):
        """Aborts the transactions that an earlier test has left open."""
        # The command ends its own session too; some servers do not have it.
        with contextlib.suppress(OperationFailure):
            self.setup.admin.command("killAllSessions", [])

    def _fill(self):
        for collection in self._file.get("initialData", []):
            database = self.setup.get_database(collection["databaseName"], write_concern=MAJORITY)
            name, documents = collection["collectionName"], collection["documents"]
            options = collection.get("createOptions", {})
            database.drop_collection(name)
            if options or not documents:
                database.create_collection(name, check_exists=False, **options)
            if documents:
                database[name].insert_many(documents)

    def _run_all(self, operations):
        for index, operation in enumerate(operations):
            try:
                self.run_operation(operation)
            except Differs as difference:
                # Operations of a callback already say which they are.
                raise Differs(f"operation {index + 1} {operation['name']}: {difference}") from difference

    def run_operation(self, operation):
        """Carries out an operation and compares its result or its error."""
        if operation["object"] == "testRunner":
            self._special.run(operation)
            return
        expected_error = operation.get("expectError")
        try:
            result = self._operations.run(operation)
        except (Differs, NotImplementedError):
            raise
        except Exception as error:
            if operation.get("ignoreResultAndError"):
                return
            if expected_error is None:
                raise
            errors.check(self._matcher, expected_error, error)
            return
        if operation.get("ignoreResultAndError"):
            return
        if expected_error is not None:
            raise Differs(f"expected the error {expected_error}, got {result!r}")
        if "expectResult" in operation:
            self._matcher.match(operation["expectResult"], result)
        if "saveResultAsEntity" in operation:
            self.entities[operation["saveResultAsEntity"]] = result

    def _check_outcome(self):
        for expected in self._test.get("outcome", []):
            database = self.setup.get_database(
                expected["databaseName"], read_concern=ReadConcern("local"), read_preference=ReadPreference.PRIMARY
            )
            found = list(database[expected["collectionName"]].find(sort=[("_id", 1)]))
            for document in expected["documents"]:
                if "_id" not in document:
                    raise NotImplementedError("an outcome without _id")
            self._matcher.match(expected["documents"], found, "outcome", False)
