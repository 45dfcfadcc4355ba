"""The part `emulator`: the binary in place of the official emulator.

Its containers are processes that `emulator/engine.py` starts. The published modules of Testcontainers start one each
and wait for it as they do for the official emulator; then the tours of the SDKs run against one that was started as the
documentation of the official emulator says, over HTTP and over HTTPS.
"""

import socket
import subprocess
import sys
import time
import urllib.request

from runner import parts, tools
from runner.places import CLIENTS

FOLDER = CLIENTS / "emulator"
READY_SECONDS = 20
# Without a cleaner, which would be a container of its own. The engine's containers are on this machine, also if this
# itself is a container.
ENVIRONMENT = {
    "TESTCONTAINERS_RYUK_DISABLED": "true",
    "TESTCONTAINERS_HOST_OVERRIDE": "localhost",
    "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
}
# What `docker run --publish 8081:8081 --publish 8080:8080 --publish 1234:1234 IMAGE` asks of an engine.
DOCUMENTED_PORTS = [8081, 8080, 1234]


def run(places, report):
    """Runs the modules of all languages, then the tours."""
    for language, prepare in (("python", python), ("node", node), ("java", java), ("go", go)):
        name = f"testcontainers-{language}"
        try:
            command = prepare(places)
        except (tools.Missing, subprocess.TimeoutExpired) as problem:
            parts.fail(report, name, problem)
            continue
        with engine(places) as containers:
            parts.run_program(places, report, name, command, ENVIRONMENT | {"DOCKER_HOST": containers.url})
            places.log(f"{name} container").write_text(containers.log())
    run_tours(places, report, "http", [])
    run_tours(places, report, "https", ["--protocol", "https"])


def engine(places):
    """Returns an engine whose containers are processes of the binary."""
    sys.path.insert(0, str(FOLDER))
    from engine import Engine

    return Engine(places.binary)


def python(places):
    """Prepares the module for Python, in an environment of its own; returns its command line."""
    venv = places.work / "emulator-venv"
    tools.prepare_environment(venv, FOLDER / "python" / "requirements.txt")
    return [venv / "bin" / "python", FOLDER / "python" / "start.py", "free" if is_free(8081) else "taken"]


def node(_places):
    """Prepares the module for Node.js; returns its command line."""
    return [tools.prepare_node_modules(FOLDER / "node"), FOLDER / "node" / "start.mjs"]


def java(places):
    """Prepares the module for Java; returns its command line."""
    return tools.build_java_tour(places, FOLDER / "java", "emulator-java")


def go(places):
    """Prepares the module for Go; returns its command line."""
    return [tools.build_go_tour(places, FOLDER / "go", "bolide-go-testcontainers")]


def is_free(port):
    """Tells whether nobody listens on a port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def run_tours(places, report, scheme, arguments):
    """Starts a container as documented for a scheme, with these arguments, and runs the tours of four SDKs."""
    name = f"emulator tours {scheme}"
    kinds = ["--kinds", CLIENTS / "tour_queries.json"]
    try:
        tools.prepare_venv(places)
        commands = {
            "python": [places.python, CLIENTS / "python" / "tour_sync.py"],
            "node": [tools.prepare_node_modules(), CLIENTS / "node" / "tour.mjs"],
            "java": [*tools.build_java_tour(places), *kinds],
            "go": [tools.build_go_tour(places), *kinds],
        }
    except (tools.Missing, subprocess.TimeoutExpired) as problem:
        parts.fail(report, name, problem)
        return
    with engine(places) as containers:
        bindings = {f"{port}/tcp": [{"HostPort": str(port) if is_free(port) else ""}] for port in DOCUMENTED_PORTS}
        # The tours move the clock, which is Bolide's own addition.
        definition = {"Cmd": arguments, "Env": ["BOLIDE_VIRTUAL_CLOCK=now"], "HostConfig": {"PortBindings": bindings}}
        container = containers.create("emulator", definition)
        container.start()
        ports = container.description()["NetworkSettings"]["Ports"]
        port, health = (ports[f"{port}/tcp"][0]["HostPort"] for port in (8081, 8080))
        if not is_ready(f"http://localhost:{health}/ready"):
            parts.fail(report, name, f"the container is not ready:\n{container.log()}")
            return
        for language, command in commands.items():
            parts.run_tour(places, report, f"{language}, emulator {scheme}", command, f"{scheme}://localhost:{port}")


def is_ready(url):
    """Waits for a health check as tools do: connections are refused first, and it is 503 until the store is open."""
    for _ in range(READY_SECONDS * 20):
        try:
            with urllib.request.urlopen(url, timeout=1) as response:
                return response.status == 200
        except OSError:
            time.sleep(0.05)
    return False
