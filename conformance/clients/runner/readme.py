"""The README's snippets, run unchanged.

Only the endpoint is another one: the server of a test has a port of its own. Over HTTPS, each SDK trusts the certificate in the way that the
README tells. What .NET needs is on few machines that run this, so its snippet is only counted as skipped.
"""

import os
import re
import shutil
import ssl
import subprocess
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from runner import tools
from runner.places import CLIENTS
from runner.report import Report
from runner.server import Server, ServerFailed

README = CLIENTS.parent.parent / "README.md"
# The address that all snippets use for the server.
ENDPOINT = "http://localhost:8081"
MONGO_ENDPOINT = "localhost:10255"
SECONDS = 240


@dataclass(frozen=True)
class Snippet:
    """A program of the README: its headings and its text."""

    section: str
    language: str
    text: str


@dataclass(frozen=True)
class Program:
    """How a snippet is run: its command line and its expected output."""

    name: str
    snippet: Snippet
    prepare: object
    shows: str
    trust: dict = field(default_factory=dict)
    virtual_clock: bool = False
    schemes: tuple = ("http", "https")


def run(places, report: Report):
    """Runs every snippet that this machine can run."""
    snippets = read(README.read_text())
    for program in programs(snippets):
        for scheme in program.schemes:
            run_one(places, report, program, scheme)
    report.add("readme .NET", skipped=1, note="needs .NET")
    unused = {(one.section, one.language) for one in snippets} - USED
    if unused:
        report.add("readme", failed=1, note=f"no test runs {sorted(unused)}")


# Section and language of every program in the README.
USED = {
    ("First items", "python"),
    ("First items", "js"),
    ("First items", "rust"),
    ("First items", "java"),
    ("First items", "go"),
    ("First items", "csharp"),
    ("First items", "bash"),
    ("First documents", "python"),
    ("First documents", "js"),
    ("Thirty days in milliseconds", "python"),
}


def read(text):
    """Returns the fenced programs of a page, each with its section."""
    snippets, section, lines, language = [], "", [], None
    for line in text.splitlines():
        fence = re.fullmatch(r"```(\w*)", line)
        if language is None and line.startswith("## "):
            section = line[3:]
        elif fence and language is None:
            language, lines = fence[1], []
        elif fence:
            snippets.append(Snippet(section, language, "\n".join(lines) + "\n"))
            language = None
        else:
            lines.append(line)
    return snippets


def programs(snippets):
    """Yields what can be run, in the README's order."""

    def one(section, language):
        return next(one for one in snippets if (one.section, one.language) == (section, language))

    items = "First items"
    yield Program("Python", one(items, "python"), python, "tea")
    yield Program("JavaScript", one(items, "js"), node, "tea", {"NODE_EXTRA_CA_CERTS": "bolide.pem"})
    validation_off = {"AZURE_COSMOS_EMULATOR_SERVER_CERT_VALIDATION_DISABLED": "true"}
    yield Program("Rust", one(items, "rust"), rust, "tea", validation_off)
    yield Program("Java", one(items, "java"), java, "tea")
    yield Program("Go", one(items, "go"), go, "tea", {"SSL_CERT_FILE": "bolide.pem"})
    yield Program("curl", one(items, "bash"), curl, "gone in a minute", {"CURL_CA_BUNDLE": "bolide.pem"})
    documents = "First documents"
    yield Program("PyMongo", one(documents, "python"), python, "'tea'", schemes=("http",))
    yield Program("mongosh", one(documents, "js"), mongosh, "2 documents", schemes=("http",))
    clock = one("Thirty days in milliseconds", "python")
    yield Program("thirty days", clock, python, "gone, to the second", virtual_clock=True, schemes=("http",))


