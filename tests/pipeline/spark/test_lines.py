"""The work of Spark's workers, without Spark: lines become rows of parts, and parts become files of tables."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.builders.requests import line, mutation, topic
from tests.pipeline.ingest.accounts import balanced
from tests.pipeline.ingest.ingesting import NAMED
from tests.pipeline.log_lines import CAPTURE, captured, values

from quotascope.pipeline.ingest import IngestTables, ingest
from quotascope.pipeline.ingest.committing import Batch, Ingest, NewRows, Seen, Staged
from quotascope.pipeline.request_log.schema import PARSED_QUARANTINE, PARSED_REQUESTS
from quotascope.pipeline.spark.ingest import LINES, TOGETHER, TOGETHER_BYTES, packed, parsed, staged, unpacked
from quotascope.pipeline.table import File
from quotascope.pipeline.table.storage import Storage


def batch(*rows: tuple[bytes | None, str, int | None, int | None]) -> pa.RecordBatch:
    """Lines with file, start of the piece, and number."""
    columns: Any = list(zip(*rows, strict=True)) or [()] * 4
    return pa.record_batch(
        [pa.array(column, kind) for column, kind in zip(columns, LINES.types, strict=True)],
        schema=LINES
    )  # fmt: skip


def rows(*batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [packed(piece) for piece in parsed(NAMED, iter(batches))]


def shuffled(*batches: pa.RecordBatch) -> Iterator[pa.Table]:
    """Yield the rows of batches part by part, as a shuffle brings them together."""
    result = pa.Table.from_batches(rows(*batches), TOGETHER)
    for part in sorted(set(values(result, "part"))):
        yield result.filter(pc.field("part") == part)


def table(*batches: pa.RecordBatch) -> pa.Table:
    """Return the rows of both tables in one, with their parts."""
    result = [
        part_rows
        for packed_rows in rows(*batches)
        for part_rows in zip(packed_rows["part"], unpacked([packed_rows]), strict=True)
    ]
    whole = [
        pa.Table.from_batches([record_batch]).append_column("part", pa.repeat(part, len(record_batch)))
        for part, record_batch in result
    ]
    none = [PARSED_REQUESTS.empty_table(), PARSED_QUARANTINE.empty_table()]
    return pa.concat_tables([*none, *whole], promote_options="default")


def test_lines_become_rows() -> None:
    """Requests and quarantined lines share a schema; the latter have a reason."""
    result = table(batch((line(), "t-0", None, 5), (b"junk", "t-0", None, 6)))
    assert result["reason"].to_pylist() == [None, "not a request"]
    assert result["line"].to_pylist() == [5, 6]
    assert result["file"].to_pylist() == ["t-0", "t-0"]
    assert result["user"].to_pylist() == ["alice", None]
    assert rows(batch()) == []


def test_numbers_of_lines() -> None:
    """
    Lines are numbered across the batches of a file that is read from its beginning.

    In the middle of one only their order is known.
    """
    first_batch = batch((line(), "file:///x/a%20b.log", 0, None), (b"1", "file:///x/a%20b.log", 0, None))
    second_batch = batch(
        (b"2", "file:///x/a%20b.log", 0, None),
        (b"3", "s3a://x/a%20b.log", 0, None),
        (b"4", "s3a://x/a%20b.log", 128, None),
    )
    result = table(first_batch, second_batch)
    places = [(row["text"], row["file"], row["line"]) for row in result.to_pylist() if row["text"]]
    assert sorted(places) == [
        (b"1", "/x/a b.log", 2),
        (b"2", "/x/a b.log", 3),
        (b"3", "s3a://x/a%20b.log", 1),
        (b"4", "s3a://x/a%20b.log", None),
    ]
    starts = ((0, 1), (0, 2), (600, 3), (600, 4))
    middle = [(line(header={"correlationId": n}), "a", start, None) for start, n in starts]
    result = table(batch(*middle[:3]), batch(middle[3]))
    assert result["line"].to_pylist() == [1, 2, None, None]
    assert result["position"].to_pylist() == [1, 2, 601, 602]


def test_parts_keep_the_same_line_together() -> None:
    """
    A line has the same part, wherever it is read.

    Requests of other times and users, and lines that are no requests, are spread over parts.
    """
    parts_here = table(batch((line(), "a", None, 1), (b"x", "a", None, 2)))["part"]
    parts_there = table(batch((b"x", "a", None, 9), (line(), "b", None, 3)))["part"]
    assert set(parts_here.to_pylist()) == set(parts_there.to_pylist())
    many = [(text, "a", None, 1) for text in captured()]
    spread = set(table(batch(*many))["part"].to_pylist())
    assert len(spread) > 1
    slices = [(line(time=f"2026-11-21 10:{minute:02}:00,000"), "a", None, 1) for minute in (0, 5, 10, 20)]
    assert len(set(table(batch(*slices))["part"].to_pylist())) == 3
    junk = [(b"%d" % number, "a", None, 1) for number in range(200)]
    spread = set(table(batch(*junk))["part"].to_pylist())
    assert len(spread) > 100
    assert all(part is not None and part < 0 for part in spread)


def added(folder: Path, *lines: bytes, file: str = "a") -> Any:
    tables = IngestTables.create(str(folder / "spread"))
    report = Ingest(tables).add(partial(whole, tables, *lines, file=file))
    assert balanced(report)
    return report


def whole(tables: IngestTables, *lines: bytes, file: str = "a") -> Staged:
    staged_lines = Staged()
    for part in shuffled(batch(*((text, file, 0, None) for text in lines))):
        staged_lines.add(staged(tables, part.to_batches()))
    return staged_lines


def test_parts_make_the_tables_of_one_process(tmp_path: Path) -> None:
    """Parts give the tables and counts of one process, spread over workers or not, and add nothing a second time."""
    lines = [*captured(), *captured()[:100], b"junk", b"junk"]
    path = tmp_path / "a"
    path.write_bytes(b"\n".join(lines))
    report = added(tmp_path, *lines, file=str(path))
    assert report == ingest([str(path)], str(tmp_path / "here"), NAMED)
    spread, parts_here = (
        IngestTables.create(str(tmp_path / name)).requests.read().sort_by("line") for name in ("spread", "here")
    )
    assert spread == parts_here
    again = added(tmp_path, *lines)
    assert (again.kept, again.quarantined, again.read) == (0, 0, len(lines))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """Return a list to which a worker adds each piece of rows that it holds."""
    pieces: list[pa.Table] = []
    news = Seen.new_rows

    def noted(seen: Seen, rows_of: pa.Table, *second_batch: Any) -> NewRows:
        pieces.append(rows_of)
        return news(seen, rows_of, *second_batch)

    monkeypatch.setattr(Seen, "new_rows", noted)
    return pieces


def test_a_worker_writes_part_after_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: list[pa.Table]) -> None:
    """A worker holds one piece or part at a time; lines are new once, wherever batches end."""
    monkeypatch.setattr("quotascope.pipeline.spark.ingest.PIECE", 50)
    tables = IngestTables.create(str(tmp_path))
    users = [
        line(principal=f"User:{user}", time=f"2026-11-21 08:00:00,{ms:03}") for user in range(60) for ms in range(10)
    ]
    lines = [*users, *users, mutation("create", [topic("t", 4)]), b"junk", b"junk"]
    lines_given = batch(*((text, "a", None, 1) for text in lines))
    largest: Any = pc.max(table(lines_given)["part"].value_counts().field("counts")).as_py()
    done = staged(tables, pa.concat_tables(shuffled(lines_given)).combine_chunks().to_batches(max_chunksize=7))
    assert max(map(len, held)) <= 50 + largest < len(lines) / 2
    report = done.report
    assert (report.read, report.repeated, report.quarantined, len(done.unresolved)) == (1203, 600, 2, 1)
    assert [sum(file.rows for file in files) for files in (done.requests, done.quarantine)] == [600, 1]


def test_lines_are_read_and_parts_are_cut_by_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: list[pa.Table]
) -> None:
    """
    A part that is larger than a piece is written in several, in its order.

    A repeated line in a later piece, or one that is no request, counts once.
    """
    plain = [line(header={"correlationId": n, "clientId": "x" * 2_000}) for n in range(40)]
    topics = mutation("create", [topic("t", 4)], number=999)
    lines = [*plain, *plain[:7], topics, topics, *plain[30:], b"junk", b"other", b"junk", b"other"]
    whole = added(tmp_path / "whole", *lines)
    monkeypatch.setattr("quotascope.pipeline.spark.ingest.PIECE_BYTES", 9_000)
    monkeypatch.setattr("quotascope.pipeline.spark.ingest.READ_BYTES", 5_000)
    lines_given = batch(*((text, "a", 0, None) for text in lines))
    assert max(len(record_batch) for packed_rows in rows(lines_given) for record_batch in unpacked([packed_rows])) < 5
    held.clear()
    spread = added(tmp_path / "cut", *lines)
    assert spread == whole
    assert (spread.kept, spread.repeated, spread.quarantined, spread.quarantined_before) == (41, 18, 4, 0)
    assert max(record_batch.nbytes for record_batch in held) < 20_000
    result = IngestTables.create(str(tmp_path / "cut" / "spread")).requests
    order: list[Any] = result.read()["correlation_id"].to_pylist()
    assert len(result.files()) > 5
    assert [number for number in order if number < 999] == list(range(40))


def test_rows_cross_the_jvm_many_in_a_value() -> None:
    """
    A value has rows of one part in their order, and no more bytes than Spark may hold of many values.

    Nothing of them is lost.
    """
    many = [line(principal=f"User:{n % 9}", header={"correlationId": n, "clientId": "x" * 2_000}) for n in range(3_000)]
    create = mutation("create", [topic("t", 4)])
    lines_given = batch(*((text, "a", 0, None) for text in (*many, create, *captured(), b"junk", b"other")))
    pieces = list(parsed(NAMED, iter([lines_given])))
    values_of = [packed(piece) for piece in pieces]
    back = list(unpacked(values_of))
    assert sum(len(value) for value in values_of) == len(back) < 200
    order: list[list[Any]] = [record_batch["line"].to_pylist() for record_batch in back]
    assert [places[0] for places in order] == [place for value in values_of for place in value["place"].to_pylist()]
    assert order == [sorted(places) for places in order]
    assert max(record_batch.nbytes for record_batch in back) <= TOGETHER_BYTES
    for name, schema in (("requests", PARSED_REQUESTS), ("quarantine", PARSED_QUARANTINE)):
        expected = pa.concat_tables([getattr(piece, name) for piece in pieces])
        result = [
            pa.Table.from_batches([record_batch])
            for record_batch in back
            if {*schema.names} <= {*record_batch.schema.names}
        ]
        assert pa.concat_tables(result).select(schema.names).sort_by("identity") == expected.sort_by("identity")


@pytest.mark.parametrize(
    ("first", "second"), [(None, None), (Batch("stream 1", 0), None), (None, Batch("stream 1", 0))]
)
def test_two_at_once(tmp_path: Path, first: Batch | None, second: Batch | None) -> None:
    """The second of two ingests or streams that looked for new rows at once looks again, and adds nothing."""
    tables = IngestTables.create(str(tmp_path))
    looked: list[Staged] = []

    def stage() -> Staged:
        looked.append(whole(tables, line(), b"junk"))
        if len(looked) == 1:
            report = Ingest(tables).add(partial(whole, tables, line(), b"junk"), first)
            assert (report.kept, report.quarantined) == (1, 1)
        return looked[-1]

    report = Ingest(tables).add(stage, second)
    assert (report.kept, report.duplicates, report.quarantined_before) == (0, 1, 1)
    assert len(looked) == 2
    assert [len(table.read()) for table in tables] == [1, 1]


def test_topics_are_learned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of topics are read once from each file, not again after a compaction."""
    tables = IngestTables.create(str(tmp_path / "spread"))
    adding = Ingest(tables)
    files_read: list[str] = []
    batches = Storage.batches

    def noted(storage: Storage, file: File, columns: Any = None) -> Any:
        files_read.append(file.path)
        return batches(storage, file, columns)

    def known(name: str) -> object:
        files_read.clear()
        expected = table(batch((mutation("delete", [{"name": name}]), "a", 0, None)))
        adding._learn()
        resolved = adding._ledger.resolve(expected.select(tables.requests.schema.names))
        return values(resolved.requests, "mutations_charged")[0]

    monkeypatch.setattr(Storage, "batches", noted)
    for number in (1, 2):
        name = f"t{number}"
        create = mutation("create", [topic(name, number)], time="2026-11-20 08:00:00,000")
        added(tmp_path, create)
        assert (known(name), len(files_read)) == (number, 1)
    tables.requests.compact()
    assert (known("t1"), len(files_read)) == (1, 0)
    create = mutation("create", [topic("t3", 3)], time="2026-11-20 08:00:00,000")
    added(tmp_path, create)
    tables.requests.compact()
    tables.requests.clean(0)
    assert (known("t3"), len(files_read)) == (3, 1)


