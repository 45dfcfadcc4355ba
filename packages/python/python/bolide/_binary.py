"""Where the binary is."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from ._errors import StartError

_NAME = "bolide.exe" if sys.platform == "win32" else "bolide"


def find_binary(path: str | os.PathLike[str] | None = None) -> str:
    """Returns the path of the binary.

    In this order: `path`, the environment variable `BOLIDE_BIN`, the binary of this package, `bolide` on the `PATH`.

    Raises `StartError` if there is none, or if `path` or `BOLIDE_BIN` is not an executable file.
    """
    for source, named in (("binary", path), ("BOLIDE_BIN", os.environ.get("BOLIDE_BIN") or None)):
        if named is not None:
            if not _is_executable(Path(named)):
                raise StartError(f"{source}: not an executable file. value=`{os.fspath(named)}`")
            return os.path.abspath(named)
    packaged = next((place for place in _places() if _is_executable(place)), None)
    found = packaged or shutil.which("bolide")
    if found is None:
        raise StartError(
            "there is no bolide binary: the package has none for this platform, BOLIDE_BIN is not set, and PATH has none"
        )
    return str(found)


def _places() -> list[Path]:
    """Where installers put the scripts of a package: of the environment, of the user, beside the module (`pip install --target`)."""
    user = sysconfig.get_path("scripts", f"{os.name}_user")
    return [
        Path(sysconfig.get_path("scripts")) / _NAME,
        Path(user) / _NAME,
        Path(__file__).resolve().parent.parent / "bin" / _NAME,
    ]


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
