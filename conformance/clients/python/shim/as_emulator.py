"""Lets the tests take the server for the emulator, which they know by its port only.

Against "the emulator" they ask for the all-versions change feed in the container's definition, as Bolide wants it, instead of
skipping what an account would have to be configured for. Some take two addresses of it for two regions of one account. Of these
they expect that the port is the well-known one, and that the account itself names 127.0.0.1 although they asked localhost. Here
they are given the port that this server has, and the account's answer with that address before they make regions of it.
"""

import inspect
import os

REGIONS = ("transform_topology_swr_mrr", "transform_topology_mwr")


def pytest_collection(session):
    """Sets the switch before any test module reads it."""
    del session
    import test_config

    test_config.TestConfig.is_emulator = True
    test_config.TestConfig.local_host = os.environ["ACCOUNT_HOST"]
    import _fault_injection_transport
    import _fault_injection_transport_async

    name_the_address(_fault_injection_transport.FaultInjectionTransport)
    name_the_address(_fault_injection_transport_async.FaultInjectionTransportAsync)


def name_the_address(transport):
    """Has a transport's regions be made of an account that names 127.0.0.1."""
    for name in REGIONS:
        setattr(transport, name, staticmethod(with_address(getattr(transport, name))))


def with_address(transform):
    """Wraps one of the transport's transformations of an answer."""

    async def answer_async(inner):
        return Answer(await inner())

    def wrapped(*args, inner, **kwargs):
        if inspect.iscoroutinefunction(transform):
            return transform(*args, inner=lambda: answer_async(inner), **kwargs)
        return transform(*args, inner=lambda: Answer(inner()), **kwargs)

    return wrapped


class Answer:
    """An answer of the server, with another address in its body."""

    def __init__(self, answer):
        self._answer = answer

    def __getattr__(self, name):
        return getattr(self._answer, name)

    def body(self):
        """Returns the body's bytes."""
        return self._answer.body().replace(b"//localhost:", b"//127.0.0.1:")
