"""Runs azcosmos' own tests from its module and compares the outcome with the list of expected failures.

The tests look for the emulator at fixed ports. They are unpacked anew for every run, and those ports replaced by the
server's; the Windows emulator's two gateways are both the one server here.
"""

import json
import os
import re
import subprocess
from urllib.parse import urlsplit

from runner.places import CLIENTS
from runner.suite import Known, compare

KNOWN = CLIENTS / "go" / "sdk_expected_failures.json"
# The files with tests that use a server, and their shared files.
EMULATOR_FILES = "emulator_*test.go"
EMULATOR_PORTS = re.compile(r"(https://(?:localhost|127\.0\.0\.1)):(?:8081|8903)/")
TEST = re.compile(r"^func (Test\w+)\(t \*testing\.T\)", re.MULTILINE)
SUITE_SECONDS = 900


def run(places, report, tests, server, trust, whole):
    """Runs the tests that use a server, or every test if `whole`, and adds one line per file to the report.

    `trust` is the environment in which the SDK accepts the server's certificate.
    """
    here = rf"\1:{urlsplit(server.https).port}/"
    for file in tests.glob(EMULATOR_FILES):
        file.write_text(EMULATOR_PORTS.sub(here, file.read_text()))
    known = Known.read(KNOWN)
    suite = GoTest(places, tests, trust)
    files = suite.files("*_test.go" if whole else EMULATOR_FILES)
    print(f"   running {len(files)} files of azcosmos' own tests", flush=True)
    left_out = {test.partition("::")[2] for test in known.not_run}
    found = suite.outcomes("all files", {name for names in files.values() for name in names} - left_out)
    if again := known.to_run_again(found):
        # Subtests come with the test that they are part of.
        found |= suite.outcomes("once more", {test.partition("::")[2].partition("/")[0] for test in again})
    if found:
        compare(report, "go", list(files), found, known)
    else:
        report.add("go-suite", failed=1, note=f"no test ran, see {places.log('go-suite all files 1')}")


class GoTest:
    """Runs `go test` in the module's folder."""

    def __init__(self, places, tests, trust):
        self._places = places
        self._tests = tests
        self._environment = os.environ | trust | {"EMULATOR": "true"}
        self._file_of = {name: file for file, names in self.files("*_test.go").items() for name in names}

    def files(self, pattern):
        """Returns file → the tests in it, of files that have any."""
        found = {file.name: TEST.findall(file.read_text()) for file in sorted(self._tests.glob(pattern))}
        return {file: names for file, names in found.items() if names}

    def outcomes(self, label, names):
        """Runs the named tests; returns their outcomes, of a test with subtests those of the subtests.

        A panic ends the process, so what it kept from running runs in a further one.
        """
        found = {}
        left = set(names)
        processes = 0
        while left:
            processes += 1
            ended = self._run(self._places.log(f"go-suite {label} {processes}"), left)
            ran = {name.partition("/")[0] for name in ended}
            if not ran & left:
                break
            left -= ran
            found |= {f"{self._file_of[name.partition('/')[0]]}::{name}": outcome for name, outcome in ended.items()}
        return found

    def _run(self, log, names):
        command = ["go", "test", "-json", "-count=1", "-parallel=1", f"-timeout={SUITE_SECONDS}s"]
        command += ["-run", f"^({'|'.join(sorted(names))})$", "."]
        with log.open("w") as output:
            subprocess.run(
                command, cwd=self._tests, env=self._environment, stdout=output, stderr=subprocess.STDOUT, check=False
            )
        return read_results(log.read_text(errors="replace").splitlines())


def read_results(lines):
    """Reads the events that `go test -json` wrote; returns test → outcome."""
    said = {}
    found = {}
    for line in lines:
        event = json.loads(line) if line.startswith("{") else {}
        name, action = event.get("Test"), event.get("Action")
        if name is None:
            continue
        if action == "output":
            said.setdefault(name, []).append(event["Output"].strip())
        elif action in ("pass", "fail", "skip"):
            outcome = {"pass": "passed", "fail": "failed", "skip": "skipped"}[action]
            found[name] = (outcome, message(said.get(name, [])) if action == "fail" else "")
    return {name: outcome for name, outcome in found.items() if not is_told_by_parts(name, found)}


def is_told_by_parts(name, found):
    """Tells whether a test has subtests, and fails, if it does, with one of them."""
    parts = [outcome for other, (outcome, _) in found.items() if other.startswith(f"{name}/")]
    return bool(parts) and (found[name][0] != "failed" or "failed" in parts)


def message(lines):
    """Returns the start of the output of a test, without the headings of its run."""
    return " ".join(line for line in lines if line and not line.startswith(("=== ", "--- ")))[:300]
