"""Lets the tests take the server for the emulator, which they know by its port only.

Against "the emulator" they ask for the all-versions change feed in the container's definition, as Bolide wants it, instead of
skipping what an account would have to be configured for.
"""


def pytest_collection(session):
    """Sets the switch before any test module reads it."""
    del session
    import test_config

    test_config.TestConfig.is_emulator = True