def run_one(places, report, program, scheme):
    """Runs a snippet on a server of its own; its last lines are shown if it fails."""
    name = f"readme {program.name}, {scheme}"
    folder = places.work / "readme" / program.name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with Server(places, name, virtual_clock=program.virtual_clock) as server:
            port = urlsplit(server.http).port
            (folder / "bolide.pem").write_text(ssl.get_server_certificate(("127.0.0.1", port)))
            text = program.snippet.text.replace(ENDPOINT, f"{scheme}://localhost:{port}")
            text = text.replace(MONGO_ENDPOINT, server.mongo)
            command = program.prepare(places, folder, text, scheme)
            command = [str(word).replace(MONGO_ENDPOINT, server.mongo) for word in command]
            trust = program.trust if scheme == "https" else {}
            done = subprocess.run(
                [str(word) for word in command],
                cwd=folder,
                env=os.environ | trust | {"PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
    except (tools.Missing, ServerFailed, subprocess.TimeoutExpired) as problem:
        print(f"   {problem}")
        report.add(name, failed=1, note=str(problem).splitlines()[0])
        return
    if done.returncode == 0 and program.shows in done.stdout:
        report.add(name, passed=1)
        return
    print("\n".join(f"   {line}" for line in (done.stdout + done.stderr).splitlines()[-15:]))
    report.add(name, failed=1, note=f"ended with status {done.returncode}")


def written(folder, name, text):
    """Writes a program into its folder."""
    file = folder / name
    file.write_text(text)
    return file


def python(places, folder, text, _scheme):
    """The virtual environment's interpreter on a file."""
    tools.prepare_venv(places)
    return [places.python, written(folder, "snippet.py", text)]


def node(_places, folder, text, _scheme):
    """Node on a file beside the tour's modules."""
    executable = tools.prepare_node_modules()
    (folder / "node_modules").symlink_to(CLIENTS / "node" / "node_modules")
    return [executable, written(folder, "snippet.mjs", text)]


def mongosh(_places, folder, text, _scheme):
    """The shell on a file, with the connection string of the README."""
    shell = CLIENTS / "mongo" / "shell"
    tools.prepare_node_modules(shell)
    (connection,) = set(re.findall(r'mongosh "(mongodb:[^"]+)"', README.read_text()))
    return [shell / "node_modules" / ".bin" / "mongosh", "--quiet", connection, written(folder, "snippet.js", text)]


def rust(places, folder, text, _scheme):
    """A crate with the SDK's version and the lock file of the tour, built where the tour is."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise tools.Missing("`cargo` is not on the path; install Rust with rustup")
    tour = CLIENTS / "rust"
    manifest = (tour / "Cargo.toml").read_text().replace('name = "bolide-rust-tour"', 'name = "bolide-readme"')
    shutil.copy(tour / "Cargo.lock", folder)
    (folder / "src").mkdir()
    written(folder, "src/main.rs", text)
    target = places.work / "rust"
    command = [cargo, "build", "--quiet", "--manifest-path", written(folder, "Cargo.toml", manifest), "--target-dir", target]
    tools.run(command, "cargo build")
    return [target / "debug" / "bolide-readme"]


def java(places, folder, text, scheme):
    """The source file itself, with the tour's libraries and, over HTTPS, the trust store that the README makes."""
    class_path = tools.build_java_tour(places)[-2]
    trust = []
    if scheme == "https":
        store = ["-keystore", "bolide.p12", "-storepass", "bolide"]
        tools.run(["keytool", "-importcert", "-noprompt", "-alias", "bolide", "-file", "bolide.pem", *store], "keytool", cwd=folder)
        trust = ["-Djavax.net.ssl.trustStore=bolide.p12", "-Djavax.net.ssl.trustStorePassword=bolide"]
    return [shutil.which("java"), *tools.JAVA_OPTIONS, *trust, "-cp", class_path, written(folder, "Sessions.java", text)]


def go(places, folder, text, _scheme):
    """A module with the requirements of the tour."""
    executable = shutil.which("go")
    if executable is None:
        raise tools.Missing("`go` is not on the path; install Go 1.25 or newer")
    for name in ("go.mod", "go.sum"):
        shutil.copy(CLIENTS / "go" / name, folder)
    written(folder, "main.go", text)
    program = places.work / "go" / "bolide-readme"
    tools.run([executable, "build", "-mod=readonly", "-buildvcs=false", "-o", program, "."], "go build", cwd=folder)
    return [program]


def curl(_places, folder, text, _scheme):
    """The shell on a file; it ends with the first command that fails."""
    for tool in ("bash", "curl", "openssl"):
        if shutil.which(tool) is None:
            raise tools.Missing(f"`{tool}` is not on the path")
    return ["bash", "-e", written(folder, "snippet.sh", text)]
