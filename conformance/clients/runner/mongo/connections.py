"""Connection strings of a server's MongoDB API, and the environment of programs that use them."""

import ssl
from urllib.parse import quote, urlencode

from runner.server import KEY

# The user of an emulator's connection string; its password is the account's key.
USER = "localhost"
SET_NAME = "globaldb"


def connection_string(server, **options):
    """Returns a connection string with the options that MongoDB's drivers know, such as `directConnection="true"`."""
    return f"mongodb://{USER}:{quote(KEY, safe='')}@{server.mongo}/?{urlencode(options)}"


def certificate(places, server):
    """Writes the server's own certificate to a file and returns its path, for `tlsCAFile`."""
    host, _, port = server.mongo.rpartition(":")
    path = places.scratch / f"certificate-{port}.pem"
    path.write_text(ssl.get_server_certificate((host, int(port))))
    return path
