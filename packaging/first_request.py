#!/usr/bin/env python3
"""Measures the time from a release archive to the first answered request: unpack, start, create, read.

    python3 packaging/first_request.py target/dist/bolide-VERSION-TARGET.tar.gz [--limit SECONDS]

Needs nothing but Python. Prints a line for each step, in milliseconds, and the total. The exit status is 1 if the item is not read as it was written, or if
the total is over the limit.
"""

import argparse
import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse

# The published key of the emulator, which the server accepts on this machine only.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
READY_TIMEOUT = 30


def unpack(archive, directory):
    """Unpacks the archive; returns the path of the binary in its only folder."""
    with tarfile.open(archive) as packed:
        # Python before 3.12 has no filters in all of its versions.
        packed.extractall(directory, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (folder,) = pathlib.Path(directory).iterdir()
    return folder / "bolide"


def start(binary, directory):
    """Starts a server on free ports; returns the process and the port once it is ready."""
    ready = pathlib.Path(directory) / "ready.json"
    server = subprocess.Popen(
        [binary, "serve", "--data-dir", pathlib.Path(directory) / "data", "--port", "0", "--mongo-port", "0", "--ready-file", ready],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + READY_TIMEOUT
    while not ready.exists():
        if server.poll() is not None:
            raise SystemExit(f"the server ended: {server.returncode}")
        if time.monotonic() > deadline:
            server.kill()
            raise SystemExit("the server is not ready in time")
        time.sleep(0.001)
    return server, int(json.loads(ready.read_text())["cosmos"].rsplit(":", 1)[1])


def request(connection, verb, kind, link, path, body=None, headers=None):
    """Sends a signed request; returns the document of the answer."""
    date = email.utils.formatdate(usegmt=True)
    text = f"{verb.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    signed = {
        "authorization": urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe=""),
        "x-ms-date": date,
        "x-ms-version": "2020-07-15",
        **(headers or {}),
    }
    connection.request(verb, path, body=json.dumps(body) if body else None, headers=signed)
    response = connection.getresponse()
    document = json.loads(response.read())
    if response.status not in (200, 201):
        raise SystemExit(f"{verb} {path}: {response.status} {document}")
    return document


def create_and_read(port):
    """Creates a database, a container and an item; returns the item as it is read."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    request(connection, "POST", "dbs", "", "/dbs", {"id": "shop"})
    definition = {"id": "sessions", "partitionKey": {"paths": ["/user"], "kind": "Hash", "version": 2}, "defaultTtl": 1800}
    request(connection, "POST", "colls", "dbs/shop", "/dbs/shop/colls", definition)
    link = "dbs/shop/colls/sessions"
    key = {"x-ms-documentdb-partitionkey": '["ada"]'}
    request(connection, "POST", "docs", link, f"/{link}/docs", {"id": "s1", "user": "ada", "cart": ["tea"]}, key)
    return request(connection, "GET", "docs", f"{link}/docs/s1", f"/{link}/docs/s1", headers=key)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive")
    parser.add_argument("--limit", type=float, help="seconds that it may take in all")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        binary = unpack(arguments.archive, directory)
        unpacked = time.perf_counter()
        server, port = start(binary, directory)
        try:
            ready = time.perf_counter()
            item = create_and_read(port)
            done = time.perf_counter()
        finally:
            server.terminate()
            server.wait()
    for step, seconds in [("unpack", unpacked - began), ("start", ready - unpacked), ("create, read", done - ready), ("total", done - began)]:
        print(f"{step:<13}{seconds * 1000:8.1f} ms")
    if item["cart"] != ["tea"]:
        return f"the item is not as it was written: {item}"
    if arguments.limit and done - began > arguments.limit:
        return f"it took longer than {arguments.limit} s"
    return 0


if __name__ == "__main__":
    sys.exit(main())
