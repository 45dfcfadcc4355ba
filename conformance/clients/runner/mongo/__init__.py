"""The parts of `run.py` for the MongoDB API."""
