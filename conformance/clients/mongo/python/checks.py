"""A list of named checks and their helpers.

A check is a function that takes the tour's world and raises when its claim does not hold; its name is the claim.
"""

import traceback

from pymongo.errors import PyMongoError


class Tour:
    """Checks in the order in which they were declared."""

    def __init__(self):
        self.checks = []

    def check(self, function):
        """Declares a check. The function's name, underscores as blanks, is what the report shows."""
        self.checks.append((function.__name__.replace("_", " "), function))
        return function

    def case(self, name, function):
        """Declares a check that is one row of a table."""
        self.checks.append((name, function))

    def run(self, world):
        """Runs every check, prints `ok name` or `FAIL name: reason`, and returns how many failed."""
        failed = 0
        for name, function in self.checks:
            try:
                function(world)
                print(f"ok {name}", flush=True)
            except Exception as error:  # every failure is a line of the report, whatever its type
                failed += 1
                print(f"FAIL {name}: {reason(error)}", flush=True)
        print(f"{len(self.checks) - failed} passed, {failed} failed")
        return failed


def reason(error):
    """Says in one line what went wrong and where in the check."""
    line = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if "tour" in f.filename), 0)
    # PyMongo adds the server's whole reply.
    text = " ".join(str(error).partition(", full error: ")[0].split())[:400]
    return f"{type(error).__name__} (line {line}): {text}"


def equal(actual, expected, what="value"):
    """Fails unless both are equal; the message shows both."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def holds(condition, what):
    """Fails unless a condition holds."""
    if not condition:
        raise AssertionError(what)


def refused(code, call):
    """Expects the server to refuse `call` with an error code; returns the error."""
    try:
        call()
    except PyMongoError as error:
        details = getattr(error, "details", None) or {}
        codes = [details.get("code"), *(one["code"] for one in details.get("writeErrors", []))]
        holds(code in codes, f"expected code {code}, got {error}")
        return error
    raise AssertionError(f"expected code {code}, but the call succeeded")
