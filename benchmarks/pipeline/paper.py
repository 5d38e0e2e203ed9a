"""
Needs of 10 TB of request logs a day, computed from measured figures: `python -m benchmarks pipeline-page`.

Reads docs/engineering/scale.json, which `make bench-pipeline ARGS='--json docs/engineering/scale.json'` writes, and
writes the tables of docs/engineering/scale.md, and that of ingest in docs/engineering/benchmarks.md, between their
marks.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.pipeline.figures import Figures, Results, cpu
from benchmarks.pipeline.sides import ALONE, DUCKDB, HISTORY, ON_SPARK, ON_SPARK_TO_ALONE, PARSE, POLARS, WHOLE

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = DOCS / "engineering" / "scale.md"
BENCHMARKS: Final = DOCS / "engineering" / "benchmarks.md"
RESULTS: Final = DOCS / "engineering" / "scale.json"
DAY_SECONDS: Final = 86_400
LOGS: Final = 10e12
"""Bytes a day."""
BUSY: Final = 0.6
"""Highest mean load of the cores: peaks and retries need the rest."""
KEPT_DAYS: Final = 30
REPLAY_HOURS: Final = 1.0
"""Within this time all kept days are replayed."""
CORES_OF_AN_EXECUTOR: Final = 4
GOALS: Final = {PARSE: 1.0, WHOLE: 1.8}
"""Greatest CPU time, of what DuckDB takes."""
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


def benchmarks_page(text: str, results: Results) -> str:
    """Return docs/engineering/benchmarks.md with a new table of ingest."""
    return _between(text, "ingest", "\n" + "\n".join(_ingest(results)) + "\n")


def _ingest(results: Results) -> Iterator[str]:
    """Yield the lines of the table of ingest beside DuckDB and Polars, of one run."""
    alone, on_spark = results["ingest in one process"], results["ingest on Spark"]
    yield "| | lines | CPU µs a line | times the CPU of DuckDB: min/median/max | largest process |"
    yield "|---|---|---|---|---|"
    for outcome, names in ((alone, (DUCKDB, POLARS, PARSE, ALONE, WHOLE)), (on_spark, (ON_SPARK, HISTORY))):
        for name in names:
            side = outcome["sides"][name]
            times = side["times_as_long"]
            ratio = (
                "/".join(f"{times[key]:.2f}" for key in ("min", "median", "max")) if outcome is alone and times else ""
            )
            goal = f" (goal {GOALS[name]:g})" if name in GOALS else ""
            memory = _mib(max(max(run["python"], run["jvm"]) for run in side["runs"]))
            yield f"| {name}{goal} | {side['rows']:,} | {cpu(outcome, name) * 1e6:.1f} | {ratio} | {memory} |"
    ratio_text = f"{alone['facts'][ON_SPARK_TO_ALONE]:.2f}"
    yield ""
    yield f"A line takes {ratio_text} times the CPU on Spark, with history and sums, that it takes in one process (goal 1.3)."


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
    """Write the pages."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), Figures.of(results)), encoding="utf-8")
    BENCHMARKS.write_text(benchmarks_page(BENCHMARKS.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 0
