"""Counts the instructions of a program with valgrind's callgrind. Used by `scripts/instructions` and `scripts/weight`."""

import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Missing(Exception):
    """valgrind cannot be used, and why."""


class Callgrind:
    """A valgrind that works on this machine. Where none is installed, Debian's package is unpacked under target/."""

    def __init__(self):
        self.program, self.environment = find()
        probe = subprocess.run([self.program, "--tool=callgrind", "--callgrind-out-file=/dev/null", "true"], capture_output=True, env=self.environment)
        if probe.returncode:
            raise Missing(f"{self.program} cannot run programs on this machine")

    def command(self, *command):
        """The command line that runs a command under callgrind. It ends by printing its count on stderr."""
        return [str(self.program), "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, command)]

    def count(self, *command, **options):
        """Runs a command to its end and returns the instructions of its process."""
        environment = self.environment | options.pop("environment", {})
        run = subprocess.run(self.command(*command), capture_output=True, text=True, env=environment, **options)
        if run.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        return read_count(run.stderr)


def read_count(stderr):
    """The instructions that callgrind reports at the end of its output."""
    return int(re.findall(r"refs:\s+([\d,]+)", stderr)[-1].replace(",", ""))


def find():
    """The program, and the environment it needs."""
    if installed := shutil.which("valgrind"):
        return installed, dict(os.environ)
    folder = ROOT / "target" / "valgrind"
    program = folder / "usr" / "bin" / "valgrind.bin"
    if not program.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
        folder.mkdir(parents=True, exist_ok=True)
        if subprocess.run(["apt-get", "download", "valgrind"], cwd=folder, capture_output=True).returncode == 0:
            for package in folder.glob("*.deb"):
                subprocess.run(["dpkg", "-x", package, folder], check=True)
    if not program.exists():
        raise Missing("valgrind is missing: install it (Debian and Ubuntu: apt-get install valgrind)")
    return program, os.environ | {"VALGRIND_LIB": str(folder / "usr" / "libexec" / "valgrind")}
