"""A list of named checks and their helpers.

A check is an `async` function that takes the tour's world and raises when its claim does not hold; its name is the
claim. The same checks drive both flavours of the SDK: `settle` awaits what the asynchronous client returns and passes
through what the synchronous client returns.
"""

import asyncio
import inspect
import traceback

from azure.cosmos.exceptions import CosmosHttpResponseError


class Tour:
    """Checks in the order in which they were declared."""

    def __init__(self):
        self.checks = []

    def check(self, function):
        """Declares a check. The function's name, underscores as blanks, is what the report shows."""
        self.checks.append(function)
        return function

    async def run(self, world):
        """Runs every check, prints `ok name` or `FAIL name: reason`, and returns how many failed."""
        failed = 0
        for function in self.checks:
            name = function.__name__.replace("_", " ")
            try:
                await function(world)
                print(f"ok {name}", flush=True)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # every failure is a line of the report, whatever its type
                failed += 1
                print(f"FAIL {name}: {reason(error)}", flush=True)
        print(f"{len(self.checks) - failed} passed, {failed} failed", flush=True)
        return failed


def reason(error):
    """Says in one line what went wrong and where in the check."""
    line = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if "tour" in f.filename), 0)
    text = " ".join(str(error).split())[:400]
    return f"{type(error).__name__} (line {line}): {text}"


async def settle(value):
    """Returns the result of an SDK call of either flavour."""
    return await value if inspect.isawaitable(value) else value


async def rows(pager):
    """Returns every row of a paged result."""
    if hasattr(pager, "__aiter__"):
        return [row async for row in pager]
    return list(pager)


async def pages(pager, token=None):
    """Returns the rows of a paged result, page by page, from the beginning or from a continuation token."""
    by_page = pager.by_page(token)
    if hasattr(by_page, "__aiter__"):
        return [[row async for row in page] async for page in by_page]
    return [list(page) for page in by_page]


async def first_page(pager):
    """Returns the rows of the first page and the continuation token after it."""
    by_page = pager.by_page()
    if hasattr(by_page, "__aiter__"):
        return [row async for row in await by_page.__anext__()], by_page.continuation_token
    return list(next(by_page)), by_page.continuation_token


def equal(actual, expected, what="value"):
    """Fails unless both are equal; the message shows both."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


async def refused(status, call):
    """Expects the server to refuse `call` with `status`; returns the error."""
    try:
        await settle(call())
    except CosmosHttpResponseError as error:
        equal(error.status_code, status, "status")
        return error
    raise AssertionError(f"expected status {status}, but the call succeeded")
