"""Takes the place of a container engine: `Engine` speaks as much of Docker's API as Testcontainers needs.

Testcontainers creates a container from an image, reads its log, connects to mapped ports and copies files out of it.
Here a container is a process of `bolide --emulator` with the container's variables and arguments, whatever the image is
called. There is no isolation: the process listens on the ports of this machine itself, and its files are those of this
machine.

- A port of the container that is mapped to another port of the machine is passed as `BOLIDE_PORT`, which is what the
  mapping does for clients. A port that is mapped to itself is not passed: the process must find it by the variables and
  arguments.
- Ports that are not mapped are free ones, because nobody could reach them.
- The log has standard output and standard error as they come, in the frames of the API.
"""

import base64
import http.server
import io
import json
import os
import re
import socket
import struct
import subprocess
import tarfile
import threading
import urllib.parse
from pathlib import Path

API_VERSION = "1.44"
STOP_SECONDS = 20
DATABASE_PORT = "8081/tcp"
PORT_VARIABLES = {
    DATABASE_PORT: "BOLIDE_PORT",
    "8080/tcp": "BOLIDE_HEALTH_PORT",
    "1234/tcp": "BOLIDE_EXPLORER_PORT",
}


class Container:
    """One container: its definition, and its process once it was started."""

    def __init__(self, number, name, definition, binary):
        self.id = f"{number:064x}"
        self.name = name or f"container-{number}"
        self.definition = definition
        self._binary = binary
        self._process = None
        self._ports = {}
        self._frames = []
        self._grown = threading.Condition()
        self._open_pipes = 0

    def start(self):
        """Starts the process."""
        self._ports = mapped_ports(self.definition)
        # The path is for the process's own children; of the machine's environment nothing else reaches a container.
        variables = {"PATH": os.environ["PATH"], "BOLIDE_EMULATOR": "1", "BOLIDE_MONGO_PORT": "0", "BOLIDE_MEMORY": "1"}
        given = dict(variable.split("=", 1) for variable in self.definition.get("Env") or [] if "=" in variable)
        for port, variable in PORT_VARIABLES.items():
            if port in self._ports:
                if port.split("/")[0] != self._ports[port]:
                    variables[variable] = self._ports[port]
            elif port != DATABASE_PORT:
                variables[variable] = "0"
        command = [str(self._binary), *(self.definition.get("Cmd") or [])]
        # `BOLIDE_MEMORY` would hide what the variable of the emulator does.
        if "AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE" in given:
            del variables["BOLIDE_MEMORY"]
        self._open_pipes = 2
        self._process = subprocess.Popen(
            command, env=variables | given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        for number, pipe in ((1, self._process.stdout), (2, self._process.stderr)):
            threading.Thread(target=self._copy, args=(number, pipe), daemon=True).start()

    def _copy(self, number, pipe):
        for line in pipe:
            with self._grown:
                self._frames.append((number, line))
                self._grown.notify_all()
        with self._grown:
            self._open_pipes -= 1
            self._grown.notify_all()

    def frames(self, follow):
        """Yields the frames of the log: what there is, and with `follow` what comes until the process ends."""
        at = 0
        while True:
            with self._grown:
                while follow and at == len(self._frames) and self._open_pipes:
                    self._grown.wait()
                new, at = self._frames[at:], len(self._frames)
            if not new:
                return
            for number, line in new:
                yield struct.pack(">BxxxI", number, len(line)) + line

    def stop(self):
        """Ends the process as an engine does: SIGTERM, and SIGKILL after some time."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def log(self):
        """Returns the log as text."""
        return b"".join(line for _, line in self._frames).decode(errors="replace")

    def description(self):
        """Returns the answer to an inspection."""
        is_running = self._process is not None and self._process.poll() is None
        code = 0 if self._process is None or is_running else self._process.returncode
        status = "running" if is_running else ("created" if self._process is None else "exited")
        ports = {port: [{"HostIp": "0.0.0.0", "HostPort": host}] for port, host in self._ports.items()}
        config = {"Image": "bolide", "Env": [], "Labels": {}, "Tty": False, "Hostname": self.id[:12]}
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "Created": "2026-01-01T00:00:00.000000000Z",
            "Image": "sha256:" + "0" * 64,
            "State": {
                "Status": status,
                "Running": is_running,
                "Paused": False,
                "Restarting": False,
                "OOMKilled": False,
                "Dead": False,
                "Pid": self._process.pid if is_running else 0,
                "ExitCode": code,
                "Error": "",
                "StartedAt": "2026-01-01T00:00:00.000000000Z",
                "FinishedAt": "0001-01-01T00:00:00Z",
            },
            "Config": config | {key: value for key, value in self.definition.items() if key in config},
            "HostConfig": {"NetworkMode": "bridge", "PortBindings": {}},
            "Mounts": [],
            "NetworkSettings": {
                "Ports": ports,
                "IPAddress": "127.0.0.1",
                "Gateway": "127.0.0.1",
                "Networks": {"bridge": {"IPAddress": "127.0.0.1", "Gateway": "127.0.0.1", "NetworkID": "bridge"}},
            },
        }


def mapped_ports(definition):
    """Returns the container's ports with the ports of the machine, chosen where the definition leaves them open."""
    bindings = (definition.get("HostConfig") or {}).get("PortBindings") or {}
    ports = {}
    for port in definition.get("ExposedPorts") or {}:
        ports[port] = ""
    for port, hosts in bindings.items():
        ports[port] = next((host.get("HostPort") or "" for host in hosts or []), "")
    return {port: host if host not in ("", "0") else str(free_port()) for port, host in ports.items()}


def free_port():
    """Returns a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        return probe.getsockname()[1]


class Engine:
    """The engine; a context manager. `url` is what `DOCKER_HOST` must be."""

    def __init__(self, binary):
        self._binary = Path(binary).resolve()
        self._containers = {}
        self._lock = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.unknown = []

    @property
    def url(self):
        """The engine's address."""
        return f"tcp://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self._server.shutdown()
        self._server.server_close()
        for container in list(self._containers.values()):
            container.stop()

    def log(self):
        """Returns the logs of the containers that were not removed."""
        return "\n".join(container.log() for container in self._containers.values())

    def create(self, name, definition):
        """Creates a container and returns it."""
        with self._lock:
            container = Container(len(self._containers) + 1, name, definition, self._binary)
            self._containers[container.id] = container
        return container

    def find(self, name):
        """Returns a container by its id, the beginning of its id, or its name; `None` if there is none."""
        for container in self._containers.values():
            if container.id.startswith(name) or container.name == name.lstrip("/"):
                return container
        return None

    def _handler(self):
        engine = self

        class Handler(ApiHandler):
            """Requests to this engine."""

            def __init__(self, *arguments):
                self.engine = engine
                super().__init__(*arguments)

        return Handler


class ApiHandler(http.server.BaseHTTPRequestHandler):
    """Answers requests in the format of Docker's API."""

    protocol_version = "HTTP/1.1"
    engine = None

    def do_GET(self):
        self.dispatch()

    do_HEAD = do_POST = do_DELETE = do_PUT = do_GET

    def log_message(self, *_arguments):
        """Nothing goes to standard error."""

    def dispatch(self):
        """Finds the route and answers."""
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else b""
        url = urllib.parse.urlsplit(self.path)
        path = re.sub(r"^/v[0-9.]+", "", url.path)
        query = {key: values[0] for key, values in urllib.parse.parse_qs(url.query).items()}
        for method, pattern, answer in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and method in (self.command, "*"):
                answer(self, query, body, *(urllib.parse.unquote(part) for part in found.groups()))
                return
        self.engine.unknown.append(f"{self.command} {path}")
        self.send_json({"message": f"this engine has no {self.command} {path}"}, 404)

    def send_json(self, value, status=200):
        self.send_bytes(json.dumps(value).encode(), status, "application/json")

    def send_bytes(self, content, status=200, kind="application/octet-stream", headers=()):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("api-version", API_VERSION)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(content)

    def with_container(self, name):
        """Returns the container, or answers that there is none and returns `None`."""
        container = self.engine.find(name)
        if container is None:
            self.send_json({"message": f"No such container: {name}"}, 404)
        return container


def ping(handler, _query, _body):
    handler.send_bytes(b"OK", kind="text/plain", headers=[("ostype", "linux")])


def version(handler, _query, _body):
    handler.send_json(
        {
            "Version": "27.0.0",
            "ApiVersion": API_VERSION,
            "MinAPIVersion": "1.24",
            "Os": "linux",
            "Arch": "amd64",
            "KernelVersion": "6",
            "Platform": {"Name": "processes instead of containers"},
        }
    )


def info(handler, _query, _body):
    handler.send_json(
        {
            "ID": "processes",
            "Name": "processes",
            "ServerVersion": "27.0.0",
            "OperatingSystem": "processes instead of containers",
            "OSType": "linux",
            "Architecture": "x86_64",
            "Driver": "none",
            "MemTotal": 8 << 30,
            "NCPU": 2,
            "IndexServerAddress": "",
            "Labels": [],
            "SecurityOptions": [],
            "RegistryConfig": {"IndexConfigs": {}, "InsecureRegistryCIDRs": [], "Mirrors": []},
        }
    )


def inspect_image(handler, _query, _body, name):
    config = {"Env": [], "Cmd": [], "Labels": {}, "ExposedPorts": {DATABASE_PORT: {}}}
    handler.send_json(
        {
            "Id": "sha256:" + "0" * 64,
            "RepoTags": [name],
            "Created": "2026-01-01T00:00:00Z",
            "Architecture": "amd64",
            "Os": "linux",
            "Config": config,
        }
    )


def pull_image(handler, _query, _body):
    handler.send_bytes(b'{"status":"Download complete"}\r\n', kind="application/json")


def list_images(handler, _query, _body):
    handler.send_json([])


def prune(handler, _query, _body):
    # Each container ends with its program, so nothing is ever left over.
    handler.send_json({})


def create_container(handler, query, body):
    container = handler.engine.create(query.get("name"), json.loads(body))
    handler.send_json({"Id": container.id, "Warnings": []}, 201)


def list_containers(handler, query, _body):
    # Without an id, reused containers and those of the cleaner are looked for; there never is one.
    ids = json.loads(query.get("filters") or "{}").get("id") or []
    found = [container for container in map(handler.engine.find, ids) if container]
    handler.send_json([summary(container.description()) for container in found])


def summary(description):
    """Returns what a list shows of a container."""
    networks = {"Networks": description["NetworkSettings"]["Networks"]}
    ports = [
        {"PrivatePort": int(port.split("/")[0]), "PublicPort": int(hosts[0]["HostPort"]), "Type": "tcp"}
        for port, hosts in description["NetworkSettings"]["Ports"].items()
    ]
    return {
        "Id": description["Id"],
        "Names": [description["Name"]],
        "Image": description["Config"]["Image"],
        "Labels": description["Config"]["Labels"],
        "State": description["State"]["Status"],
        "Status": description["State"]["Status"],
        "HostConfig": {"NetworkMode": "bridge"},
        "NetworkSettings": networks,
        "Ports": ports,
        "Mounts": [],
    }


def start_container(handler, _query, _body, name):
    container = handler.with_container(name)
    if container:
        container.start()
        handler.send_bytes(b"", 204)


def stop_container(handler, _query, _body, name):
    container = handler.with_container(name)
    if container:
        container.stop()
        handler.send_bytes(b"", 204)


def wait_container(handler, _query, _body, name):
    container = handler.with_container(name)
    if container:
        container.stop()
        handler.send_json({"StatusCode": 0})


def inspect_container(handler, _query, _body, name):
    container = handler.with_container(name)
    if container:
        handler.send_json(container.description())


def send_log(handler, query, _body, name):
    container = handler.with_container(name)
    if not container:
        return
    handler.send_response(200)
    handler.send_header("content-type", "application/vnd.docker.multiplexed-stream")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    try:
        for frame in container.frames(query.get("follow") in ("1", "true", "True")):
            handler.wfile.write(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n")
    except OSError:
        # The client has read enough.
        handler.close_connection = True


def send_archive(handler, query, _body, name):
    if not handler.with_container(name):
        return
    path = Path(query["path"])
    if not path.is_file():
        handler.send_json({"message": f"Could not find the file {path}"}, 404)
        return
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(path, arcname=path.name)
    size = path.stat().st_size
    status = json.dumps({"name": path.name, "size": size, "mode": 0o644, "mtime": "2026-01-01T00:00:00Z"})
    header = ("x-docker-container-path-stat", base64.b64encode(status.encode()).decode())
    handler.send_bytes(archive.getvalue(), kind="application/x-tar", headers=[header])


def create_exec(handler, _query, _body, name):
    if handler.with_container(name):
        handler.send_json({"Id": "exec"}, 201)


def start_exec(handler, _query, _body, _name):
    # Answered as for an image without a shell, as Bolide's is: the stream is opened and ends at once.
    kind = "application/vnd.docker.multiplexed-stream"
    head = f"HTTP/1.1 101 UPGRADED\r\ncontent-type: {kind}\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n"
    handler.wfile.write(head.encode())
    handler.close_connection = True


def inspect_exec(handler, _query, _body, _name):
    handler.send_json({"ID": "exec", "Running": False, "ExitCode": 127, "Pid": 0})


def list_networks(handler, _query, _body):
    handler.send_json([BRIDGE])


def inspect_network(handler, _query, _body, _name):
    handler.send_json(BRIDGE)


BRIDGE = {
    "Name": "bridge",
    "Id": "bridge",
    "Driver": "bridge",
    "Scope": "local",
    "IPAM": {"Driver": "default", "Config": [{"Subnet": "127.0.0.0/8", "Gateway": "127.0.0.1"}]},
    "Containers": {},
    "Options": {},
    "Labels": {},
}

ROUTES = [
    ("*", "/_ping", ping),
    ("GET", "/version", version),
    ("GET", "/info", info),
    ("GET", "/images/(.+)/json", inspect_image),
    ("POST", "/images/create", pull_image),
    ("GET", "/images/json", list_images),
    ("POST", "/(?:containers|images|networks|volumes)/prune", prune),
    ("POST", "/containers/create", create_container),
    ("GET", "/containers/json", list_containers),
    ("POST", "/containers/([^/]+)/start", start_container),
    ("POST", "/containers/([^/]+)/(?:stop|kill)", stop_container),
    ("POST", "/containers/([^/]+)/wait", wait_container),
    ("DELETE", "/containers/([^/]+)", stop_container),
    ("GET", "/containers/([^/]+)/json", inspect_container),
    ("GET", "/containers/([^/]+)/logs", send_log),
    ("*", "/containers/([^/]+)/archive", send_archive),
    ("POST", "/containers/([^/]+)/exec", create_exec),
    ("POST", "/exec/([^/]+)/start", start_exec),
    ("GET", "/exec/([^/]+)/json", inspect_exec),
    ("GET", "/networks", list_networks),
    ("GET", "/networks/([^/]+)", inspect_network),
]
