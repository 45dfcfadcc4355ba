"""Tells live runs from recorded ones: nothing is recorded here."""


def is_live():
    """Returns true: every request goes to the server under test. `test_config.py` sets `_cache` on this function."""
    return True
