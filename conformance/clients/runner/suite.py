"""Shared by the SDKs' own suites: the list of expected failures, and the comparison with it.

A test is named `file::test`. An outcome is `passed`, `failed` or `skipped`, and the first line of the failure.
"""

import json
from dataclasses import dataclass

# More failures than this cannot be caused by a busy machine.
AT_MOST_AGAIN = 10


@dataclass(frozen=True)
class Known:
    """The list of an SDK: test → reason. `not_run` are left out, `expected_failures` fail."""

    expected_failures: dict
    not_run: dict

    @classmethod
    def read(cls, path):
        """Reads a list; other members of the file are for people."""
        lists = json.loads(path.read_text())
        return cls(lists["expected_failures"], lists["not_run"])

    def to_run_again(self, found):
        """Returns the tests that failed without being listed, if a busy machine may be why.

        Many tests measure time, and only one that fails on its own as well tells something about the server.
        """
        failed = [test for test, (outcome, _) in found.items() if outcome == "failed"]
        unlisted = [test for test in failed if test not in self.expected_failures]
        return unlisted if len(unlisted) <= AT_MOST_AGAIN else []


def compare(report, sdk, files, found, known):
    """Counts per file. A failure that is not listed fails, and so does a listed test that passes or did not run.

    Listed failures and tests that were left out count as skipped. What is listed for other files is not looked at.
    """
    expected = known.expected_failures
    surprises = {}
    for test, (outcome, message) in found.items():
        if outcome == "failed" and test not in expected:
            surprises[test] = message
        elif outcome == "passed" and test in expected:
            surprises[test] = "is listed as an expected failure but passes; take it off the list"
    for test in expected.keys() - found.keys():
        if file_of(test) in files:
            surprises[test] = "is listed as an expected failure but did not run"
    for test, message in sorted(surprises.items()):
        print(f"   FAIL {test}: {message}")
    for file in files:
        mine = {test: outcome for test, (outcome, _) in found.items() if file_of(test) == file}
        listed = sum(outcome == "failed" and test in expected for test, outcome in mine.items())
        left_out = sum(file_of(test) == file for test in known.not_run)
        passed = sum(outcome == "passed" and test not in expected for test, outcome in mine.items())
        report.add_file(sdk, file, passed, listed)
        report.add(
            f"{sdk}-suite {file}",
            passed=passed,
            failed=sum(file_of(test) == file for test in surprises),
            skipped=listed + left_out + sum(outcome == "skipped" for outcome in mine.values()),
            note=f"{listed} fail as listed" if listed else "",
        )


def compare_all(report, part, found, known, log):
    """Compares the tests of the files that were found; adds one line per file to the report. `log` tells why none ran.

    `part` is the name of the SDK followed by `-suite`.
    """
    files = sorted({file_of(test) for test in found})
    if files:
        compare(report, part.removesuffix("-suite"), files, found, known)
    else:
        report.add(part, failed=1, note=f"no test ran, see {log}")


def file_of(test):
    """Returns the file that a test is in."""
    return test.partition("::")[0]
