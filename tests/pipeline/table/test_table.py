"""Committed tables: what is read is what was committed, once, and in order."""

import datetime as dt
import pickle
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipeline.table.rows import DAY_MS, LAYOUT, SCHEMA, amounts, append, batch, rows
from tests.strategies import HOSTILE

from quotascope.pipeline.columns import gathered
from quotascope.pipeline.errors import NoTable, NotWritten, OtherSchema, TableError, UnreadableTable
from quotascope.pipeline.table import Table, TableLayout


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)


def test_an_append_is_read_back_once(table: Table) -> None:
    """
    A second append of a batch adds nothing, whatever it has.

    Selected columns come in the requested order, also in another process.
    """
    sent = pickle.loads(pickle.dumps(table))  # noqa: S301 - our own
    assert append(table, "logs of Monday", batch(0)) == 1_000
    assert append(table, "logs of Monday", batch(1)) == 0
    assert append(table, "more", batch(1)) == 1_000
    assert [table.holds(f"logs of {day}") for day in ("Monday", "Tuesday")] == [True, False]
    for each in (table, sent):
        assert amounts(each.read()) == list(range(2_000))
        assert each.read(["amount", "user"]).column_names == ["amount", "user"]


def test_epochs_count_up(table: Table) -> None:
    """The epochs of a stream up to the last one were seen, and the next one is new."""
    assert table.advance("stream", table.stage(batch(0)), after_epoch=None, epoch=4) == 1_000
    assert [table.holds("stream", epoch) for epoch in (3, 4, 5)] == [True, True, False]
    assert table.advance("stream", table.stage(batch(1)), after_epoch=4, epoch=5) == 1_000
    assert table.last_epoch("stream") == 5
    assert table.last_epoch("another") is None


@pytest.mark.parametrize("time", [500_000_000_000_000_000, 10**15, -(10**15)])
def test_a_day_of_no_calendar_is_refused(table: Table, time: int) -> None:
    """Rows with a time that no date has are not written, and the table is as it was."""
    append(table, "b", batch(0))
    with pytest.raises(NotWritten, match="in no calendar"):
        append(table, "far", rows(("alice", None, 0, 1), ("alice", None, time, 2)))
    assert amounts(Table.open(table.storage.uri).read()) == list(range(1_000))
    folder = Path(table.storage.uri)
    assert len(list(folder.rglob("*.parquet"))) == len(table.files())


def test_nothing_is_a_batch_too(table: Table) -> None:
    """An input without rows is remembered as seen, and an empty table can be read, compacted and shortened."""
    assert append(table, "empty", []) == 0
    assert table.holds("empty")
    assert table.read().schema == SCHEMA
    assert table.read().num_rows == 0
    assert table.shards() == {}
    assert table.compact() == 0
    assert table.drop_before(dt.date(2100, 1, 1)) == 0


