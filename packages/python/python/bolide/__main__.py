"""`python -m bolide …` is the command `bolide …`."""

import os
import subprocess
import sys

from ._binary import find_binary
from ._errors import StartError


def main() -> None:
    """Runs the binary with the arguments of this process."""
    try:
        command = [find_binary(), *sys.argv[1:]]
    except StartError as error:
        sys.exit(f"bolide: {error}")
    if os.name == "nt":
        # Windows cannot replace a process.
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
