"""Runs the own tests of azure_data_cosmos and of its driver, and compares the outcome with the list of expected failures.

Each test file is a program with many tests. Those that want another account than ours (several regions, Gateway 2.0,
the SDK's emulator with its management interface) are ignored by the tests' own switches, which are set when they are
built; see `tools.build_rust_sdk_tests`. Of `in_memory_emulator.rs` and `gateway_query_plan_comparison.rs` many tests
put the same request to this server and to the SDK's own idea of the service, and compare.
"""

import os
import re
import subprocess
from urllib.parse import urlsplit

from runner.places import CLIENTS
from runner.server import KEY
from runner.suite import Known, compare

KNOWN = CLIENTS / "rust" / "sdk_expected_failures.json"
RESULT = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
OUTPUT = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$)", re.MULTILINE | re.DOTALL)
OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
# Some set environment variables for the whole process, and the SDK runs them so.
THREADS = 1
PROGRAM_SECONDS = 2400


def run(places, report, programs, server, trust):
    """Runs the programs, each file's name → its executable and folder, and adds one line per program to the report.

    `trust` is the environment in which the SDK accepts the server's certificate.
    """
    known = Known.read(KNOWN)
    print(f"   running {len(programs)} programs of azure_data_cosmos' own tests", flush=True)
    suite = RustTests(places, f"https://127.0.0.1:{urlsplit(server.https).port}", trust)
    found = {}
    for file, program in programs.items():
        left_out = [f"--skip={test.partition('::')[2]}" for test in known.not_run if test.startswith(f"{file}::")]
        results = suite.outcomes(file, "all", program, left_out)
        if again := known.to_run_again(results):
            results |= suite.outcomes(file, "once more", program, [test.partition("::")[2] for test in again])
        found |= results
    compare(report, "rust", list(programs), found, known)


class RustTests:
    """Runs test programs against one endpoint."""

    def __init__(self, places, endpoint, trust):
        self._places = places
        self._environment = os.environ | trust | {
            "AZURE_COSMOS_CONNECTION_STRING": f"AccountEndpoint={endpoint};AccountKey={KEY};",
            "AZURE_COSMOS_ALLOW_INVALID_CERT": "true",
            "AZURE_COSMOS_TEST_MODE": "required",
        }

    def outcomes(self, file, label, program, selection):
        """Runs a program's selected tests; returns test → outcome."""
        executable, folder = program
        log = self._places.log(f"rust-suite {file.replace('/', ' ')} {label}")
        with log.open("w") as output:
            subprocess.run(
                [executable, "--exact", f"--test-threads={THREADS}", *selection],
                cwd=folder,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=PROGRAM_SECONDS,
                check=False,
            )
        return read_results(file, log.read_text(errors="replace"))


def read_results(file, text):
    """Reads what a program printed; returns test → outcome. An ignored test's reason is not kept."""
    said = dict(OUTPUT.findall(text))
    return {
        f"{file}::{test}": (OUTCOMES[word], message(said.get(test, "")) if word == "FAILED" else "")
        for test, word in RESULT.findall(text)
    }


def message(output):
    """Returns the error or panic that a failed test ended with, or else the start of its output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if line.startswith("Error: "):
            return line[:300]
        if " panicked at " in line:
            return " ".join(lines[at + 1 : at + 4])[:300]
    return " ".join(lines)[:300]
