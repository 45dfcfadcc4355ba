"""The parts of `run.py`: paths, starting a server, the parts, reporting of results."""
