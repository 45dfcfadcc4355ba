"""Runs the driver specifications' tests and the BSON corpus, which are outside the project, with PyMongo."""

import json
import subprocess
import threading
import time

from runner import tools
from runner.mongo.connections import SET_NAME, connection_string
from runner.places import CLIENTS
from runner.server import Server, ServerFailed
from runner.suite import Known, compare

PROGRAMS = CLIENTS / "mongo" / "specifications"
KNOWN = PROGRAMS / "expected_failures.json"
CASE_COUNTS = CLIENTS.parent / "case_counts.json"
SUITE_SECONDS = 1800


def run_specifications(places, report, _whole):
    """The tests in the Unified Test Format."""
    with_fail_points = {"options": ["--enable-faults"], "uri": lambda server: connection_string(server, replicaSet=SET_NAME)}
    run(places, report, "mongo-specifications", "mongo/crud", "run.py", **with_fail_points)


def run_corpus(places, report, _whole):
    """The BSON corpus: every document through the server and back."""
    # It writes messages itself, so it cannot authenticate.
    open_to_all = {"options": ["--mongo-no-auth"], "uri": lambda server: f"mongodb://{server.mongo}/"}
    run(places, report, "mongo-corpus", "mongo/bson-corpus", "corpus.py", **open_to_all)


def run(places, report, part, family, program, options, uri):
    """Runs a program that prints a JSON document per test, and compares the outcomes with the expected failures.

    The server is started with `options`; `uri` makes a connection string to it.
    """
    folder = places.cases / family
    if not folder.is_dir():
        count = json.loads(CASE_COUNTS.read_text())[family]
        report.add(part, skipped=count, note=f"its cases are not beside the project; `--cases DIR` names their folder")
        return
    try:
        tools.prepare_venv(places)
        with Server(places, part, virtual_clock=False, options=options) as server:
            lines = outcomes(places, part, [PROGRAMS / program, "--uri", uri(server), "--folder", folder])
    except (tools.Missing, ServerFailed) as problem:
        print(f"   {problem}")
        report.add(part, failed=1, note=str(problem).splitlines()[0])
        return
    found = {line["test"]: (line["outcome"], line["message"]) for line in lines}
    if not found:
        report.add(part, failed=1, note=f"no test ran, see {places.log(part)}")
        return
    known = Known.read(KNOWN)
    files = sorted({test.partition("::")[0] for test in found})
    compare(report, part, files, found, known)


def outcomes(places, part, command):
    """Runs a program of the virtual environment and returns the documents that it prints.

    A line per file shows where a long run is. A program that takes too long is stopped; what it has printed counts.
    """
    log = places.log(part)
    progress = Progress()
    words = [str(word) for word in [places.python, *command]]
    with log.open("w") as output, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        stop = threading.Timer(SUITE_SECONDS, program.kill)
        stop.start()
        try:
            for line in program.stdout:
                output.write(line)
                if line.startswith('{"test"'):
                    progress.take(json.loads(line))
        finally:
            stop.cancel()
            # After an interruption; a program that has ended is not touched.
            program.kill()
    progress.end_file()
    if program.returncode != 0:
        print(f"   the program ended with status {program.returncode}, see {log}", flush=True)
        progress.lines.append({"test": f"{part}::the program", "outcome": "failed", "message": f"ended with status {program.returncode}"})
    return progress.lines


class Progress:
    """Prints a line per file whose tests have run: how many there were, how many failed, and how long they took."""

    def __init__(self):
        self.lines = []
        self._file = None
        self._count, self._failed, self._begin = 0, 0, time.monotonic()

    def take(self, line):
        """Takes the outcome of a test."""
        if line["file"] != self._file:
            self.end_file()
            self._file = line["file"]
        self._count += 1
        self._failed += line["outcome"] == "failed"
        self.lines.append(line)

    def end_file(self):
        """Prints the line of the last file."""
        if self._file is not None:
            seconds = time.monotonic() - self._begin
            print(f"   {self._file}: {self._count} tests, {self._failed} failed, {seconds:.1f} s", flush=True)
        self._count, self._failed, self._begin = 0, 0, time.monotonic()
