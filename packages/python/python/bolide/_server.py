"""A server process: started on free ports, ended with the block or the process that started it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Mapping, Sequence
from urllib.parse import quote

from . import _cosmos
from ._admin import Admin
from ._binary import find_binary
from ._clock import Clock
from ._errors import BolideError, RequestError, StartError

# The key of the Azure Cosmos DB emulator. It is public, and works on this machine only.
_WELL_KNOWN_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

_POLL_SECONDS = 0.005
# The server needs at most 13 s to end its requests and to close its store.
_STOP_SECONDS = 20
_LOG_BYTES = 64 * 1024
_ABSENT = (404, 405, 501)


def server(
    *,
    data_dir: str | os.PathLike[str] | None = None,
    virtual_clock: bool | datetime = True,
    key: str | None = None,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    binary: str | os.PathLike[str] | None = None,
    start_timeout: float = 30,
) -> Server:
    """Starts a server and returns it when it is ready. Use it in a `with` statement, or call `stop`.

    - `data_dir`: where it keeps its data; without one everything is in memory.
    - `virtual_clock`: whether the clock stands still until `db.clock` moves it; a datetime with a time zone is its first instant, by default it
      begins now. With False the server runs on the system's clock.
    - `key`: the account key, base64; by default the emulator's well-known key.
    - `args`: further options of the server, such as `["--enforce-throughput"]`.
    - `env`: further environment variables. Variables of the caller that begin with `BOLIDE_` are not passed on: options come only from here.
    - `binary`: the binary to start, see `find_binary`.
    - `start_timeout`: seconds.

    Raises `StartError` if there is no binary, or if the server ends or is not ready in time, with the end of what it wrote.
    """
    clock = _clock_options(virtual_clock)
    store = ["--memory"] if data_dir is None else [f"--data-dir={os.fspath(data_dir)}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOLIDE_")}
    environment.update(env or {})
    # In the environment, because every user of the machine may read arguments.
    environment["BOLIDE_KEY"] = key or _WELL_KNOWN_KEY
    command = [find_binary(binary), "--port=0", "--mongo-port=0", "--stop-with-stdin", *store, *clock, *args]
    return Server(command, environment, key or _WELL_KNOWN_KEY, start_timeout)


class Server:
    """A running server. It may be used from several threads.

    - `endpoint`: such as `http://127.0.0.1:41234`, for clients of Cosmos DB
    - `https_endpoint`: the same port with TLS, under a certificate that the server made
    - `key`: the account key, base64
    - `clock`: its clock
    - `pid`: the id of the process
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], key: str, start_timeout: float) -> None:
        """Use `bolide.server`."""
        self._folder = Path(tempfile.mkdtemp(prefix="bolide-"))
        self._ending = threading.Lock()
        self._ended_log: str | None = None
        try:
            self._process = _spawn([*command, f"--ready-file={self._folder / 'ready.json'}"], environment, self._log_file)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise StartError(f"cannot start {command[0]}: {error}") from error
        # Runs when the server is garbage, and at the end of the interpreter.
        self._finalizer = weakref.finalize(self, _kill, self._process, self._folder, os.getpid())
        try:
            ready = self._wait_until_ready(start_timeout)
        except BaseException:
            self._finalizer()
            raise
        self.endpoint: str = ready["cosmos"]
        self.https_endpoint: str = ready["cosmosTls"]
        self.key = key
        self.pid = self._process.pid
        self._mongo: str | None = ready["mongo"]
        self._admin = Admin(self.endpoint, key)
        self.clock = Clock(self._admin)

    @property
    def connection_string(self) -> str:
        """The connection string for clients of Cosmos DB."""
        return f"AccountEndpoint={self.endpoint}/;AccountKey={self.key};"

    @property
    def mongo_uri(self) -> str:
        """The connection string for MongoDB's drivers. Raises `BolideError` if the server was started with `--no-mongo`."""
        if self._mongo is None:
            raise BolideError("the server does not listen for MongoDB's drivers")
        return f"mongodb://localhost:{quote(self.key, safe='')}@{self._mongo.split('://', 1)[1]}/?replicaSet=globaldb"

    def purge(self, database: str, container: str) -> int:
        """Removes what has expired in a container, and returns how many items that were.

        Clients cannot tell the difference, because expired items are absent before, too. With a virtual clock nothing else removes them.
        """
        path = f"dbs/{quote(database, safe='')}/colls/{quote(container, safe='')}/purge"
        return int(self._admin.request("POST", path, {"mode": "force"})["purged"])

    def reset(self) -> None:
        """Removes all databases with everything in them. Clients stay connected."""
        try:
            self._admin.request("POST", "reset", {})
        except RequestError as error:
            if error.status not in _ABSENT:
                raise
            _cosmos.delete_all_databases(self.endpoint, self.key)

    def log(self) -> str:
        """Returns the end of what the server wrote to standard error, also after it has ended."""
        if self._ended_log is not None:
            return self._ended_log
        return _end_of(self._log_file)

    def stop(self) -> None:
        """Stops the server: running requests end, a data directory is complete. A server that has ended already is left alone.

        Raises `BolideError` if it did not end with status 0; it has ended in any case.
        """
        with self._ending:
            if not self._finalizer.alive:
                return
            status: Any = _end(self._process)
            self._ended_log = _end_of(self._log_file)
            self._finalizer()
        if status != 0:
            raise BolideError(f"the server ended with status {status}, expected 0\n{self._ended_log}")

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            # The error of the block is the one to see.
            with contextlib.suppress(BolideError):
                self.stop()

    def __repr__(self) -> str:
        return f"<bolide.Server {self.endpoint} pid={self.pid}>" if hasattr(self, "endpoint") else "<bolide.Server starting>"

    @property
    def _log_file(self) -> Path:
        return self._folder / "server.log"

    def _wait_until_ready(self, limit: float) -> dict[str, Any]:
        deadline = time.monotonic() + limit
        while True:
            status = self._process.poll()
            with contextlib.suppress(FileNotFoundError, ValueError):
                ready: dict[str, Any] = json.loads((self._folder / "ready.json").read_text(encoding="utf-8"))
                return ready
            if status is not None:
                raise StartError(f"the server ended with status {status} while starting\n{_end_of(self._log_file)}")
            if time.monotonic() >= deadline:
                raise StartError(f"the server was not ready within {limit} s\n{_end_of(self._log_file)}")
            time.sleep(_POLL_SECONDS)


def _clock_options(virtual_clock: bool | datetime) -> list[str]:
    if isinstance(virtual_clock, datetime):
        if virtual_clock.tzinfo is None:
            raise ValueError(f"virtual_clock: the instant has no time zone. value=`{virtual_clock}`")
        return [f"--virtual-clock={virtual_clock.astimezone(timezone.utc).isoformat()}"]
    return ["--virtual-clock"] if virtual_clock else []


def _spawn(command: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Starts the process. The pipe to its standard input closes with this process, however that ends, and so ends the server."""
    output: BinaryIO
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=output,
            # Ctrl-C is for the tests; they stop the server when they have ended.
            start_new_session=os.name == "posix",
        )


def _end(process: subprocess.Popen[bytes]) -> int | str:
    """Ends the process and returns its status, or what there is instead of one."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    if os.name == "posix":
        # A fork of this process may still hold the other end of the pipe.
        process.terminate()
    try:
        return process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"none within {_STOP_SECONDS} s"


def _kill(process: subprocess.Popen[bytes], folder: Path, owner: int) -> None:
    """Ends the process if it runs, and removes the folder; not in a fork of the process that started it."""
    if os.getpid() != owner:
        return
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    shutil.rmtree(folder, ignore_errors=True)


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_BYTES))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""
