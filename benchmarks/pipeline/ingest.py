"""
Lines of logs become tables.

Beside them work DuckDB and Polars, which write some fields to Parquet, Spark that only reads the lines, and a loop that
only parses their JSON.
"""

import gzip
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Final

from benchmarks.output import STDERR
from benchmarks.pipeline import peers, places, rivals, work
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.logs import Written, write_logs
from benchmarks.pipeline.options import BEFORE, Checkout, Options
from benchmarks.pipeline.runs import Outcome, Side, run_in_turns
from benchmarks.pipeline.sides import (
    ALONE,
    DUCKDB,
    HISTORY,
    LOOP,
    ON_SPARK,
    ON_SPARK_TO_ALONE,
    PARSE,
    POLARS,
    READ,
    WHOLE,
)
from benchmarks.pipeline.space import room_for, size_of
from tests.spark.versions import ROOT

LINE_BYTES: Final = 1_150
TABLE_BYTES: Final = 400
"""A line's rows in tables, at most."""
PARTS: Final = 16
LITTLE: Final = 20_000
"""Lines with which the driver gets to know its work before it counts."""
SAMPLE: Final = 20_000_000
"""Bytes that are compressed, to see how small a line gets."""
INGEST_GOAL: Final = 1.0
"""CPU time, of what another checkout takes."""
PARSE_GOAL: Final = 1.0
"""CPU time to parse, of what DuckDB takes."""
WHOLE_GOAL: Final = 1.8
"""CPU time of all of ingest, of what DuckDB takes."""
LOCAL_PARTS: Final = 4
"""Number of files that one process reads."""


def ingest(options: Options) -> Iterator[Outcome]:
    """Yield what it takes on Spark, and in one process."""
    room = LINE_BYTES + TABLE_BYTES * len(options.checkouts)
    with room_for(options.lines * room) as folder:
        crowd = Crowd(entities=2_000)
        written = write_logs(folder / "logs", options.lines, crowd, parts=PARTS)
        STDERR.log(f"{written.lines:,} lines, {written.size / 1e9:.1f} GB")
        on_spark = _on_spark(options, folder, written)
        yield on_spark
        alone = _alone(options, folder, written)
        if not options.beside:
            alone.facts[ON_SPARK_TO_ALONE] = cpu_of(on_spark, ON_SPARK, HISTORY) / cpu_of(alone, WHOLE)
        yield alone


def cpu_of(outcome: Outcome, *names: str) -> float:
    """Return the CPU seconds that some sides took for a row, the medians of their runs together."""
    sides = [side for side in outcome.sides if side.name in names]
    return sum(side.median(lambda run: run.cpu) / side.rows for side in sides)


def _on_spark(options: Options, folder: Path, written: Written) -> Outcome:
    files, lines = [str(file) for file in written.files], written.lines
    little = write_logs(folder / "little", LITTLE, Crowd(entities=100), parts=2)
    few = [str(file) for file in little.files]
    sides: list[Side] = []
    first_place: places.Place | None = None
    with ExitStack() as opened:
        for number, checkout in enumerate(options.checkouts):
            place = opened.enter_context(places.spark(folder / f"spark-{number}", checkout, options.memory))
            tables = str(folder / f"spark-tables-{number}")
            place.call(work.ingest_on_spark, few, tables, little.lines)
            first_place = first_place or place
            if not options.beside:
                sides.append(place.side(READ, lines, peers.read_text, files))
            sides += [
                place.side(checkout.named(ON_SPARK), lines, work.ingest_on_spark, files, tables, lines),
                place.side(checkout.named(HISTORY), lines, work.history_on_spark, tables),
            ]  # fmt: skip
        if options.beside:
            _compared(sides)
        else:
            for base, side in pairwise(sides):
                side.beside(base.name)
        run_in_turns("ingest on Spark", sides, options.rounds)
        if first_place is not None:  # a round that goes backwards ends without a history
            first_place.call(work.history_on_spark, str(folder / "spark-tables-0"))
    facts = _facts(written, folder / "spark-tables-0")
    return Outcome(title="ingest on Spark", sides=sides, facts=facts)


def _alone(options: Options, folder: Path, written: Written) -> Outcome:
    files = [str(file) for file in written.files[:LOCAL_PARTS]]
    lines = sum(Path(file).read_bytes().count(b"\n") for file in files)
    sides: list[Side] = []
    with ExitStack() as opened:
        for number, checkout in enumerate(options.checkouts):
            place = opened.enter_context(places.alone(checkout))
            tables = str(folder / f"local-tables-{number}")
            sides.append(place.side(checkout.named(ALONE), lines, work.ingest_alone, files, tables, lines))
        if options.beside:
            _compared(sides)
        else:
            sides = [*_beside_others(opened, folder, files, lines), sides[0].beside(DUCKDB, by_cpu=True)]
        run_in_turns("ingest in one process", sides, options.rounds, warm_up=1)
    return Outcome(title="ingest in one process", sides=sides)


def _beside_others(opened: ExitStack, folder: Path, files: list[str], lines: int) -> list[Side]:
    """Return sides that each work in a process of their own, so that none has the memory of another."""
    loop, duckdb, polars, parse, whole = (opened.enter_context(places.alone(Checkout(root=ROOT))) for _ in range(5))
    return [
        loop.side(LOOP, lines, peers.parse_json, files),
        duckdb.side(DUCKDB, lines, rivals.by_duckdb, files, str(folder / "duckdb.parquet")),
        polars.side(POLARS, lines, rivals.by_polars, files, str(folder / "polars.parquet")).beside(DUCKDB, by_cpu=True),
        parse.side(PARSE, lines, rivals.parse, files, lines).beside(DUCKDB, PARSE_GOAL, by_cpu=True),
        whole.side(WHOLE, lines, work.ingest_all_alone, files, str(folder / "whole-tables"), lines).beside(
            DUCKDB, WHOLE_GOAL, by_cpu=True
        ),
    ]


def _compared(sides: Sequence[Side]) -> None:
    for side in sides:
        side.beside(f"{side.name}{BEFORE}", INGEST_GOAL, by_cpu=True)


def _facts(written: Written, tables: Path) -> dict[str, float]:
    with written.files[0].open("rb") as file:
        sample = file.read(SAMPLE)
    return {
        "bytes_a_line": written.size / written.lines,
        "packed_bytes_a_line": len(gzip.compress(sample, 6)) / sample.count(b"\n"),
        "table_bytes_a_line": size_of(tables / "requests") / written.lines,
        "history_bytes_a_line": sum(size_of(tables / name) for name in work.HISTORY) / written.lines,
    }
