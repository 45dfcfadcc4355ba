"""Makes what the parts need: the virtual environment, the node modules, the tours' programs, the SDKs' own tests."""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

from runner.places import CLIENTS

REQUIREMENTS = CLIENTS / "python" / "requirements.txt"
AZCOSMOS = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
MONGO_TOOLS = ["mongodump", "mongorestore", "mongoexport", "mongoimport"]
NODE_MAJOR = 20
RUST_SDK = ["azure_data_cosmos", "azure_data_cosmos_driver"]
# The test files that use a server.
RUST_TESTS = [
    "azure_data_cosmos/binary_encoding.rs",
    "azure_data_cosmos/binary_roundtrip_fuzzer.rs",
    "azure_data_cosmos/emulator.rs",
    "azure_data_cosmos/in_memory_emulator.rs",
    "azure_data_cosmos/split.rs",
    "azure_data_cosmos_driver/emulator.rs",
    "azure_data_cosmos_driver/gateway_query_plan_comparison.rs",
]
RUST_FEATURES = [
    "azure_data_cosmos/__internal_in_memory_emulator",
    "azure_data_cosmos/control_plane",
    "azure_data_cosmos/fault_injection",
    "azure_data_cosmos/key_auth",
    "azure_data_cosmos/unstable_opentelemetry",
    "azure_data_cosmos/unstable_patch",
    "azure_data_cosmos_driver/__internal_testing",
]
# The build decides which tests are ignored.
RUST_FLAGS = [
    "--cfg=cosmos_aad_supported",
    '--cfg=test_category="binary_encoding"',
    '--cfg=test_category="emulator"',
    '--cfg=test_category="split"',
]
# The tour is short and shares a small machine with the server.
JAVA_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


# Held while a virtual environment is made: parts that run side by side share it, and nothing else that is made here.
PREPARING = threading.Lock()


class Missing(Exception):
    """A tool is missing or could not prepare its part. The message is for the user."""


def prepare_venv(places):
    """Creates `.venv` with the pinned packages, unless it has them already."""
    prepare_environment(places.venv, REQUIREMENTS)


def prepare_environment(venv, requirements):
    """Creates a virtual environment with the packages of a file, unless it has them already."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise Missing(f"Python has no `{module}` module; on Debian and Ubuntu: apt install python3-venv")
    stamp, python = venv / "clients-requirements.sha256", venv / "bin" / "python"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    with PREPARING:
        if python.exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        if not python.exists():
            run([sys.executable, "-m", "venv", venv], "python3 -m venv")
        pip(python, "install", "--requirement", requirements)
        stamp.write_text(wanted)


def prepare_python_sdk_tests(places):
    """Unpacks the tests of the pinned azure-cosmos from its source archive; returns their folder."""
    requirement = next(line for line in REQUIREMENTS.read_text().splitlines() if line.startswith("azure-cosmos=="))
    folder = places.work / f"azure_cosmos-{requirement.split('==')[1]}"
    if not folder.exists():
        # Only this one package as source: its build requirements may come as wheels.
        source_only = ["--no-deps", "--no-binary", "azure-cosmos"]
        pip(places.python, "download", *source_only, "--dest", places.scratch, requirement)
        with tarfile.open(places.scratch / f"{folder.name}.tar.gz") as archive:
            archive.extractall(places.scratch / "unpacked", filter="data")
        shutil.move(places.scratch / "unpacked" / folder.name, folder)
    return folder / "tests"


def prepare_node_modules(folder=CLIENTS / "node"):
    """Installs exactly what a folder's lock file names; returns the node executable."""
    node, npm = shutil.which("node"), shutil.which("npm")
    hint = f"install Node.js {NODE_MAJOR} or newer with npm"
    if node is None or npm is None:
        raise Missing(f"`node` or `npm` is not on the path; {hint}")
    major = int(subprocess.run([node, "--version"], capture_output=True, text=True).stdout.lstrip("v").split(".")[0])
    if major < NODE_MAJOR:
        raise Missing(f"Node.js {major} is too old; {hint}")
    installed = folder / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
        run([npm, "ci", "--no-audit", "--no-fund"], "npm ci", cwd=folder)
    return node


