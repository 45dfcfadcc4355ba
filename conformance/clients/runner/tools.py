"""Makes what the parts need: the virtual environment, the node modules, the Rust tour, the SDK's own tests."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile

from runner.places import CLIENTS

REQUIREMENTS = CLIENTS / "python" / "requirements.txt"
NODE_MAJOR = 20
# The tour is short and shares a small machine with the server.
JAVA_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class Missing(Exception):
    """A tool is missing or could not prepare its part. The message is the hint for the user."""


def prepare_venv(places):
    """Creates `.venv` with the pinned packages, unless it has them already."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise Missing(f"Python has no `{module}` module; on Debian and Ubuntu: apt install python3-venv")
    stamp = places.venv / "clients-requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if places.python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    if not places.python.exists():
        run([sys.executable, "-m", "venv", places.venv], "python3 -m venv")
    pip(places, "install", "--requirement", REQUIREMENTS)
    stamp.write_text(wanted)


def prepare_sdk_tests(places):
    """Unpacks the tests of the pinned azure-cosmos from its source archive; returns their folder."""
    requirement = next(line for line in REQUIREMENTS.read_text().splitlines() if line.startswith("azure-cosmos=="))
    folder = places.work / f"azure_cosmos-{requirement.split('==')[1]}"
    if not folder.exists():
        # Only this one package as source: its build requirements may come as wheels.
        source_only = ["--no-deps", "--no-binary", "azure-cosmos"]
        pip(places, "download", *source_only, "--dest", places.scratch, requirement)
        with tarfile.open(places.scratch / f"{folder.name}.tar.gz") as archive:
            archive.extractall(places.scratch / "unpacked", filter="data")
        shutil.move(places.scratch / "unpacked" / folder.name, folder)
    return folder / "tests"


def prepare_node_modules():
    """Installs exactly what the lock file names; returns the node executable."""
    node, npm = shutil.which("node"), shutil.which("npm")
    hint = f"install Node.js {NODE_MAJOR} or newer with npm"
    if node is None or npm is None:
        raise Missing(f"`node` or `npm` is not on the path; {hint}")
    major = int(subprocess.run([node, "--version"], capture_output=True, text=True).stdout.lstrip("v").split(".")[0])
    if major < NODE_MAJOR:
        raise Missing(f"Node.js {major} is too old; {hint}")
    folder = CLIENTS / "node"
    installed = folder / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
        run([npm, "ci", "--no-audit", "--no-fund"], "npm ci", cwd=folder)
    return node


def build_rust_tour(places):
    """Builds the Rust tour beside the main build; returns its executable."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise Missing("`cargo` is not on the path; install Rust with rustup")
    target = places.work / "rust"
    manifest = CLIENTS / "rust" / "Cargo.toml"
    run([cargo, "build", "--locked", "--quiet", "--manifest-path", manifest, "--target-dir", target], "cargo build")
    return target / "debug" / "bolide-rust-tour"


def build_go_tour(places):
    """Builds the Go tour; returns its executable."""
    go = shutil.which("go")
    if go is None:
        raise Missing("`go` is not on the path; install Go 1.25 or newer")
    tour = places.work / "go" / "bolide-go-tour"
    run([go, "build", "-mod=readonly", "-buildvcs=false", "-o", tour, "."], "go build", cwd=CLIENTS / "go")
    return tour


def build_java_tour(places):
    """Builds the Java tour; returns the command line that starts it."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        raise Missing("`java` or `mvn` is not on the path; install a JDK of version 17 or newer, and Maven")
    build = places.work / "java"
    class_path = build / "class-path"
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={class_path}"]
    run([maven, "--batch-mode", "--quiet", f"-Dtour.build={build}", *goals], "mvn compile", cwd=CLIENTS / "java")
    return [java, *JAVA_OPTIONS, "-cp", f"{build / 'classes'}:{class_path.read_text().strip()}", "bolide.Main"]


def pip(places, *arguments):
    """Runs pip of the virtual environment with the user's own configuration."""
    run([places.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], f"pip {arguments[0]}")


def run(command, what, cwd=None):
    """Runs a command that must succeed; its last lines become the message when it does not."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise Missing(f"`{what}` failed with status {done.returncode}:\n{end}")
