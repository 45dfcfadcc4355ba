"""Operations of the Unified Test Format, carried out with PyMongo."""

import re
from concurrent.futures import ThreadPoolExecutor

from bson.son import SON
from pymongo import (
    DeleteMany,
    DeleteOne,
    InsertOne,
    MongoClient,
    ReplaceOne,
    ReturnDocument,
    UpdateMany,
    UpdateOne,
)
from pymongo.change_stream import ChangeStream
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.database import Database

import results
from entities import handles, read_preference

BULK_MODELS = {
    "insertOne": InsertOne,
    "updateOne": UpdateOne,
    "updateMany": UpdateMany,
    "replaceOne": ReplaceOne,
    "deleteOne": DeleteOne,
    "deleteMany": DeleteMany,
}

# Where PyMongo's name of an argument is not that of the specification in snake case.
RENAMED = {
    "field_name": "key",
    "max_await_time_m_s": "max_await_time_ms",
    "max_commit_time_m_s": "max_commit_time_ms",
    "max_time_m_s": "max_time_ms",
}

# Options that a method takes only under their names on the wire.
ON_THE_WIRE = {
    "allow_disk_use": "allowDiskUse",
    "batch_size": "batchSize",
    "bypass_document_validation": "bypassDocumentValidation",
    "max_time_ms": "maxTimeMS",
}


def snake(name):
    """Returns `arrayFilters` as `array_filters`."""
    words = re.sub(r"([A-Z])", lambda letter: "_" + letter[1].lower(), name)
    return RENAMED.get(words, words)


