"""Request logs read by Spark's workers become the tables that one process makes of them."""

import datetime as dt
import gzip
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import zstandard
from tests.builders.requests import line
from tests.pipeline.ingest.accounts import balanced
from tests.pipeline.ingest.ingesting import NAMED
from tests.pipeline.log_lines import CAPTURE, captured
from tests.spark.versions import RUNNING

from quotascope.pipeline.errors import DamagedFile, NotWritten, TableError, UnreadableLog
from quotascope.pipeline.ingest import IngestOptions, IngestReport, IngestTables
from quotascope.pipeline.ingest import ingest as ingest_here
from quotascope.pipeline.ingest.committing import Batch, Ingest
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.runs.ingest import ingest_logs, ingest_topic
from quotascope.pipeline.spark import ingest as by_spark
from quotascope.pipeline.spark.arrow import map_in_arrow
from quotascope.pipeline.spark.ingest import ingest, lines_of_messages, staged_lines
from quotascope.pipeline.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real
LATER_MS = 1_796_000_000_000
"""2026-11-30 in UTC."""


def _logs(folder: Path) -> str:
    """Return a folder with a real log, a copy of its beginning, and junk; one file has an untrusted name."""
    logs = folder / "logs"
    logs.mkdir()
    (logs / "a.log.gz").write_bytes(CAPTURE.read_bytes())
    (logs / "b c%20é.log").write_bytes(b"\n".join([*captured()[:500], b"\xff\xfe\r", b"\r", b"x" * 100_000]))
    (logs / "empty").write_bytes(b"")
    return str(logs)


def _table(folder: Path, kind: str) -> pa.Table:
    table: Table = IngestTables.create(str(folder))._asdict()[kind]
    return table.read().sort_by("identity")


def test_spark_makes_the_same_tables(spark: "SparkSession", tmp_path: Path) -> None:
    """Spark gives the rows and counts of one process, in either order; the same input again adds nothing."""
    logs = _logs(tmp_path)
    report = ingest(spark, [logs], str(tmp_path / "spark"), NAMED)
    expected = ingest_here([logs], str(tmp_path / "here"), NAMED)
    assert report == expected
    assert (report.read, report.kept, report.quarantined) == (5_906, 5_395, 3)
    for kind in ("requests", "quarantine"):
        one, other = (_table(tmp_path / name, kind) for name in ("spark", "here"))
        reported_by = ["identity"] if kind == "requests" else one.column_names
        assert one.select(reported_by) == other.select(reported_by)
    named = {
        IngestTables.create(str(tmp_path / name)).requests.last_epoch("quotascope.kafka 4.3")
        for name in ("spark", "here")
    }
    assert len(named - {None}) == len(named) == 1
    for again in (
        ingest_here([logs], str(tmp_path / "spark"), NAMED),
        ingest(spark, [logs], str(tmp_path / "here"), NAMED),
    ):
        assert (again.kept, again.quarantined, again.read) == (0, 0, 5_906)
        assert balanced(again)


def test_what_spark_cannot_read(spark: "SparkSession", tmp_path: Path) -> None:
    """A missing path and a truncated file are reported by name, and add nothing, and other files add all."""
    with pytest.raises(UnreadableLog, match=r"none\.log.*PATH_NOT_FOUND"):
        ingest(spark, [str(tmp_path / "none.log")], str(tmp_path / "tables"))
    broken = tmp_path / "broken.log.gz"
    broken.write_bytes(CAPTURE.read_bytes()[:100_000])
    report = ingest(spark, [str(broken)], str(tmp_path / "tables"), NAMED)
    assert (report.read, list(report.broken)) == (0, [str(broken)])
    assert "bring the whole file" in report.broken[str(broken)]


def test_damaged_members(spark: "SparkSession", tmp_path: Path) -> None:
    """
    Spark reads the same lines as one process: whole members and other files, whatever their names.

    The good file adds the rest, once.
    """
    lines = [text for text in captured() if b'"isForwarded":false' in text][:900]
    members = [gzip.compress(b"\n".join(lines[start : start + 300]) + b"\n", 0) for start in (0, 300)]
    damaged = bytearray(members[1])
    damaged[damaged.index(b'"clientId":"') + 13] ^= 1
    logs = tmp_path / "logs of a b"
    logs.mkdir()
    (logs / "a [b{*.log.gz").write_bytes(members[0] + damaged)
    (logs / "c [0-9]?.log").write_bytes(b"\n".join(lines[600:]))
    for name, read in (("spark", partial(ingest, spark)), ("local", ingest_here)):
        report = read([str(logs)], str(tmp_path / name), NAMED)
        assert (report.kept, list(report.broken)) == (600, [str(logs / "a [b{*.log.gz")]), name
    spark_rows, local_rows = (
        _table(tmp_path / name, "requests").select(["identity", "file", "line"]).sort_by("identity")
        for name in ("spark", "local")
    )
    assert spark_rows == local_rows
    (logs / "a [b{*.log.gz").write_bytes(b"".join(members))
    report = ingest(spark, [str(logs)], str(tmp_path / "spark"), NAMED)
    assert (report.kept, report.broken, report.quarantined) == (300, {}, 0)