def test_a_file_holds_one_day_of_one_shard(table: Table) -> None:
    """
    Users are spread over shards, a user over none.

    Each file has the rows as they were appended, and the log their first and last time.
    """
    append(table, "b", batch(0))
    users: dict[str, set[int]] = {}
    for file in table.files():
        rows_found = table.read(files=[file])
        times: list[Any] = rows_found["timestamp"].to_pylist()
        names: list[Any] = rows_found["user"].to_pylist()
        assert times == sorted(times)
        assert {time // DAY_MS for time in times} == {file.day}
        assert (file.rows, file.first_ms, file.last_ms) == (len(rows_found), times[0], times[-1])
        for user in set(names):
            users.setdefault(user, set()).add(file.shard)
    assert all(len(shards) == 1 for shards in users.values())
    assert len(set.union(*users.values())) > 1


def test_a_compaction_leaves_one_file_of_a_day_and_shard(table: Table) -> None:
    """
    A compaction leaves one file for a day and shard with the same rows, also for other readers of Delta tables.

    A second time there is nothing to do.
    """
    for number in range(3):
        append(table, f"{number}", batch(number))
    shards = len(table.shards())
    assert table.compact() == 6 * shards
    assert Counter(file.day for file in table.files()) == {3: shards, 4: shards}
    seen = DeltaTable(table.storage.uri).to_pyarrow_table()
    assert amounts(table.read()) == amounts(seen) == list(range(3_000))
    assert set(seen["day"].to_pylist()) == {3, 4}
    assert table.compact() == 0


def test_many_small_files_become_one_row_group(table: Table) -> None:
    """Readers of a compacted table open few row groups, and hold no more than some bytes of one."""
    for number in range(4):
        append(table, f"{number}", batch(number))
    long = "x" * 32_767
    append(table, "long", rows(*((long, long, DAY_MS, number) for number in range(2_000))))
    append(table, "more", rows((long, long, DAY_MS, 2_000)))
    table.compact()
    for file in table.files():
        groups = pq.ParquetFile(Path(table.storage.uri) / file.path).metadata.num_row_groups
        assert groups == (5 if file.day == 1 else 1)
        assert all(each.nbytes < 40 << 20 for each in table.batches([file]))


def test_hostile_names_are_values_only(table: Table) -> None:
    """Names with separators, quotes, markup and ten thousand characters come back, and are in no path."""
    names = {*HOSTILE, "../../x", "a=b/c", "__HIVE_DEFAULT_PARTITION__"}
    append(table, "hostile", rows(*((name, name, 1, 1) for name in names)))
    append(table, "more", rows(*((name, name, 2, 2) for name in HOSTILE)))
    table.compact()
    assert set(table.read()["user"].to_pylist()) == names
    for file in table.files():
        day, shard, name = file.path.split("/")
        assert (day, shard) == ("day=0", f"shard={file.shard}")
        assert len(name) < 80


def test_clocks_far_off_are_days_like_others(table: Table) -> None:
    """Times before 1970 and in the year 9999 have a day of their own, and can be dropped."""
    append(table, "far", rows(("u", "c", -1, 1), ("u", "c", 253_402_300_799_999, 2)))
    assert [file.day for file in table.files()] == [-1, 2_932_896]
    assert table.drop_before(dt.date(1970, 1, 1)) == 1
    assert amounts(table.read()) == [2]


def test_a_table_keeps_its_layout(table: Table) -> None:
    """A table keeps its shards when it is opened or made again; other columns are refused by name."""
    other_layout = TableLayout(day_of="timestamp", shards=1)
    assert Table.create(table.storage.uri, SCHEMA, other_layout).layout == LAYOUT
    opened = Table.open(table.storage.uri)
    assert (opened.layout, opened.schema) == (LAYOUT, SCHEMA)
    columns: list[Any] = [("user", pa.int32()), ("timestamp", pa.int64()), ("new", pa.int8())]
    schema = pa.schema(columns)
    with pytest.raises(OtherSchema, match=r"without: new; of another type: user; more: client_id, amount"):
        Table.create(table.storage.uri, schema, LAYOUT)


def test_no_table_and_no_table_of_ours(tmp_path: Path) -> None:
    """A folder without a log is no table, and a Delta table that another program made is left alone."""
    with pytest.raises(NoTable, match="ingest a request log"):
        Table.open(str(tmp_path))
    write_deltalake(str(tmp_path / "other"), batch(0))
    with pytest.raises(UnreadableTable, match="of another program"):
        Table.open(str(tmp_path / "other"))


def test_days_are_dropped(table: Table) -> None:
    """
    Rows of days before the first one to keep go at once.

    Their batch is not added again, their files go with `clean`.
    """
    append(table, "b", batch(0))
    files_before = [file for file in table.files() if file.day == 3]
    dropped = table.drop_before(dt.date(1970, 1, 5))
    assert dropped == sum(file.rows for file in files_before)
    assert {file.day for file in table.files()} == {4}
    assert table.read().num_rows == 1_000 - dropped
    assert append(table, "b", batch(0)) == 0
    assert table.clean(older_than_hours=1).deleted == []
    assert len(table.clean(0).deleted) == len(files_before)
    assert not any((Path(table.storage.uri) / file.path).exists() for file in files_before)
    assert table.read().num_rows == 1_000 - dropped


def test_dropped_days_are_remembered(table: Table) -> None:
    """
    A table remembers its first kept day, whatever commits follow.

    A drop of nothing, or of fewer days, changes nothing.
    """
    append(table, "b", batch(0))
    reported = [table.first_kept_day]
    for day in ("1950-01-01", "1969-12-30", "1970-01-05", "1970-01-03"):
        append(table, day, rows(("u", "c", -9 * DAY_MS, 0), ("u", "c", DAY_MS, 0)))
        table.drop_before(dt.date.fromisoformat(day))
        table.compact()
        reported.append(Table.open(table.storage.uri).first_kept_day)
    assert reported == [None, None, -2, 4, 4]


def test_groups_end_when_they_are_full() -> None:
    """Groups end by rows or by bytes, whichever comes first; each begins to count at none. The last may be smaller."""
    ones = [pa.record_batch({"a": pa.array([n], pa.int64())}) for n in range(7)]

    def sizes(most_rows: int, most_bytes: int) -> list[int]:
        return [len(group) for group in gathered(ones, most_rows, most_bytes)]

    assert sizes(2, 1_000) == [2, 2, 2, 1]
    assert sizes(1_000, 3 * 8) == [3, 3, 1]
    assert sizes(1, 1) == [1] * 7
    assert sizes(1_000, 1_000) == [7]


@pytest.mark.parametrize("layout", [LAYOUT, TableLayout()])
def test_other_programs_find_rows_by_any_column(tmp_path: Path, layout: TableLayout) -> None:
    """A filter of a column that the log has no statistics of leaves no rows out."""
    for number, name in enumerate(("first", "second")):
        append(Table.create(str(tmp_path), SCHEMA, layout), name, batch(number))
    rows_found = DeltaTable(tmp_path).to_pyarrow_dataset()
    assert rows_found.count_rows(filter=ds.field("user") == "user-1") == 2 * 143


def test_a_path_that_would_be_decoded_is_refused(tmp_path: Path) -> None:
    """
    The library would look for the log in a folder with a space.

    Nothing is made, and other characters are of the path.
    """
    path = tmp_path / "a%20b"
    for action in (partial(Table.create, schema=SCHEMA, layout=LAYOUT), Table.open):
        with pytest.raises(TableError, match=r"a%20b: the library .* takes %20 in a path for another character"):
            action(str(path))
    assert not list(tmp_path.iterdir())
    table = Table.create(str(tmp_path / "a b#?%é"), SCHEMA, LAYOUT)
    append(table, "a", batch(0))
    assert len(Table.open(table.storage.uri).read()) == 1_000