class Operations:
    """Carries out operations on the entities of a test."""

    def __init__(self, entities, run_operations):
        self._entities = entities
        self._run_operations = run_operations

    def run(self, operation):
        """Carries out an operation and returns its result in the form of the specifications."""
        name = operation["name"]
        target = self._entities[operation["object"]]
        arguments = self._arguments(operation.get("arguments", {}))
        kind = kind_of(target)
        own = getattr(self, f"_{kind}_{snake(name)}", None)
        if own:
            return results.of(own(target, arguments))
        # Not of the object: its unknown attributes are collections.
        if kind == "thread" or not callable(getattr(type(target), snake(name), None)):
            raise NotImplementedError(f"operation {name} of a {kind}")
        return results.of(getattr(target, snake(name))(**arguments))

    def _arguments(self, given):
        """Returns the arguments by PyMongo's names, with entities in place of their names."""
        arguments = {}
        for name, value in given.items():
            if name == "session":
                arguments["session"] = self._entities[value]
            elif name == "returnDocument":
                arguments["return_document"] = value == "After" and ReturnDocument.AFTER
            elif name == "readPreference":
                arguments["read_preference"] = read_preference(value)
            elif name in ("readConcern", "writeConcern"):
                arguments |= handles({name: value})
                arguments.pop("codec_options")
            elif name in ("sort", "hint") and not isinstance(value, str):
                arguments[name] = list(value.items())
            else:
                arguments[snake(name)] = value
        return arguments

    # Clients

    def _client_list_databases(self, client, arguments):
        return list(client.list_databases(**arguments))

    def _client_create_change_stream(self, client, arguments):
        return client.watch(**arguments)

    def _client_client_bulk_write(self, client, arguments):
        models = [self._model(model, sort_as_document=True) for model in arguments.pop("models")]
        return client.bulk_write(models, **arguments)

    # Databases

    def _database_run_command(self, database, arguments):
        # The order of keys in a test's file is not that of a command: its name must come first.
        command = named_first(arguments.pop("command"), arguments.pop("command_name"))
        return database.command(command, **arguments)

    def _database_run_cursor_command(self, database, arguments):
        return list(self._database_create_command_cursor(database, arguments))

    def _database_create_command_cursor(self, database, arguments):
        command = named_first(arguments.pop("command"), arguments.pop("command_name"))
        batch_size = arguments.pop("batch_size", 0)
        cursor = database.cursor_command(command, **arguments)
        if batch_size:
            cursor.batch_size(batch_size)
        return cursor

    def _database_aggregate(self, database, arguments):
        return list(database.aggregate(**as_on_the_wire(arguments)))

    def _database_list_collections(self, database, arguments):
        return list(database.list_collections(**arguments))

    def _database_create_collection(self, database, arguments):
        # Everything but the session is an option of the command, by its own name.
        name = arguments.pop("collection")
        options = {camel(key): value for key, value in arguments.items() if key != "session"}
        if "session" in arguments:
            options["session"] = arguments["session"]
        if "pre_post_images_enabled" in arguments:
            raise NotImplementedError("prePostImagesEnabled")
        database.create_collection(name, check_exists=False, **options)

    def _database_drop_collection(self, database, arguments):
        database.drop_collection(arguments.pop("collection"), **arguments)

    def _database_modify_collection(self, database, arguments):
        session = arguments.pop("session", None)
        command = {"collMod": arguments.pop("collection")}
        return database.command(command | {camel(key): value for key, value in arguments.items()}, session=session)

    def _database_create_change_stream(self, database, arguments):
        return database.watch(**arguments)

    # Collections

    def _collection_create_change_stream(self, collection, arguments):
        return collection.watch(**arguments)

    def _collection_find(self, collection, arguments):
        return list(collection.find(**arguments))

    def _collection_create_find_cursor(self, collection, arguments):
        cursor = collection.find(**arguments)
        # The command is sent when the cursor is made, not with the first document.
        cursor._refresh()
        return cursor

    def _collection_aggregate(self, collection, arguments):
        return list(collection.aggregate(**as_on_the_wire(arguments)))

    def _collection_count(self, collection, arguments):
        command = SON([("count", collection.name), ("query", arguments.pop("filter", {}))])
        return collection.database.command(command, **arguments)["n"]

    def _collection_estimated_document_count(self, collection, arguments):
        return collection.estimated_document_count(**as_on_the_wire(arguments))

    def _collection_count_documents(self, collection, arguments):
        return collection.count_documents(**as_on_the_wire(arguments))

    def _collection_distinct(self, collection, arguments):
        return collection.distinct(**as_on_the_wire(arguments))

    def _collection_find_one_and_update(self, collection, arguments):
        return collection.find_one_and_update(**as_on_the_wire(arguments))

    def _collection_find_one_and_replace(self, collection, arguments):
        return collection.find_one_and_replace(**as_on_the_wire(arguments))

    def _collection_find_one_and_delete(self, collection, arguments):
        return collection.find_one_and_delete(**as_on_the_wire(arguments))

    def _collection_update_one(self, collection, arguments):
        return collection.update_one(**sorting(arguments))

    def _collection_replace_one(self, collection, arguments):
        return collection.replace_one(**sorting(arguments))

    def _collection_bulk_write(self, collection, arguments):
        requests = [self._model(request) for request in arguments.pop("requests")]
        return collection.bulk_write(requests, **arguments)

    def _collection_create_index(self, collection, arguments):
        return collection.create_index(list(arguments.pop("keys").items()), **arguments)

    def _collection_drop_index(self, collection, arguments):
        collection.drop_index(arguments.pop("name"), **arguments)

    def _collection_drop_indexes(self, collection, arguments):
        collection.drop_indexes(**arguments)

    def _collection_list_indexes(self, collection, arguments):
        return list(collection.list_indexes(**arguments))

    def _collection_list_index_names(self, collection, arguments):
        return [index["name"] for index in collection.list_indexes(**arguments)]

    def _collection_rename(self, collection, arguments):
        new_name = arguments.pop("to")
        return collection.rename(new_name, **{camel(key): value for key, value in arguments.items()})

    # Sessions

    def _session_start_transaction(self, session, arguments):
        session.start_transaction(**arguments)

    def _session_with_transaction(self, session, arguments):
        callback = arguments.pop("callback")
        session.with_transaction(lambda _: self._run_operations(callback), **arguments)

    def _session_get_snapshot_time(self, session, _arguments):
        return getattr(session, "snapshot_time", None) or session._snapshot_time

    # Cursors and change streams

    def _cursor_iterate_until_document_or_error(self, cursor, _arguments):
        return next(cursor)

    def _cursor_iterate_once(self, cursor, _arguments):
        return cursor.try_next() if hasattr(cursor, "try_next") else next(cursor, None)

    def _model(self, request, sort_as_document=False):
        """Returns one operation of a bulk write."""
        ((name, given),) = request.items()
        arguments = self._arguments(given)
        if sort_as_document or name in ("updateOne", "replaceOne"):
            arguments = sorting(arguments)
        return BULK_MODELS[name](**arguments)


def as_on_the_wire(arguments):
    """Returns arguments whose method wants some of them under their names on the wire."""
    return {ON_THE_WIRE.get(name, name): value for name, value in arguments.items()}


def sorting(arguments):
    """Updates take the order as a document."""
    return arguments | ({"sort": dict(arguments["sort"])} if "sort" in arguments else {})


def camel(name):
    """Returns `array_filters` as `arrayFilters`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def named_first(command, name):
    """Returns a command with its name first."""
    return SON([(name, command[name]), *((key, value) for key, value in command.items() if key != name)])


def kind_of(target):
    """Returns the kind of an entity."""
    for kind, types in (
        ("client", MongoClient),
        ("database", Database),
        ("collection", Collection),
        ("session", ClientSession),
        ("stream", ChangeStream),
        ("thread", ThreadPoolExecutor),
    ):
        if isinstance(target, types):
            return "cursor" if kind == "stream" else kind
    return "cursor"

