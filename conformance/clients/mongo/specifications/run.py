#!/usr/bin/env python3
"""Runs the files of a folder against a server and prints one JSON document per test.

A line is `{"test": "spec::file: description", "file": "spec/file.json", "outcome": "passed" | "failed" | "skipped", "message": "…"}`.
"""

import argparse
import json
import signal
from pathlib import Path

from bson import json_util
from pymongo import MongoClient

from play import Test
from requirements import Identity

# A test that takes longer has got stuck.
TEST_SECONDS = 60
# So has what tidies up after it.
TIDY_SECONDS = 5


class TookTooLong(BaseException):
    """A test did not end. No `Exception`, which a test may expect or a driver may retry after."""


def main():
    """Runs every file of the folder."""
    options = arguments()
    signal.signal(signal.SIGALRM, took_too_long)
    setup = MongoClient(options.uri, serverSelectionTimeoutMS=10_000)
    identity = Identity(setup, is_authenticated="@" in options.uri)
    for path in sorted(options.folder.glob("*/**/*.json")):
        specification = path.relative_to(options.folder).parts[0]
        if options.only and options.only not in str(path):
            continue
        file = json_util.loads(path.read_text())
        for test in file["tests"]:
            if options.test and options.test not in test["description"]:
                continue
            outcome, message = play(options.uri, setup, identity, file, test)
            line = {
                "test": f"{specification}::{path.stem}: {test['description']}",
                "file": str(path.relative_to(options.folder)),
                "outcome": outcome,
                "message": message,
            }
            print(json.dumps(line), flush=True)
    setup.close()


def play(uri, setup, identity, file, test):
    """Plays one test; returns its outcome and what was wrong."""
    if "skipReason" in test:
        return "skipped", test["skipReason"]
    if not all(identity.runs(part.get("runOnRequirements")) for part in (file, test)):
        return "skipped", "for another kind of server"
    signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS, TIDY_SECONDS)
    try:
        Test(uri, setup, file, test).play()
    except (Exception, TookTooLong) as error:  # every failure is a line of the report, whatever its type
        # PyMongo adds the server's whole reply.
        return "failed", f"{type(error).__name__}: {' '.join(str(error).partition(', full error: ')[0].split())[:600]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "passed", ""


def took_too_long(_signal, _frame):
    """Ends a test that has got stuck, or what tidies up after it."""
    raise TookTooLong(f"no end within {TEST_SECONDS} s")


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uri", required=True, help="the server's connection string")
    parser.add_argument("--folder", type=Path, required=True, help="the folder with a folder of files per specification")
    parser.add_argument("--only", help="run only files whose path contains this")
    parser.add_argument("--test", help="run only tests whose description contains this")
    return parser.parse_args()


if __name__ == "__main__":
    main()
