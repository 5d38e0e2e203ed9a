"""Lines of logs become tables, beside Spark that only reads them and a loop that only parses their JSON."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.pipeline import peers, places, work
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.logs import Written, write_logs
from benchmarks.pipeline.options import Options
from benchmarks.pipeline.outcome import Outcome
from benchmarks.pipeline.runs import STDERR, in_turns
from benchmarks.pipeline.sides import ALONE, HISTORY, LOOP, ON_SPARK, READ
from benchmarks.pipeline.space import room_for, size_of

LINE_BYTES: Final = 1_150
TABLE_BYTES: Final = 400
"""A line's rows in tables, at most."""
PARTS: Final = 16
LITTLE: Final = 20_000
"""Lines with which the driver gets to know its work before it counts."""
SAMPLE: Final = 20_000_000
"""Bytes that are compressed, to see how small a line gets."""
LOCAL_PARTS: Final = 4
"""As many of them does one process read."""


def ingest(options: Options) -> Iterator[Outcome]:
    """Yield what it takes on Spark, and in one process."""
    with room_for(options.lines * (LINE_BYTES + TABLE_BYTES)) as folder:
        crowd = Crowd(entities=2_000)
        written = write_logs(folder / "logs", options.lines, crowd, parts=PARTS)
        STDERR.log(f"{written.lines:,} lines, {written.size / 1e9:.1f} GB")
        yield _on_spark(options, folder, written)
        yield _alone(options, folder, written)


def _on_spark(options: Options, folder: Path, written: Written) -> Outcome:
    files, tables = [str(each) for each in written.files], folder / "spark-tables"
    little = write_logs(folder / "little", LITTLE, Crowd(entities=100), parts=2)
    with places.spark(folder / "spark", options.memory) as place:
        place.call(
            work.ingest_on_spark,
            [str(each) for each in little.files],
            str(tables),
            little.lines,
        )
        lines = written.lines
        sides = [
            place.side(READ, lines, peers.read_text, files),
            place.side(
                ON_SPARK, lines, work.ingest_on_spark, files, str(tables), lines
            ).beside(READ),
            place.side(HISTORY, lines, work.history_on_spark, str(tables)).beside(
                ON_SPARK
            ),
        ]
        in_turns("ingest on Spark", sides, options.rounds)
    return Outcome(title="ingest on Spark", sides=sides, facts=_facts(written, tables))


def _alone(options: Options, folder: Path, written: Written) -> Outcome:
    files, tables = (
        [str(each) for each in written.files[:LOCAL_PARTS]],
        folder / "local-tables",
    )
    lines = sum(Path(each).read_bytes().count(b"\n") for each in files)
    with places.alone() as place, places.alone() as other:
        sides = [
            other.side(LOOP, lines, peers.parse_json, files),
            place.side(
                ALONE, lines, work.ingest_alone, files, str(tables), lines
            ).beside(LOOP),
        ]
        in_turns("ingest in one process", sides, options.rounds)
    return Outcome(title="ingest in one process", sides=sides)


def _facts(written: Written, tables: Path) -> dict[str, float]:
    with written.files[0].open("rb") as file:
        sample = file.read(SAMPLE)
    return {
        "bytes_a_line": written.size / written.lines,
        "packed_bytes_a_line": len(gzip.compress(sample, 6)) / sample.count(b"\n"),
        "table_bytes_a_line": size_of(tables / "requests") / written.lines,
        "history_bytes_a_line": sum(size_of(tables / name) for name in work.HISTORY)
        / written.lines,
    }