def test_a_batch_that_comes_again(tmp_path: Path) -> None:
    """The lines of a committed batch add nothing, whatever they are now; the next batch does."""
    tables = IngestTables.create(str(tmp_path))

    def notes(number: int, *lines: bytes) -> tuple[int, int]:
        report = Ingest(tables).add(partial(whole, tables, *lines), Batch("stream 1", number))
        return report.read, report.kept

    other_line = line(header={"correlationId": 8})
    assert notes(3, line(), b"junk") == (2, 1)
    assert notes(3, other_line) == notes(2, other_line) == (0, 0)
    assert notes(4, line(), other_line) == (2, 1)


def test_workers_keep_the_releases_that_a_log_names(tmp_path: Path) -> None:
    """Releases are noted as by one process; quarantined or repeated lines change no note."""
    captures = [CAPTURE.with_name(f"kafka-{version}-month-request.log") for version in ("4.3.1", "4.4.0")]
    lines = [text for path in captures for text in path.read_bytes().splitlines()]
    added(tmp_path, *lines, b"junk")
    added(tmp_path, *lines)
    ingest([str(path) for path in captures], str(tmp_path / "here"), NAMED)
    tables = [IngestTables.create(str(tmp_path / name)).requests for name in ("spread", "here")]
    notes = [{minor: table.last_epoch(f"quotascope.kafka 4.{minor}") for minor in (2, 3, 4)} for table in tables]
    assert notes[0] == notes[1]
    assert [minor for minor, time in notes[0].items() if time is not None] == [3, 4]
