"""A real Prometheus that has hours of samples at once: promtool makes its blocks of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.prometheus.releases import OLDEST, Release

from .eventually import eventually
from .prometheus import Prometheus

HOUR_S: Final = 3_600


@dataclass(frozen=True, slots=True)
class Backfill:
    """A series with its samples: Unix time in seconds, and value."""

    name: str
    labels: Mapping[str, str]
    samples: Iterable[tuple[float, float]]


@contextmanager
def backfilled(folder: Path, series: Iterable[Backfill], release: Release = OLDEST) -> Iterator[Prometheus]:
    """Yield a running Prometheus that scrapes nothing, and has these samples."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "samples.txt"
    by_name: dict[str, list[Backfill]] = {}
    for one in series:
        by_name.setdefault(one.name, []).append(one)
    with text.open("w") as file:
        for name, of_name in by_name.items():
            file.write(f"# TYPE {name} gauge\n")
            for one in of_name:
                labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in one.labels.items())
                file.writelines(f"{name}{{{labels}}} {value!r} {at:.3f}\n" for at, value in one.samples)
        file.write("# EOF\n")
    program = release.program("promtool")
    command = [program, "tsdb", "create-blocks-from", "openmetrics", "-q", str(text), str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    text.unlink()
    prometheus = Prometheus(folder, {"global": {}}, "--storage.tsdb.retention.time=10y", release=release)
    try:
        eventually(lambda: prometheus.query("vector(1)"))
        yield prometheus
    finally:
        prometheus.child.end()


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
