"""Paths: sources in the repository, everything created under the target directory and `.venv`."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

CLIENTS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Places:
    """Paths of one run.

    `cases` is the folder of the cases that are outside the project; it need not exist. `postgres` is the address of
    a PostgreSQL database beside which servers get databases of their own, if they are to keep their data there; `several` one for parts
    that need several servers over one store. `mongoose` is a checkout of Mongoose, if there is one. `work` holds what is worth keeping between runs (the SDK's source archive, the Rust build, logs); `scratch` holds
    data directories and ready files of this run.
    """

    binary: Path
    venv: Path
    work: Path
    scratch: Path
    cases: Path
    mongoose: Path | None = None
    postgres: str | None = None
    several: str | None = None

    @classmethod
    def of_repository(cls, binary, cases=None, mongoose=None, postgres=None, several=None):
        """Derives the paths from the place of this file and `CARGO_TARGET_DIR`."""
        root = CLIENTS.parent.parent
        work = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")).resolve() / "clients"
        scratch = work / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        beside = root.parent / "shared" / "cases"
        return cls(binary.resolve(), root / ".venv", work, scratch, cases or beside, mongoose, postgres, several)

    @property
    def python(self):
        """The interpreter of the virtual environment."""
        return self.venv / "bin" / "python"

    def log(self, name):
        """Returns the path of a log file, its folder made."""
        folder = self.work / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name.replace(' ', '-').replace(',', '')}.log"

    def remove_scratch(self):
        """Removes what only this run needed."""
        shutil.rmtree(self.scratch, ignore_errors=True)
