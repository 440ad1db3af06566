"""Starts the program `pegboard` that this package installed: `python -m`, and the script that has the name of the package."""

import os
import pathlib
import subprocess
import sys
import sysconfig

PROGRAM = "pegboard.exe" if os.name == "nt" else "pegboard"


def folders():
    """Where an installer may have put scripts: this environment, the user's scheme, and a target folder (`pip install --target`)."""
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    yield pathlib.Path(__file__).resolve().parent.parent / "bin"


def find_program():
    for folder in folders():
        path = os.path.join(folder, PROGRAM)
        if os.path.isfile(path):
            return path
    sys.exit(f"error: {PROGRAM} is in none of {', '.join(map(str, folders()))}\nhint: install the package again")


def main():
    command = [find_program(), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(command, check=False).returncode)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
