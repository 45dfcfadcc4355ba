"""Runs test files of azure-cosmos itself and compares the outcome with the list of expected failures.

The tests want a package that is not published; `python/shim` stands in for it. They treat exactly
`https://localhost:8081/` as "the emulator", but none of the files below looks at that, so any free port serves, over
TLS as the SDK's users have it. Their fake regions need the names `localhost` and `127.0.0.1` for the same port.
"""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from urllib.parse import urlsplit

from runner.places import CLIENTS
from runner.server import KEY

FILES = [
    "test_ttl.py",
    "test_crud.py",
    "test_crud_async.py",
    "test_crud_container.py",
    "test_crud_container_async.py",
    "test_crud_database.py",
    "test_crud_database_async.py",
    "test_partition_key.py",
    "test_partition_key_async.py",
    "test_headers.py",
    "test_headers_async.py",
    "test_encoding.py",
    "test_encoding_async.py",
]
EXPECTED_FAILURES = CLIENTS / "python" / "sdk_expected_failures.json"
# Many of the tests wait for time-outs, and each process makes a database of its own: more processes than cores pay.
PROCESSES = 4
TEST_SECONDS = 180
SUITE_SECONDS = 1200


def run(places, report, tests, server):
    """Runs the files and adds one line per file to the report."""
    results = places.scratch / "python-suite.xml"
    log = places.log("python-suite")
    print(f"   running {len(FILES)} files of azure-cosmos' own tests", flush=True)
    with log.open("w") as output:
        subprocess.run(
            pytest_command(places, results), cwd=tests, env=environment(server), stdout=output,
            stderr=subprocess.STDOUT, timeout=SUITE_SECONDS, check=False,
        )
    if not results.exists():
        print("\n".join(f"   {line}" for line in log.read_text(errors="replace").splitlines()[-25:]))
        report.add("python-suite", failed=1, note=f"pytest wrote no results, see {log}")
        return
    compare(report, outcomes(results), expected_failures())


def pytest_command(places, results):
    """Returns the command line of pytest."""
    return [
        str(places.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore",
        "-n", str(PROCESSES), f"--timeout={TEST_SECONDS}", f"--junitxml={results}", *FILES,
    ]  # fmt: skip


def environment(server):
    """Returns the environment that the tests' `test_config.py` reads."""
    host = f"https://localhost:{urlsplit(server.https).port}/"
    return os.environ | {
        "ACCOUNT_HOST": host,
        "ACCOUNT_KEY": KEY,
        "PYTHONPATH": str(CLIENTS / "python" / "shim"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def outcomes(results):
    """Reads pytest's results: test id → (`passed` | `failed` | `skipped`, first line of the failure)."""
    found = {}
    for case in ElementTree.parse(results).iter("testcase"):
        module, _, group = case.get("classname").partition(".")
        name = "::".join(part for part in (f"{module}.py", group, case.get("name")) if part)
        bad = next((part for part in case if part.tag in ("failure", "error")), None)
        if bad is not None:
            found[name] = ("failed", (bad.get("message") or "").splitlines()[0][:300] if bad.get("message") else "")
        elif case.find("skipped") is not None:
            found.setdefault(name, ("skipped", ""))
        else:
            found.setdefault(name, ("passed", ""))
    return found


def expected_failures():
    """Returns the listed tests with their reasons."""
    return json.loads(EXPECTED_FAILURES.read_text())["tests"]


def compare(report, found, expected):
    """Counts per file. A failure that is not listed fails, and so does a listed test that passes or is not there."""
    surprises = {}
    for test, (outcome, message) in found.items():
        if outcome == "failed" and test not in expected:
            surprises[test] = message
        elif outcome == "passed" and test in expected:
            surprises[test] = "is listed as an expected failure but passes; take it off the list"
    for test in expected.keys() - found.keys():
        surprises[test] = "is listed as an expected failure but did not run"
    for test, message in sorted(surprises.items()):
        print(f"   FAIL {test}: {message}")
    for file in FILES:
        mine = {test: outcome for test, (outcome, _) in found.items() if test.startswith(f"{file}::")}
        listed = sum(outcome == "failed" and test in expected for test, outcome in mine.items())
        report.add(
            f"python-suite {file}",
            passed=sum(outcome == "passed" and test not in expected for test, outcome in mine.items()),
            failed=sum(test.startswith(f"{file}::") for test in surprises),
            skipped=listed + sum(outcome == "skipped" for outcome in mine.values()),
            note=f"{listed} fail as listed" if listed else "",
        )
