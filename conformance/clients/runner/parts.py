"""What each part runs: prepare, start servers, run the tours or the suite, count."""

import os
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from runner import go_suite, python_suite, rust_suite, tools
from runner.places import CLIENTS
from runner.server import KEY, Server, ServerFailed, new_store

TOUR_SECONDS = 300


def run_python_tours(places, report):
    """Tours with both flavours of azure-cosmos."""

    def commands():
        tools.prepare_venv(places)
        for flavour in ("sync", "async"):
            yield f"python {flavour}", [places.python, CLIENTS / "python" / f"tour_{flavour}.py"]

    run_tours(places, report, "python", commands)


def run_node_tour(places, report):
    """Tour with @azure/cosmos."""

    def commands():
        yield "node", [tools.prepare_node_modules(), CLIENTS / "node" / "tour.mjs"]

    run_tours(places, report, "node", commands)


def run_rust_tour(places, report):
    """Tour with azure_data_cosmos."""

    def commands():
        yield "rust", [tools.build_rust_tour(places)]

    run_tours(places, report, "rust", commands)


def run_go_tour(places, report):
    """Tour with azcosmos."""

    def commands():
        yield "go", [tools.build_go_tour(places), "--kinds", CLIENTS / "tour_queries.json"]

    run_tours(places, report, "go", commands)


def run_java_tour(places, report):
    """Tour with azure-cosmos for Java, in gateway mode, in direct mode at the default and the strongest consistency, and as a thin client."""

    def commands():
        yield "java", [*tools.build_java_tour(places), "--kinds", CLIENTS / "tour_queries.json"]

    run_tours(places, report, "java", commands)
    try:
        java, *words = tools.build_java_tour(places)
        words += ["--kinds", CLIENTS / "tour_queries.json"]
        command = [java, "-Dbolide.direct=true", *words]
        for level in ("Session", "Strong"):
            with Server(places, f"java direct {level}", options=["--consistency", level]) as server:
                run_tour(places, report, f"java direct, https, memory, {level}", command, server.https)
        thin = ["-DCOSMOS.THINCLIENT_ENABLED=true", "-DCOSMOS.HTTP2_ENABLED=true"]
        with Server(places, "java gateway 2.0", options=["--gateway-v2"]) as server:
            run_tour(places, report, "java gateway 2.0, https, memory", [java, *thin, *words], server.https)
    except (tools.Missing, ServerFailed) as problem:
        fail(report, "java direct", problem)


def run_java_failover(places, report):
    """Two servers over one store in PostgreSQL, of which one is killed under load by a client in direct mode."""
    name = "java-failover"
    try:
        if not places.several:
            raise tools.Missing("`--several` must name a database of PostgreSQL, beside which the servers share another one")
        java, *words = tools.build_java_tour(places, main="bolide.Failover")
        shared = new_store(places, name, places.several)
        options = ["--advertise-host", "localhost"]
        first, second = [
            Server(places, f"{name} {which}", virtual_clock=False, shared=shared, options=options) for which in ("lives", "dies")
        ]
        with first as lives, second as dies:
            both = [trust(places, server.https)["SSL_CERT_FILE"] for server in (lives, dies)]
            certificates = places.scratch / "certificates-of-both.pem"
            certificates.write_text("".join(Path(one).read_text() for one in both))
            victim = ["--victim-port", urlsplit(dies.https).port, "--victim", dies.pid_to_kill()]
            endpoint = f"https://localhost:{urlsplit(lives.https).port}"
            command = [java, "-Dbolide.direct=true", *words, *victim, "--endpoint", endpoint, "--key", KEY]
            run_program(places, report, name, command, {"SSL_CERT_FILE": str(certificates)})
    except (tools.Missing, ServerFailed) as problem:
        fail(report, name, problem)


def run_dotnet_tour(places, report):
    """Tour with requests in the format of the .NET SDK's, from the interpreter that runs this."""

    def commands():
        yield "dotnet", [sys.executable, CLIENTS / "dotnet" / "tour.py"]

    run_tours(places, report, "dotnet", commands)


def run_python_suite(places, report, whole):
    """The tests from azure-cosmos' source archive."""

    def prepare():
        tools.prepare_venv(places)
        return tools.prepare_python_sdk_tests(places)

    def run(tests, server):
        python_suite.run(places, report, tests, server, whole)

    run_suite(places, report, "python-suite", prepare, run)


