"""
Needs of 10 TB of request logs a day, computed from measured figures: `python -m benchmarks pipeline-page`.

Reads docs/scale.json, which `make bench-pipeline ARGS='--json docs/scale.json'` writes, and writes the tables of
docs/scale.md between its marks.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.pipeline.figures import Figures

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = DOCS / "scale.md"
RESULTS: Final = DOCS / "scale.json"
DAY_SECONDS: Final = 86_400
LOGS: Final = 10e12
"""Bytes a day."""
BUSY: Final = 0.6
"""Highest mean load of the cores: peaks and retries need the rest."""
KEPT_DAYS: Final = 30
REPLAY_HOURS: Final = 1.0
"""Within this time all kept days are replayed."""
CORES_OF_AN_EXECUTOR: Final = 4
Row = tuple[str, str]


def measured(figures: Figures) -> Iterator[Row]:
    """Yield the figures as the page shows them."""
    yield "line of the log", f"{figures.line:,.0f} B"
    yield "line, gzip", f"{figures.packed_line:,.0f} B"
    yield "row of requests", f"{figures.request:,.0f} B"
    yield "row of history, with the sums", f"{figures.row:,.0f} B"
    yield "CPU to read a line", _micro(figures.ingest)
    yield "CPU to make its row of history", _micro(figures.history)
    yield "CPU to replay a row, one candidate", _micro(figures.one)
    yield "CPU to replay a row, 20 candidates", _micro(figures.many)
    yield "largest Python worker", _mib(figures.worker)
    yield "Spark's JVM, two tasks at once", _mib(figures.jvm)


def computed(figures: Figures) -> Iterator[Row]:
    """Yield what is needed, and how much it is."""
    lines = LOGS / figures.line
    yield "lines a day", f"{lines / 1e9:.1f} billion, {lines / DAY_SECONDS:,.0f}/s"
    yield from _cores(figures, lines)
    yield from _disk(figures, lines)
    yield from _replays(figures, lines)
    memory = figures.jvm + CORES_OF_AN_EXECUTOR * figures.worker
    name = f"memory of an executor of {CORES_OF_AN_EXECUTOR} cores"
    yield name, f"{memory / (1 << 30):.1f} GiB"


def _cores(figures: Figures, lines: float) -> Iterator[Row]:
    total = 0.0
    for name, seconds in (("read the lines", figures.ingest), ("make history and sums", figures.history)):
        cores = lines * seconds / DAY_SECONDS / BUSY
        total += cores
        yield f"cores to {name}", f"{cores:,.1f}"
    yield "cores to keep up, together", f"{total:,.0f}"


def _disk(figures: Figures, lines: float) -> Iterator[Row]:
    for name, size, days in (
        ("logs, gzip, of one day", figures.packed_line, 1),
        ("requests of one day", figures.request, 1),
        (f"history of {KEPT_DAYS} days", figures.row, KEPT_DAYS),
    ):
        yield f"disk for {name}", f"{lines * size * days / 1e12:,.2f} TB"


def _replays(figures: Figures, lines: float) -> Iterator[Row]:
    for days in (1, KEPT_DAYS):
        cores = lines * days * figures.many / (REPLAY_HOURS * 3600) / BUSY
        plural = "s" if days > 1 else ""
        yield f"cores to replay {days} day{plural} within an hour", f"{cores:,.0f}"


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.2f} µs"


def _mib(size: float) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def page(text: str, figures: Figures) -> str:
    """Return the page with new lists."""
    text = _between(text, "measured", _list(measured(figures)))
    return _between(text, "computed", _list(computed(figures)))


def _list(rows: Iterator[Row]) -> str:
    return "\n" + "\n".join(f"- {name}: {value}" for name, value in rows) + "\n"


def _between(text: str, mark: str, table: str) -> str:
    begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
    head, _, tail = text.partition(begin)
    _, _, end_text = tail.partition(end)
    return f"{head}{begin}{table}{end}{end_text}"


def add_options(_: argparse.ArgumentParser) -> None:
    """Declare no options."""


def main(_: argparse.Namespace) -> int:
    """Write the page."""
    figures = Figures.of(json.loads(RESULTS.read_text(encoding="utf-8")))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")
    return 0
