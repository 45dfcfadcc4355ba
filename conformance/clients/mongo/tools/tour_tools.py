#!/usr/bin/env python3
"""The tour of Bolide with mongo-tools: a database goes out of the server and in again.

`python tour_tools.py --programs DIR --uri URI --endpoint URL --key KEY --certificate FILE`, where DIR holds mongodump,
mongorestore, mongoexport and mongoimport.
"""

import argparse
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from bson import Decimal128, Int64
from pymongo import MongoClient

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from checks import Tour, equal  # noqa: E402

DATABASE = "warehouse"
PROGRAM_SECONDS = 60


class World:
    """The database and the programs."""

    def __init__(self, options):
        self.uri = options.uri
        self.programs = options.programs
        self.client = MongoClient(options.uri, serverSelectionTimeoutMS=8000)
        self.database = self.client[DATABASE]
        self.folder = Path(tempfile.mkdtemp(prefix="bolide-mongo-tools-"))

    def fill(self):
        """Writes two collections with indexes and documents of many types."""
        self.client.drop_database(DATABASE)
        items = [{"_id": n, "n": Int64(n), "price": Decimal128("1.10"), "at": datetime(2026, 1, 2)} for n in range(500)]
        self.database["items"].insert_many(items)
        self.database["items"].create_index("n", unique=True)
        self.database["items"].create_index("at", expireAfterSeconds=10**9)
        self.database["notes"].insert_one({"_id": "x", "text": "Ünï", "list": [1, {"a": None}]})
        self.database.create_collection("cheap", viewOn="items", pipeline=[{"$match": {"n": {"$lt": 10}}}])

    def contents(self):
        """Returns what is in the database."""
        listed = {info["name"]: info for info in self.database.list_collections()}
        names = sorted(name for name in listed if not name.startswith("system."))
        documents = {name: list(self.database[name].find(sort=[("_id", 1)])) for name in names}
        collections = [name for name in names if listed[name]["type"] == "collection"]
        indexes = {name: self.database[name].index_information() for name in collections}
        views = {name: listed[name]["options"] for name in names if name not in collections}
        return documents, indexes, views

    def run(self, program, *words):
        """Runs a program, which must succeed; returns what it printed."""
        command = [str(self.programs / program), f"--uri={self.uri}", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
        printed = done.stdout + done.stderr
        equal(done.returncode, 0, f"{program} printed {printed[-600:]!r} and ended with status")
        return printed


def whole_tour():
    """Returns every check."""
    tour = Tour()

    @tour.check
    def a_dumped_database_is_restored_as_it_was(world):
        world.fill()
        before = world.contents()
        world.run("mongodump", f"--db={DATABASE}", f"--out={world.folder}")
        world.client.drop_database(DATABASE)
        world.run("mongorestore", f"--nsInclude={DATABASE}.*", world.folder)
        equal(world.contents(), before)

    @tour.check
    def a_compressed_archive_is_restored_over_what_is_there(world):
        world.fill()
        before = world.contents()
        archive = world.folder / "archive.gz"
        world.run("mongodump", f"--db={DATABASE}", f"--archive={archive}", "--gzip")
        world.database["items"].delete_many({"_id": {"$lt": 100}})
        world.run("mongorestore", f"--archive={archive}", "--gzip", "--drop")
        equal(world.contents(), before)

    @tour.check
    def a_query_selects_what_is_dumped(world):
        world.fill()
        out = world.folder / "part"
        world.run("mongodump", f"--db={DATABASE}", "--collection=items", '--query={"n": {"$lt": 10}}', f"--out={out}")
        world.client.drop_database(DATABASE)
        world.run("mongorestore", out)
        equal(world.database["items"].count_documents({}), 10)

    @tour.check
    def exported_documents_are_imported(world):
        world.fill()
        documents = list(world.database["items"].find(sort=[("_id", 1)]))
        file = world.folder / "items.json"
        canonical = "--jsonFormat=canonical"
        world.run("mongoexport", f"--db={DATABASE}", "--collection=items", f"--out={file}", canonical)
        world.run("mongoimport", f"--db={DATABASE}", "--collection=copy", f"--file={file}")
        equal(list(world.database["copy"].find(sort=[("_id", 1)])), documents)

    @tour.check
    def imports_update_what_is_there_and_read_tables(world):
        world.fill()
        file = world.folder / "items.csv"
        file.write_text("_id,n,name\n1,1,one\n900,900,more\n")
        words = ["--type=csv", "--headerline", "--mode=upsert", f"--file={file}"]
        world.run("mongoimport", f"--db={DATABASE}", "--collection=items", *words)
        equal(world.database["items"].find_one({"_id": 900}), {"_id": 900, "n": 900, "name": "more"})
        equal(world.database["items"].count_documents({}), 501)

    return tour


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="the folder with the programs")
    parser.add_argument("--uri", required=True, help="the server's connection string")
    for name in ("--endpoint", "--key", "--certificate"):
        parser.add_argument(name, help="not used here; every tour gets it")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(1 if whole_tour().run(World(arguments())) else 0)
