"""The build backend (PEP 517): maturin, or a binary that was built already.

    pip wheel --no-deps .                                                        maturin compiles the server and makes the wheel
    pip wheel --no-deps --config-settings=binary=PATH .                          the wheel holds this binary
    pip wheel --no-deps --config-settings=binary=PATH --config-settings=platform=TAG .

With a binary nothing is compiled and nothing fetched, so archives, images and wheels of a release can hold the same bytes. `platform` is the
wheel's platform tag; a static binary runs with every C library, so its tag is `manylinux2014_x86_64.musllinux_1_1_x86_64`. Without it the
wheel is for this machine's platform. Both ways take everything else from `pyproject.toml`, and the version from the workspace's `Cargo.toml`.
"""

import base64
import hashlib
import os
import re
import stat
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MATURIN = "maturin>=1.9,<2"
# Archives of the same files are equal byte for byte: the oldest time that the format has.
TIME = (1980, 1, 1, 0, 0, 0)


def get_requires_for_build_wheel(config_settings=None):
    """Returns what must be installed for `build_wheel`: nothing if the binary is there."""
    return [] if _setting(config_settings, "binary") else [MATURIN]


def get_requires_for_build_sdist(_config_settings=None):
    """Returns what must be installed for `build_sdist`."""
    return [MATURIN]


def build_sdist(sdist_directory, config_settings=None):
    """Makes the source archive with maturin."""
    import maturin

    return maturin.build_sdist(sdist_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Makes the wheel in `wheel_directory` and returns its file name."""
    binary = _setting(config_settings, "binary")
    if binary is None:
        import maturin

        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    binary = Path(binary).expanduser()
    if not binary.is_file():
        raise SystemExit(f"config setting binary: no such file. value=`{binary}`")
    platform = _setting(config_settings, "platform") or re.sub(r"[-.]", "_", sysconfig.get_platform())
    return _pack(Path(wheel_directory), _Project(), binary, platform)


class _Project:
    """What `pyproject.toml` and the workspace's manifest say of the package."""

    def __init__(self):
        table = _toml(HERE / "pyproject.toml")["project"]
        self.name = table["name"]
        self.version = _toml(HERE.parent.parent / "Cargo.toml")["workspace"]["package"]["version"]
        self.summary = table["description"]
        self.requires_python = table["requires-python"]
        self.license = table["license"]
        self.license_files = table["license-files"]
        self.keywords = table["keywords"]
        self.classifiers = table["classifiers"]
        self.entry_points = table["entry-points"]
        self.readme = (HERE / table["readme"]).read_text(encoding="utf-8")

    def metadata(self):
        """The file METADATA, core metadata 2.4."""
        lines = [
            "Metadata-Version: 2.4",
            f"Name: {self.name}",
            f"Version: {self.version}",
            f"Summary: {self.summary}",
            f"Keywords: {','.join(self.keywords)}",
            f"Requires-Python: {self.requires_python}",
            f"License-Expression: {self.license}",
            *(f"License-File: {name}" for name in self.license_files),
            *(f"Classifier: {name}" for name in self.classifiers),
            "Description-Content-Type: text/markdown",
        ]
        return "\n".join(lines) + f"\n\n{self.readme}"

    def entry_points_file(self):
        """The file entry_points.txt."""
        groups = self.entry_points.items()
        return "".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items()) for group, names in groups
        )


def _pack(folder, project, binary, platform):
    """Writes the wheel: the module, the binary as a script, and the metadata."""
    tags = [f"py3-none-{tag}" for tag in platform.split(".")]
    stem = f"{project.name}-{project.version}"
    wheel = f"{stem}-py3-none-{platform}.whl"
    info = f"{stem}.dist-info"
    about = ["Wheel-Version: 1.0", "Generator: bolide-backend", "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in tags)]
    module = sorted(path for path in (HERE / "python").rglob("*") if path.suffix in (".py", ".typed"))
    # Every file with its name in the wheel and its mode.
    files = [(path.relative_to(HERE / "python").as_posix(), path.read_bytes(), 0o644) for path in module]
    files.append((f"{stem}.data/scripts/{binary.name}", binary.read_bytes(), 0o755))
    files.append((f"{info}/METADATA", project.metadata().encode(), 0o644))
    files.append((f"{info}/WHEEL", ("\n".join(about) + "\n").encode(), 0o644))
    files.append((f"{info}/entry_points.txt", project.entry_points_file().encode(), 0o644))
    files += [(f"{info}/licenses/{name}", (HERE / name).read_bytes(), 0o644) for name in project.license_files]
    record = "".join(f"{name},{_digest(content)},{len(content)}\n" for name, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, content)
    return wheel


def _digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _setting(config_settings, name):
    """A config setting; the last one if it was given several times."""
    value = (config_settings or {}).get(name)
    return value[-1] if isinstance(value, list) else value


def _toml(path):
    try:
        import tomllib
    except ModuleNotFoundError:  # before Python 3.11; pip has its own copy
        from pip._vendor import tomli as tomllib
    return tomllib.loads(path.read_text(encoding="utf-8"))
