"""Runs Mongoose's own tests and compares the outcome with the list of expected failures.

They are not published with its package: `--mongoose` names a checkout of its repository.
"""

import json
import os
import re
import shutil
import subprocess

from runner import parts, tools
from runner.places import CLIENTS
from runner.server import Server, ServerFailed
from runner.suite import Known, compare_all

VERSION = "9.9.3"
# What the tests load; the checkout's other development dependencies are for its documentation and its lint.
NEEDED = [
    "acquit",
    "ajv",
    "lodash.isequal",
    "lodash.isequalwith",
    "mkdirp",
    "mocha",
    "moment",
    "mongodb-memory-server",
    "ncp",
    "sinon",
    "uuid",
]
KNOWN = CLIENTS / "mongo" / "node" / "suite_expected_failures.json"
SUITE_SECONDS = 1800


def run(places, report, _whole):
    """Runs all files but those of client-side encryption, which need a library that is not free; adds one line per file to the report."""
    try:
        folder = prepare(places)
        with Server(places, "mongoose-suite", virtual_clock=False, options=["--mongo-no-auth", "--enable-faults"]) as server:
            known = Known.read(KNOWN)
            found = outcomes(places, folder, server, known.not_run)
    except (tools.Missing, ServerFailed, subprocess.TimeoutExpired) as problem:
        parts.fail(report, "mongoose-suite", problem)
        return
    compare_all(report, "mongoose-suite", found, known, places.log("mongoose-suite"))


def prepare(places):
    """Copies the checkout and installs what its tests need; returns the copy."""
    if places.mongoose is None:
        raise tools.Missing(f"--mongoose must name a checkout of Mongoose {VERSION}: its package on npm has no tests")
    package = json.loads((places.mongoose / "package.json").read_text())
    if package["version"] != VERSION:
        raise tools.Missing(f"{places.mongoose} is Mongoose {package['version']}; the list of failures is that of {VERSION}")
    folder = places.work / f"mongoose-{VERSION}"
    if (folder / "node_modules").exists():
        return folder
    shutil.copytree(places.mongoose, folder, ignore=shutil.ignore_patterns("node_modules", ".git"), dirs_exist_ok=True)
    package["devDependencies"] = {name: package["devDependencies"][name] for name in NEEDED}
    (folder / "package.json").write_text(json.dumps(package))
    # No server is downloaded, and no scripts of packages run.
    tools.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], "npm install", cwd=folder)
    return folder


def outcomes(places, folder, server, left_out):
    """Runs the tests, but for those that are left out; returns test → (`passed` | `failed` | `skipped`, first line of the failure)."""
    results = places.scratch / "mongoose-suite.json"
    command = [folder / "node_modules" / ".bin" / "mocha", "--exit", "--timeout", "30000", "--reporter", "json"]
    command += ["--reporter-option", f"output={results}", "--ignore", "test/encryption/**/*.test.js"]
    titles = "|".join(re.escape(test.partition("::")[2]) for test in left_out)
    command += ["--invert", "--grep", f"^(?:{titles})$", "test/**/*.test.js"]
    uri = f"mongodb://{server.mongo}/mongoose_test?replicaSet=globaldb"
    # With the latter two, the tests of transactions and change streams run, too.
    environment = {"MONGOOSE_TEST_URI": uri, "MONGOOSE_REPLSET_URI": uri, "START_REPLICA_SET": "1", "REPLICA_SET": "globaldb"}
    with places.log("mongoose-suite").open("w") as output:
        subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=os.environ | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SUITE_SECONDS,
            check=False,
        )
    return read_results(folder, results) if results.exists() else {}


def read_results(folder, results):
    """Reads the file that mocha wrote; see `outcomes`."""
    found = {}
    read = json.loads(results.read_text())
    for outcome, tests in (("passed", read["passes"]), ("skipped", read["pending"]), ("failed", read["failures"])):
        for test in tests:
            file = os.path.relpath(test["file"], folder / "test") if test.get("file") else "mocha"
            message = next(iter(str(test["err"].get("message") or "").splitlines()), "")[:300]
            # Of several with one name, one that fails counts.
            found[f"{file}::{test['fullTitle']}"] = (outcome, message)
    return found
