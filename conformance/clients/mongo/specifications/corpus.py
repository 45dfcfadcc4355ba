#!/usr/bin/env python3
"""Sends the documents of the BSON corpus to a server and prints one JSON document per case, as `run.py` does.

Valid documents must come back byte for byte. A message with a damaged document must be refused, by an error or by the
end of the connection, and the server must serve on. The server must not ask for authentication.
"""

import argparse
import json
import socket
import struct
from pathlib import Path

from bson import BSON, CodecOptions, ObjectId, encode
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient

DATABASE = "corpus"
COLLECTION = "documents"
TIMEOUT_SECONDS = 5
OP_MSG = 2013
HEADER_BYTES = 16


def main():
    """Runs every file of the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uri", required=True, help="the server's connection string")
    parser.add_argument("--folder", type=Path, required=True, help="the folder with the files of the corpus")
    options = parser.parse_args()
    client = MongoClient(options.uri, serverSelectionTimeoutMS=10_000)
    client.drop_database(DATABASE)
    raw = CodecOptions(document_class=RawBSONDocument)
    collection = client[DATABASE].get_collection(COLLECTION, codec_options=raw)
    for path in sorted(options.folder.glob("*.json")):
        file = json.loads(path.read_text())
        for number, case in enumerate(file.get("valid", [])):
            # Descriptions are not unique.
            name = f"{path.stem}::valid {number + 1}: {case['description']}"
            run(path, name, lambda: round_trip(collection, bytes.fromhex(case["canonical_bson"])))
            if "degenerate_bson" in case:
                run(path, f"{name}, degenerate", lambda: harmless(client, bytes.fromhex(case["degenerate_bson"])))
        for number, case in enumerate(file.get("decodeErrors", [])):
            name = f"{path.stem}::decode error {number + 1}: {case['description']}"
            run(path, name, lambda: refused(client, bytes.fromhex(case["bson"])))
    client.close()


def run(path, name, check):
    """Runs a check and prints its outcome."""
    line = {"test": name, "file": path.name, "outcome": "passed", "message": ""}
    try:
        check()
    except Exception as error:  # every failure is a line of the report, whatever its type
        line |= {"outcome": "failed", "message": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
    print(json.dumps(line), flush=True)


def round_trip(collection, document):
    """Stores a document as a field of another, reads it again, and finds it by its value."""
    whole = wrapped(ObjectId(), document)
    collection.insert_one(whole)
    found = collection.find_one({"_id": whole["_id"]})
    demand(found is not None, "the document is not there")
    demand(found.raw == whole.raw, f"stored {whole.raw.hex()}, found {found.raw.hex()}")
    is_equal = {"$expr": {"$eq": ["$v", {"$literal": RawBSONDocument(document)}]}}
    by_value = collection.find_one({"_id": whole["_id"], **is_equal})
    demand(by_value is not None, "the document does not equal itself")


def wrapped(_id, document):
    """Returns `{_id: …, v: document}`."""
    body = b"\x07_id\0" + _id.binary + b"\x03v\0" + document
    return RawBSONDocument(struct.pack("<i", len(body) + 5) + body + b"\0")


def refused(client, document):
    """Sends a damaged document, which must not be taken."""
    reply = insert_raw(client, document)
    demand(reply is None or reply.get("ok") != 1 or "writeErrors" in reply, f"the server took it: {reply}")
    serves_on(client)


def harmless(client, document):
    """Sends a document that is unusual; it may be taken or refused."""
    insert_raw(client, document)
    serves_on(client)


def serves_on(client):
    """Asks for any reply."""
    demand(client.admin.command("ping")["ok"] == 1, "the server does not serve on")


def insert_raw(client, document):
    """Sends an `insert` of the document over a connection of its own; returns the reply, or None if there is none."""
    sequence = b"documents\0" + document
    command = encode({"insert": COLLECTION, "$db": DATABASE})
    body = struct.pack("<I", 0) + b"\0" + command + b"\x01" + struct.pack("<i", len(sequence) + 4) + sequence
    with socket.create_connection(client.address, TIMEOUT_SECONDS) as stream:
        try:
            stream.sendall(struct.pack("<iiii", HEADER_BYTES + len(body), 1, 0, OP_MSG) + body)
            length = struct.unpack("<i", received(stream, HEADER_BYTES)[:4])[0]
            # Flags and the kind of the only section stand before the document.
            return BSON(received(stream, length - HEADER_BYTES)[5:]).decode()
        except ConnectionError:
            return None


def received(stream, count):
    """Reads exactly so many bytes."""
    data = b""
    while len(data) < count:
        part = stream.recv(count - len(data))
        if not part:
            raise ConnectionError("the connection has ended")
        data += part
    return data


def demand(holds, otherwise):
    """Raises an error unless something holds."""
    if not holds:
        raise AssertionError(otherwise)


if __name__ == "__main__":
    main()
