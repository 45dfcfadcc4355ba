"""Starts a Bolide server, waits until it is ready, and stops it normally."""

import json
import re
import signal
import subprocess
import time
from urllib.parse import urlsplit

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
START_SECONDS = 20
STOP_SECONDS = 20


class ServerFailed(Exception):
    """The server did not start, or did not stop normally. The message contains the end of its log."""


def new_store(places, name, beside):
    """Makes a database beside another one, with an empty store, and returns its address."""
    database = re.sub("[^a-z0-9]+", "_", name.lower())
    address = urlsplit(beside)._replace(path=f"/{database}").geturl()
    for command in (
        ["psql", beside, "--quiet", "--command", f"drop database if exists {database}"],
        ["psql", beside, "--quiet", "--command", f"create database {database}"],
        [str(places.binary), "init", "--store", address],
    ):
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode != 0:
            raise ServerFailed(f"there is no store in PostgreSQL: {made.stderr or made.stdout}")
    return address


class Server:
    """A running server on free ports; a context manager.

    `name` names its log and ready file. Without `data_dir` it keeps everything in memory; if the run is one on PostgreSQL,
    it has a new store there in any case. `shared` is the address of a store that other servers use, too. `options` are further
    words of its command line.
    """

    def __init__(self, places, name, data_dir=None, virtual_clock=True, shared=None, options=()):
        self._log_path = places.log(f"server {name}")
        self._ready_file = places.scratch / f"{name.replace(' ', '-')}.ready.json"
        store = ["--memory"] if data_dir is None else ["--data-dir", str(data_dir)]
        if shared:
            store = ["--store", shared]
        elif places.postgres:
            store = ["--store", new_store(places, name, places.postgres)]
        clock = ["--virtual-clock"] if virtual_clock else []
        ports = ["--port", "0", "--mongo-port", "0", "--ready-file", str(self._ready_file)]
        self._command = [str(places.binary), "serve", "--key", KEY, *store, *clock, *ports, *options]
        self._process = None
        self._expected_status = 0
        self.http = None
        self.https = None
        self._mongo = None

    def __enter__(self):
        self._ready_file.unlink(missing_ok=True)
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        try:
            ready = self._wait_until_ready()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        self.http, self.https, self._mongo = ready["cosmos"], ready["cosmosTls"], ready["mongo"]
        return self

    @property
    def mongo(self):
        """Host and port of the MongoDB API, such as `127.0.0.1:10255`."""
        if self._mongo is None:
            raise ServerFailed("the server has no address of the MongoDB API in its ready file")
        return urlsplit(self._mongo).netloc.rpartition("@")[2]

    def pid_to_kill(self):
        """Its process id, for who kills it with SIGKILL before it is stopped here."""
        self._expected_status = -signal.SIGKILL
        return self._process.pid

    def __exit__(self, kind, *_error):
        status = self._stop()
        if status != self._expected_status and kind is None:
            raise ServerFailed(f"the server ended with status {status}, expected {self._expected_status}\n{self._log_end()}")

    def _wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServerFailed(f"the server ended with status {self._process.returncode}\n{self._log_end()}")
            try:
                return json.loads(self._ready_file.read_text())
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.02)
        raise ServerFailed(f"the server was not ready within {START_SECONDS} s\n{self._log_end()}")

    def _stop(self):
        """Returns the exit status after SIGTERM; a server that does not end is killed and counts as failed."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return f"none within {STOP_SECONDS} s"

    def _log_end(self):
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-20:])
