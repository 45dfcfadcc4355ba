"""Runs queries with SQLite and DuckDB over the same JSON texts: one request and one response per line, in JSON.

The first argument is a directory with items.ndjson. Each peer has a table items(doc) in a file of its own there, made once.
"""

import json
import os
import sqlite3
import sys
import time

import duckdb

home = sys.argv[1]
texts = os.path.join(home, "items.ndjson")


def made(name, make):
    path = os.path.join(home, name)
    if not os.path.exists(path):
        unfinished = path + ".unfinished"
        if os.path.exists(unfinished):
            os.remove(unfinished)
        make(unfinished)
        os.rename(unfinished, path)
    return path


def make_sqlite(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE items (doc TEXT NOT NULL)")
    with open(texts, encoding="utf-8") as lines:
        connection.executemany("INSERT INTO items VALUES (?)", ((line.rstrip("\n"),) for line in lines))
    connection.commit()
    connection.close()


def make_duckdb(path):
    connection = duckdb.connect(path)
    # It would be mixed with the responses.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("CREATE TABLE items (doc JSON NOT NULL)")
    connection.execute("INSERT INTO items SELECT json FROM read_ndjson_objects(?)", [texts])
    connection.close()


peers = {
    "sqlite": sqlite3.connect(made("peer.sqlite", make_sqlite)),
    "duckdb": duckdb.connect(made("peer.duckdb", make_duckdb), read_only=True),
}
peers["duckdb"].execute("SET enable_progress_bar = false")
# Enough for reading the whole table.
peers["sqlite"].execute("PRAGMA mmap_size = 4294967296")
peers["sqlite"].execute("PRAGMA cache_size = -65536")


def answer(message):
    print(json.dumps(message), flush=True)


answer({"versions": f"DuckDB {duckdb.__version__} with one thread, SQLite {sqlite3.sqlite_version}."})
for line in sys.stdin:
    request = json.loads(line)
    started = time.perf_counter()
    rows = peers[request["peer"]].execute(request["sql"]).fetchall()
    seconds = time.perf_counter() - started
    answer({"seconds": seconds, "rows": rows})
