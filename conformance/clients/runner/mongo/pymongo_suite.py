"""Runs test files of PyMongo itself and compares the outcome with the list of expected failures.

The files that only play the driver specifications' tests are left out: the part `mongo-specifications` plays these. The
tests share one database, so they run one after the other.
"""

import os
import subprocess
import tarfile
import xml.etree.ElementTree as ElementTree

from runner import parts, tools
from runner.places import CLIENTS
from runner.server import Server, ServerFailed
from runner.suite import Known, compare_all

# The files with tests that use a server.
FILES = [
    "test_bulk.py",
    "test_change_stream.py",
    "test_client.py",
    "test_client_bulk_write.py",
    "test_client_context.py",
    "test_collation.py",
    "test_collection.py",
    "test_comment.py",
    "test_common.py",
    "test_cursor.py",
    "test_custom_types.py",
    "test_database.py",
    "test_decimal128.py",
    "test_examples.py",
    "test_grid_file.py",
    "test_gridfs.py",
    "test_gridfs_bucket.py",
    "test_heartbeat_monitoring.py",
    "test_json_util_integration.py",
    "test_monitor.py",
    "test_monitoring.py",
    "test_pooling.py",
    "test_raw_bson.py",
    "test_read_concern.py",
    "test_read_preferences.py",
    "test_retryable_reads.py",
    "test_retryable_writes.py",
    "test_session.py",
    "test_streaming_protocol.py",
    "test_threads.py",
    "test_transactions.py",
]
# They write a hundred thousand documents each; only with `--whole`.
SLOW = [
    "test_bulk.py::TestBulk::test_bulk_max_message_size",
    "test_bulk.py::TestBulk::test_numerous_inserts",
    "test_collection.py::TestCollection::test_numerous_inserts",
]
KNOWN = CLIENTS / "mongo" / "python" / "suite_expected_failures.json"
# Some tests write a hundred thousand documents, which takes a debug build its time.
TEST_SECONDS = 240
SUITE_SECONDS = 2400


def run(places, report, whole):
    """Runs the files, with `whole` those of the asynchronous client as well, and adds one line per file to the report."""
    try:
        tools.prepare_venv(places)
        tests = prepare_tests(places)
        with Server(places, "pymongo-suite", virtual_clock=False, options=["--mongo-no-auth", "--enable-faults"]) as server:
            known = Known.read(KNOWN)
            left_out = [*known.not_run, *([] if whole else SLOW)]
            found = outcomes(places, tests, server, (FILES, left_out), "default")
            if whole:
                asynchronous = [f"asynchronous/{file}" for file in FILES]
                again = outcomes(places, tests, server, (asynchronous, []), "default_async")
                known = Known(known.expected_failures | also_of_asynchronous(known, again), known.not_run)
                found |= again
    except (tools.Missing, ServerFailed, subprocess.TimeoutExpired) as problem:
        parts.fail(report, "pymongo-suite", problem)
        return
    compare_all(report, "pymongo-suite", found, known, places.log("pymongo-suite default"))


def also_of_asynchronous(known, found):
    """Returns the failures of the asynchronous client for which the list has the same test of the synchronous one.

    The names of their classes differ.
    """
    reasons = {}
    for test, reason in [*known.expected_failures.items(), *known.not_run.items()]:
        file, _, name = test.split("::")
        reasons[f"asynchronous/{file}", name] = reason
    failed = [test for test, (outcome, _) in found.items() if outcome == "failed"]
    places = {test: (test.split("::")[0], test.split("::")[-1]) for test in failed}
    return {test: reasons[place] for test, place in places.items() if place in reasons}


def prepare_tests(places):
    """Unpacks the pinned PyMongo's source archive; returns its folder."""
    requirement = next(line for line in tools.REQUIREMENTS.read_text().splitlines() if line.startswith("pymongo=="))
    folder = places.work / requirement.replace("==", "-")
    if not folder.exists():
        # Only this one package as source: its build requirements may come as wheels.
        source_only = ["--no-deps", "--no-binary", "pymongo"]
        tools.pip(places.python, "download", *source_only, "--dest", places.scratch, requirement)
        with tarfile.open(places.scratch / f"{folder.name}.tar.gz") as archive:
            archive.extractall(places.work, filter="data")
        # The tests are to use the installed PyMongo, which has its compiled parts.
        for package in ("pymongo", "bson", "gridfs"):
            (folder / package).rename(folder / f"{package}-source")
    return folder


def outcomes(places, folder, server, chosen, marker):
    """Runs files, but for the tests that are left out; returns test id → (`passed` | `failed` | `skipped`, first line of the failure)."""
    files, left_out = chosen
    results = places.scratch / f"pymongo-suite-{marker}.xml"
    host, _, port = server.mongo.rpartition(":")
    command = [places.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "ignore"]
    # Other tracebacks make pytest parse the source again, at which it gives up for deeply nested errors.
    command += ["--tb=native"]
    command += [f"--deselect=test/{test}" for test in left_out]
    command += ["-m", marker, f"--timeout={TEST_SECONDS}", f"--junitxml={results}", *(f"test/{file}" for file in files)]
    with places.log(f"pymongo-suite {marker}").open("w") as output:
        subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=os.environ | {"DB_IP": host, "DB_PORT": port, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SUITE_SECONDS,
            check=False,
        )
    return read_results(results) if results.exists() else {}


def read_results(results):
    """Reads the file that pytest wrote; see `outcomes`."""
    found = {}
    for case in ElementTree.parse(results).iter("testcase"):
        # Such as `test.asynchronous.test_bulk.TestBulk`.
        words = (case.get("classname") or "").split(".")
        last = next((index for index, word in enumerate(words) if word.startswith("test_")), None)
        if last is None:
            # A failure of pytest's own, which its log tells.
            continue
        file = "/".join(words[1 : last + 1]) + ".py"
        name = "::".join([file, *words[last + 1 :], case.get("name")])
        bad = next((part for part in case if part.tag in ("failure", "error")), None)
        if bad is not None:
            found[name] = ("failed", next(iter((bad.get("message") or "").splitlines()), "")[:300])
        elif case.find("skipped") is not None:
            found.setdefault(name, ("skipped", ""))
        else:
            found.setdefault(name, ("passed", ""))
    return found
