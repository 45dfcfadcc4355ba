"""The named things of a test: clients with their events, databases, collections, sessions, cursors, results."""

from bson.codec_options import CodecOptions
from pymongo import MongoClient, ReadPreference, WriteConcern
from pymongo.client_session import ClientSession
from pymongo.monitoring import CommandListener, ConnectionPoolListener
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import make_read_preference, read_pref_mode_from_name
from pymongo.server_api import ServerApi

# Their contents are secret, so they are only observed where a test asks for it.
SENSITIVE = ["authenticate", "copydb", "copydbgetnonce", "copydbsaslstart", "createUser", "getnonce", "saslContinue"]
SENSITIVE += ["saslStart", "updateUser"]
NEVER_OBSERVED = ["configureFailPoint", *SENSITIVE]

# A test that waits for more than this fails.
SELECTION_MS = 5_000
# As short as drivers allow: after some errors a client waits for the next heartbeat.
HEARTBEAT_MS = 500


class Events(CommandListener, ConnectionPoolListener):
    """Records the events that a test observes."""

    def __init__(self, observed, ignored):
        self.commands = []
        self.pool = []
        self._observed = [name.lower() for name in observed]
        self._ignored = [name.lower() for name in [*ignored, *NEVER_OBSERVED]]

    def started(self, event):
        """A command is about to be sent."""
        self._command("commandStartedEvent", event)

    def succeeded(self, event):
        """A command had a reply."""
        self._command("commandSucceededEvent", event)

    def failed(self, event):
        """A command had an error or none."""
        self._command("commandFailedEvent", event)

    def _command(self, kind, event):
        if kind.lower() in self._observed and event.command_name.lower() not in self._ignored:
            self.commands.append((kind, event))

    def _pool(self, kind, event):
        if kind.lower() in self._observed:
            self.pool.append((kind, event))

    def pool_created(self, event):
        """A pool was made."""
        self._pool("poolCreatedEvent", event)

    def pool_ready(self, event):
        """A pool can be used."""
        self._pool("poolReadyEvent", event)

    def pool_cleared(self, event):
        """Every connection of a pool is given up."""
        self._pool("poolClearedEvent", event)

    def pool_closed(self, event):
        """A pool has ended."""
        self._pool("poolClosedEvent", event)

    def connection_created(self, event):
        """A connection is about to be made."""
        self._pool("connectionCreatedEvent", event)

    def connection_ready(self, event):
        """A connection can be used."""
        self._pool("connectionReadyEvent", event)

    def connection_closed(self, event):
        """A connection has ended."""
        self._pool("connectionClosedEvent", event)

    def connection_check_out_started(self, event):
        """A connection is asked for."""
        self._pool("connectionCheckOutStartedEvent", event)

    def connection_check_out_failed(self, event):
        """No connection was to be had."""
        self._pool("connectionCheckOutFailedEvent", event)

    def connection_checked_out(self, event):
        """A connection is in use."""
        self._pool("connectionCheckedOutEvent", event)

    def connection_checked_in(self, event):
        """A connection is no longer in use."""
        self._pool("connectionCheckedInEvent", event)


class Entities:
    """Name → entity. `uri` is the server's connection string."""

    def __init__(self, uri):
        self._uri = uri
        self._all = {}
        self._lsids = {}
        self.events = {}
        self.clients = []

    def __getitem__(self, name):
        return self._all[name]

    def __setitem__(self, name, value):
        if name in self._all:
            raise ValueError(f"there are two entities `{name}`")
        self._all[name] = value

    def lsid(self, name):
        """Returns the id of a session, also after its end."""
        entity = self._all[name]
        if isinstance(entity, ClientSession) and not entity.has_ended:
            self._lsids[name] = entity.session_id
        return self._lsids[name]

    def create(self, specifications):
        """Makes entities as `createEntities` describes them."""
        for specification in specifications:
            ((kind, options),) = specification.items()
            make = getattr(self, f"_make_{kind}", None)
            if make is None:
                raise NotImplementedError(f"entity {kind}")
            self[options["id"]] = make(options)

    def _make_client(self, options):
        events = Events(options.get("observeEvents", []), options.get("ignoreCommandMonitoringEvents", []))
        if options.get("observeSensitiveCommands"):
            raise NotImplementedError("observeSensitiveCommands")
        waits = {"serverSelectionTimeoutMS": SELECTION_MS, "heartbeatFrequencyMS": HEARTBEAT_MS}
        settings = {**waits, **options.get("uriOptions", {})}
        if "serverApi" in options:
            api = options["serverApi"]
            settings["server_api"] = ServerApi(
                api["version"], strict=api.get("strict"), deprecation_errors=api.get("deprecationErrors")
            )
        client = MongoClient(self._uri, event_listeners=[events], **settings)
        self.events[options["id"]] = events
        self.clients.append(client)
        return client

    def _make_database(self, options):
        return self[options["client"]].get_database(options["databaseName"], **handles(options.get("databaseOptions")))

    def _make_collection(self, options):
        database = self[options["database"]]
        return database.get_collection(options["collectionName"], **handles(options.get("collectionOptions")))

    def _make_session(self, options):
        given = options.get("sessionOptions", {})
        settings = {}
        if "causalConsistency" in given:
            settings["causal_consistency"] = given["causalConsistency"]
        if "snapshot" in given:
            settings["snapshot"] = given["snapshot"]
        if "snapshotTime" in given:
            settings["snapshot_time"] = self[given["snapshotTime"]]
        if "defaultTransactionOptions" in given:
            from pymongo.client_session import TransactionOptions

            settings["default_transaction_options"] = TransactionOptions(**transaction(given["defaultTransactionOptions"]))
        session = self[options["client"]].start_session(**settings)
        self._lsids[options["id"]] = session.session_id
        return session

    def close(self):
        """Ends sessions, cursors and clients."""
        for entity in self._all.values():
            if isinstance(entity, ClientSession) and not entity.has_ended:
                entity.end_session()
        for client in self.clients:
            client.close()


def handles(options):
    """Returns the concerns and the preference of a database or collection as PyMongo wants them."""
    options = options or {}
    settings = {}
    if "readConcern" in options:
        settings["read_concern"] = ReadConcern(**options["readConcern"])
    if "writeConcern" in options:
        settings["write_concern"] = write_concern(options["writeConcern"])
    if "readPreference" in options:
        settings["read_preference"] = read_preference(options["readPreference"])
    if settings:
        settings["codec_options"] = CodecOptions()
    return settings


def transaction(options):
    """Returns the options of a transaction as PyMongo wants them."""
    settings = handles(options)
    settings.pop("codec_options", None)
    if "maxCommitTimeMS" in options:
        settings["max_commit_time_ms"] = options["maxCommitTimeMS"]
    return settings


def write_concern(options):
    """Returns a write concern."""
    names = {"journal": "j", "wtimeoutMS": "wtimeout"}
    return WriteConcern(**{names.get(name, name): value for name, value in options.items()})


def read_preference(options):
    """Returns a read preference."""
    if "mode" not in options:
        return ReadPreference.PRIMARY
    mode = read_pref_mode_from_name(options["mode"])
    return make_read_preference(mode, options.get("tagSets"), options.get("maxStalenessSeconds", -1))