def run_go_suite(places, report, whole):
    """The tests from azcosmos' module."""

    def prepare():
        return tools.prepare_go_sdk_tests(places)

    def run(tests, server):
        go_suite.run(places, report, tests, server, trust(places, server.https), whole)

    run_suite(places, report, "go-suite", prepare, run)


def run_rust_suite(places, report, _whole):
    """The tests from the archives of azure_data_cosmos and of its driver."""

    def prepare():
        return tools.build_rust_sdk_tests(places)

    def run(programs, server):
        rust_suite.run(places, report, programs, server, trust(places, server.https))

    run_suite(places, report, "rust-suite", prepare, run)


def run_suite(places, report, part, prepare, run):
    """Runs an SDK's own tests, as `prepare` returns them, on a server of their own, which keeps everything in memory."""
    try:
        tests = prepare()
        with Server(places, part, virtual_clock=False) as server:
            run(tests, server)
    except (tools.Missing, ServerFailed, subprocess.TimeoutExpired) as problem:
        fail(report, part, problem)


def run_tours(places, report, part, commands):
    """Runs the tours of one language on the servers and schemes of `run.py`'s description.

    `commands` prepares the language and yields a name and a command line for each tour.
    """
    try:
        tours = list(commands())
    except tools.Missing as problem:
        fail(report, part, problem)
        return
    data_dir = places.scratch / f"{part}-data"
    for store, server, schemes in (
        ("memory", Server(places, f"{part} memory"), ("http", "https")),
        ("data directory", Server(places, f"{part} directory", data_dir=data_dir), ("http",)),
    ):
        try:
            with server:
                for scheme in schemes:
                    for name, command in tours:
                        run_tour(places, report, f"{name}, {scheme}, {store}", command, getattr(server, scheme))
        except ServerFailed as problem:
            fail(report, f"{part} server, {store}", problem)


def run_tour(places, report, name, command, endpoint):
    """Runs one tour as a process."""
    run_program(places, report, name, [*command, "--endpoint", endpoint, "--key", KEY], trust(places, endpoint))


def run_program(places, report, name, command, environment):
    """Runs a program; counts its `ok` and `FAIL` lines and repeats the latter.

    The first word of `name` is that of the SDK in the results.
    """
    command = [str(word) for word in command]
    environment = os.environ | environment | {"PYTHONDONTWRITEBYTECODE": "1"}
    log = places.log(name)
    with log.open("w") as output:
        try:
            status = subprocess.run(
                command, stdout=output, stderr=subprocess.STDOUT, env=environment, timeout=TOUR_SECONDS
            ).returncode
        except subprocess.TimeoutExpired:
            status = f"none within {TOUR_SECONDS} s"
    lines = log.read_text(errors="replace").splitlines()
    failures = [line for line in lines if line.startswith("FAIL ")]
    passed = sum(line.startswith("ok ") for line in lines)
    sdk = name.split(",")[0].split()[0]
    for line in lines:
        word, _, check = line.partition(" ")
        if word in ("ok", "FAIL"):
            report.add_check(sdk, check, word == "ok")
    for line in failures:
        print(f"   {line}")
    broke_off = status not in (0, 1) or not passed
    if broke_off:
        print("\n".join(f"   {line}" for line in lines[-15:]))
    note = f"ended with status {status}, see {log}" if broke_off else ""
    report.add(name, passed=passed, failed=len(failures) + broke_off, note=note)


def trust(places, endpoint):
    """Returns the environment in which each SDK accepts the server's own certificate.

    Python's SDK never verifies loopback hosts. Node, Go and Java trust the certificate itself, so
    its names are checked as well.
    """
    address = urlsplit(endpoint)
    if address.scheme != "https":
        return {}
    certificate = places.scratch / f"certificate-{address.port}.pem"
    certificate.write_text(ssl.get_server_certificate((address.hostname, address.port)))
    return {
        "NODE_EXTRA_CA_CERTS": str(certificate),
        "SSL_CERT_FILE": str(certificate),
        "AZURE_COSMOS_EMULATOR_SERVER_CERT_VALIDATION_DISABLED": "true",
    }


def fail(report, name, problem):
    """Reports a part that could not run; the first line of the problem is enough for the table."""
    print(f"   {problem}")
    report.add(name, failed=1, note=str(problem).splitlines()[0])
