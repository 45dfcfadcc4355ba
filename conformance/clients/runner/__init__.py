"""The parts of `run.py`: where things lie, how a server is started, what each part does, how results are told."""