def test_empty_files(spark: "SparkSession", tmp_path: Path) -> None:
    """Empty files are no error, and make no tables."""
    for name, content in {"a.log": b"", "b.log.gz": gzip.compress(b"")}.items():
        (tmp_path / name).write_bytes(content)
    assert ingest(spark, [str(tmp_path)], str(tmp_path / "tables")) == IngestReport()
    assert not (tmp_path / "tables").exists()


def test_zstd(spark: "SparkSession", tmp_path: Path) -> None:
    """Spark reads zstd since 4.1 and refuses it before; a truncated file is reported by name and adds nothing."""
    packed = tmp_path / "packed.log.zst"
    packed.write_bytes(zstandard.compress(b"\n".join(captured())))
    into = str(tmp_path / "tables")
    if RUNNING.startswith(("3.", "4.0.")):
        with pytest.raises(UnreadableLog, match="native zStandard library not"):
            ingest(spark, [str(packed)], into, NAMED)
        return
    assert ingest(spark, [str(packed)], into, NAMED).kept == 5_395
    packed.write_bytes(packed.read_bytes()[:-1_000])
    report = ingest(spark, [str(packed)], f"{into} of a part", NAMED)
    assert (report.read, list(report.broken)) == (0, [str(packed)])


def test_batches_of_a_stream(spark: "SparkSession", tmp_path: Path) -> None:
    """A repeated batch is known by its number, its lines under another number by themselves; tombstones are empty."""
    folder = str(tmp_path / "tables")
    messages = spark.createDataFrame(
        [(bytearray(line()), "t", 1, 5), (None, "t", 1, 6), (bytearray(b"x"), "t", 1, 7)],
        "value binary, topic string, partition int, offset bigint"
    )  # fmt: skip
    ingest_all = Ingest(IngestTables.create(folder))

    def add(number: int) -> IngestReport:
        stage = partial(staged_lines, lines_of_messages(messages), ingest_all.tables, IngestOptions(broker="1"))
        return ingest_all.add(stage, Batch("stream q", number))

    first, again, later = add(0), add(0), add(1)
    assert (first.read, first.kept, first.quarantined) == (3, 1, 2)
    assert again == IngestReport()
    assert (later.duplicates, later.quarantined_before, later.kept) == (1, 2, 0)
    (row,) = IngestTables.create(folder).requests.read().to_pylist()
    assert (row["file"], row["line"]) == ("t-1", 5)


def _damaged(usage: Path, kind: str) -> None:
    (file,) = (usage / kind).glob("day=*/**/*.parquet")
    file.write_bytes(b"PAR1")


def _no_folder(usage: Path) -> None:
    later = dt.date(2026, 11, 25) - dt.date(1970, 1, 1)
    (usage / "requests" / f"day={later.days}").write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "error", "message"),
    [
        (partial(_damaged, kind="requests"), DamagedFile, "is damaged: it has 4 bytes"),
        (partial(_damaged, kind="quarantine"), DamagedFile, "is damaged: it has 4 bytes"),
        (_no_folder, NotWritten, "nothing was committed"),
    ],
)
def test_errors_of_workers(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[Path], None],
    error: type[TableError],
    message: str,
) -> None:
    """Errors of workers are those of one process in kind, message and fields, and no row is added."""
    usage, log, more = tmp_path / "usage", tmp_path / "a.log", tmp_path / "more"
    log.write_bytes(line() + b"\njunk\n")
    ingest_logs([str(log)], str(usage), IngestOptions(broker="1"), engine=EngineChoice.LOCAL)
    harm(usage)
    near, later = line(header={"correlationId": 8}), line(time="2026-11-25 08:00:00,000")
    log.write_bytes(b"\n".join([near, later, b"other junk"]))
    lines = [(bytearray(text), "t", 0, number) for number, text in enumerate(log.read_bytes().splitlines())]
    messages = spark.createDataFrame(lines, "value binary, topic string, partition int, offset bigint")
    messages.write.parquet(str(more))
    arriving = spark.readStream.schema(messages.schema).parquet(str(more))
    monkeypatch.setattr(by_spark, "lines_of_topic", lambda *_: by_spark.lines_of_messages(arriving))
    raised = []
    for way in (
        partial(ingest_logs, [str(log)], engine=EngineChoice.LOCAL),
        partial(ingest_logs, [str(log)], engine=EngineChoice.SPARK),
        partial(ingest_topic, {}, checkpoint=str(tmp_path / "c"), done=lambda *_: None),
    ):
        with pytest.raises(error, match=message) as found:
            way(into=str(usage), options=IngestOptions(broker="1"))
        raised.append((type(found.value), str(found.value), vars(found.value)))
    assert raised[0] == raised[1] == raised[2]
    assert [len(table.files()) for table in IngestTables.create(str(usage))] == [1, 1]


def _doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers: list[Any] = batch.column("id").to_pylist()
        yield pa.RecordBatch.from_pydict({"twice": [2 * number for number in numbers]})


def test_arrow_without_pandas(spark: "SparkSession") -> None:
    """Frames are mapped in Arrow where pandas is not installed, as here."""
    with pytest.raises(ImportError, match="andas"):
        spark.range(3).mapInArrow(_doubled, "twice long")
    doubled = map_in_arrow(spark.range(3), _doubled, "twice long").collect()
    assert sorted(row.twice for row in doubled) == [0, 2, 4]
