"""The shared state of the checks: a client, a database, the clock, connection strings of other kinds."""

import argparse
import json
import urllib.request
import uuid
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from bson import json_util
from pymongo import MongoClient

DATA = Path(__file__).resolve().parent.parent.parent


def data(name):
    """Reads a file of the data that the tours of all languages share."""
    return json_util.loads((DATA / f"tour_{name}.json").read_text(), json_options=json_util.CANONICAL_JSON_OPTIONS)


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="The tour of Bolide with PyMongo.")
    parser.add_argument("--uri", required=True, help="the connection string of most checks")
    parser.add_argument("--endpoint", required=True, help="the server's address for the admin API")
    parser.add_argument("--key", required=True, help="the account's key")
    parser.add_argument("--certificate", required=True, help="a file with the server's certificate")
    return parser.parse_args()


class World:
    """A context manager: closes its clients at the end."""

    def __init__(self, options):
        self.uri = options.uri
        self.certificate = options.certificate
        self.clock = Clock(options.endpoint, options.key)
        self._parts = urlsplit(options.uri)
        self._clients = []
        self.client = self.connect_to(options.uri)
        self.database_name = f"tour-{uuid.uuid4().hex[:8]}"
        self.database = self.client[self.database_name]

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        for client in self._clients:
            client.close()

    def connect_to(self, uri, **options):
        """Returns a client, which is closed at the end of the tour."""
        client = MongoClient(uri, serverSelectionTimeoutMS=8000, tz_aware=False, **options)
        self._clients.append(client)
        return client

    def connect(self, password=None, user=None, credentials=True, **options):
        """Returns a client with other options than the tour's, and perhaps other credentials."""
        parts = self._parts
        hosts = parts.netloc.rpartition("@")[2]
        user = parts.username if user is None else user
        password = parts.password if password is None else quote(password, safe="")
        login = f"{user}:{password}@" if credentials else ""
        return self.connect_to(f"mongodb://{login}{hosts}/?{urlencode(options)}")

    @property
    def user(self):
        """The name of the user who authenticates."""
        return self._parts.username

    def options(self):
        """Returns the options of the tour's own connection string."""
        return dict(parse_qsl(self._parts.query))

    def collection(self, name, documents=()):
        """Returns a collection of the tour's database that holds exactly these documents."""
        self.database.drop_collection(name)
        collection = self.database[name]
        if documents:
            collection.insert_many(list(documents))
        return collection


class Clock:
    """The server's virtual clock and its purge, through the admin API."""

    def __init__(self, endpoint, key):
        self._endpoint = f"{endpoint.rstrip('/')}/_bolide"
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def now_ms(self):
        """Returns the server's time in epoch milliseconds."""
        return self._call("GET", "clock", None)["nowMs"]

    def set_ms(self, instant):
        """Moves the clock to `instant`, epoch milliseconds."""
        self._call("PUT", "clock", {"setMs": instant})

    def next_second(self):
        """Moves the clock to the beginning of the next second and returns it in epoch milliseconds."""
        instant = (self.now_ms() // 1000 + 1) * 1000
        self.set_ms(instant)
        return instant

    def purge(self, collection):
        """Removes everything in a collection that has expired."""
        path = f"dbs/{quote(collection.database.name)}/colls/{quote(collection.name)}/purge"
        return self._call("POST", path, {"mode": "force"})

    def _call(self, method, path, body):
        encoded = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._endpoint}/{path}", encoded, self._headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