def cargo_command():
    """Returns cargo's path."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise Missing("`cargo` is not on the path; install Rust with rustup")
    return cargo


def build_rust_tour(places, folder=CLIENTS / "rust", name="bolide-rust-tour"):
    """Builds the Rust tour of a folder beside the main build; returns its executable."""
    cargo = cargo_command()
    target = places.work / name.removeprefix("bolide-").removesuffix("-tour")
    manifest = folder / "Cargo.toml"
    run([cargo, "build", "--locked", "--quiet", "--manifest-path", manifest, "--target-dir", target], "cargo build")
    return target / "debug" / name


def build_rust_sdk_tests(places):
    """Builds the tests of the pinned azure_data_cosmos and its driver from their archives.

    Returns test file → its program and the folder to run it in. The first build takes many minutes.
    """
    cargo = cargo_command()
    tour = CLIENTS / "rust" / "Cargo.toml"
    told = run([cargo, "metadata", "--locked", "--format-version=1", "--manifest-path", tour], "cargo metadata")
    packages = {package["name"]: package for package in json.loads(told)["packages"]}
    folder = places.work / f"rust-suite-{packages[RUST_SDK[0]]['version']}"
    for name in RUST_SDK:
        # Sources that are unpacked again are built again.
        if not (folder / name).exists():
            unpack(Path(packages[name]["manifest_path"]).parent, places.scratch / name)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.move(places.scratch / name, folder / name)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(CLIENTS / "rust" / "suite" / name, folder / name)
    command = [cargo, "test", "--locked", "--quiet", "--no-run", "--message-format=json"]
    command += ["--target-dir", folder / "target", "--features", ",".join(RUST_FEATURES)]
    command += [f"--package={name}" for name in RUST_SDK]
    command += [f"--test={name}" for name in sorted({Path(file).stem for file in RUST_TESTS})]
    flags = {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(RUST_FLAGS)}
    programs = {}
    for line in run(command, "cargo test", cwd=folder, environment=flags).splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable"):
            package = Path(message["manifest_path"]).parent
            programs[f"{package.name}/{message['target']['name']}.rs"] = (message["executable"], package)
    return {file: programs[file] for file in RUST_TESTS}


def go_command():
    """Returns go's path."""
    go = shutil.which("go")
    if go is None:
        raise Missing("`go` is not on the path; install Go 1.25 or newer")
    return go


def prepare_go_sdk_tests(places):
    """Unpacks the pinned azcosmos with its tests; returns the folder, which may be changed."""
    download = [go_command(), "mod", "download", "-json", AZCOSMOS]
    source = json.loads(run(download, "go mod download", cwd=CLIENTS / "go"))["Dir"]
    return unpack(source, places.scratch / "azcosmos")


def build_go_tour(places, folder=CLIENTS / "go", name="bolide-go-tour"):
    """Builds the Go tour of a folder; returns its executable."""
    go = go_command()
    tour = places.work / "go" / name
    run([go, "build", "-mod=readonly", "-buildvcs=false", "-o", tour, "."], "go build", cwd=folder)
    return tour


def build_mongo_tools(places):
    """Builds the programs of mongo-tools; returns their folder."""
    go = go_command()
    folder = places.work / "go" / "mongo-tools"
    for name in MONGO_TOOLS:
        package = f"github.com/mongodb/mongo-tools/{name}/main"
        build = [go, "build", "-mod=readonly", "-buildvcs=false", "-o", folder / name, package]
        run(build, "go build", cwd=CLIENTS / "mongo" / "tools")
    return folder


def build_java_tour(places, folder=CLIENTS / "java", name="java", main="bolide.Main"):
    """Builds the Java programs of a folder; returns the command line that starts one of them, the tour."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        raise Missing("`java` or `mvn` is not on the path; install a JDK of version 17 or newer, and Maven")
    build = places.work / name
    class_path = build / "class-path"
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={class_path}"]
    run([maven, "--batch-mode", "--quiet", f"-Dtour.build={build}", *goals], "mvn compile", cwd=folder)
    return [java, *JAVA_OPTIONS, "-cp", f"{build / 'classes'}:{class_path.read_text().strip()}", main]


def unpack(source, folder):
    """Copies an unpacked archive out of a package manager's cache, whose files may not be written; returns the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, copy_function=shutil.copyfile)
    for parent, _, _ in os.walk(folder):
        Path(parent).chmod(0o755)
    return folder


def pip(python, *arguments):
    """Runs pip of a virtual environment, given by its interpreter, with the user's own configuration."""
    run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], f"pip {arguments[0]}")


def run(command, what, cwd=None, environment=None):
    """Runs a command that must succeed and returns what it printed; its last lines tell why when it does not."""
    command = [str(word) for word in command]
    environment = os.environ | (environment or {})
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise Missing(f"`{what}` failed with status {done.returncode}:\n{end}")
    return done.stdout
