"""Runs the tours of the MongoDB API: each language on a server in memory and on one with a data directory."""

from runner import parts, tools
from runner.mongo.connections import SET_NAME, certificate, connection_string
from runner.places import CLIENTS
from runner.server import KEY, Server, ServerFailed

# How the tours connect: name of the store, then name of the kind of connection → options of the connection string.
# Checks of the connections themselves use options of their own.
CONNECTIONS = {
    "memory": {
        "replica set": {"replicaSet": SET_NAME},
        "direct and encrypted": {"directConnection": "true", "tls": "true"},
    },
    "data directory": {
        "compressed": {"replicaSet": SET_NAME, "compressors": "zlib"},
    },
}


def run_python_tour(places, report):
    """Tour with PyMongo."""

    def command():
        tools.prepare_venv(places)
        return [places.python, CLIENTS / "mongo" / "python" / "tour_pymongo.py"]

    run_tours(places, report, "pymongo", command)


def run_node_tour(places, report):
    """Tour with the driver for Node.js, and with Mongoose."""

    def command():
        folder = CLIENTS / "mongo" / "node"
        return [tools.prepare_node_modules(folder), folder / "tour.mjs"]

    run_tours(places, report, "mongodb-node", command)


def run_shell_tour(places, report):
    """Tour with mongosh."""

    def command():
        folder = CLIENTS / "mongo" / "shell"
        return [tools.prepare_node_modules(folder), folder / "tour.mjs"]

    run_tours(places, report, "mongosh", command)


def run_rust_tour(places, report):
    """Tour with the Rust driver."""

    def command():
        program = tools.build_rust_tour(places, CLIENTS / "mongo" / "rust", "bolide-mongo-rust-tour")
        return [program, "--tables", CLIENTS / "mongo"]

    run_tours(places, report, "mongodb-rust", command)


def run_go_tour(places, report):
    """Tour with the Go driver."""

    def command():
        program = tools.build_go_tour(places, CLIENTS / "mongo" / "go", "bolide-mongo-go-tour")
        return [program, "--tables", CLIENTS / "mongo"]

    run_tours(places, report, "mongodb-go", command)


def run_java_tour(places, report):
    """Tour with the Java driver."""

    def command():
        words = tools.build_java_tour(places, CLIENTS / "mongo" / "java", "mongo-java")
        return [*words, "--tables", CLIENTS / "mongo"]

    run_tours(places, report, "mongodb-java", command)


def run_tools_tour(places, report):
    """Tour with mongodump, mongorestore, mongoexport and mongoimport."""

    def command():
        tools.prepare_venv(places)
        program = CLIENTS / "mongo" / "tools" / "tour_tools.py"
        return [places.python, program, "--programs", tools.build_mongo_tools(places)]

    run_tours(places, report, "mongo-tools", command)


def run_tours(places, report, sdk, prepare):
    """Runs the tour that `prepare` returns the command of, for every kind of connection."""
    try:
        command = prepare()
    except tools.Missing as problem:
        parts.fail(report, sdk, problem)
        return
    for store, kinds in CONNECTIONS.items():
        data_dir = None if store == "memory" else places.scratch / f"{sdk}-data"
        try:
            with Server(places, f"{sdk} {store}", data_dir=data_dir, options=["--enable-faults"]) as server:
                trusted = certificate(places, server)
                for kind, options in kinds.items():
                    if "tls" in options:
                        options = options | {"tlsCAFile": trusted}
                    words = ["--uri", connection_string(server, **options), "--endpoint", server.http, "--key", KEY]
                    words += ["--certificate", trusted]
                    parts.run_program(places, report, f"{sdk}, {kind}, {store}", [*command, *words], {})
        except (ServerFailed, OSError) as problem:
            parts.fail(report, f"{sdk} server, {store}", problem)
