"""
Several writers of one table, and a table that is made of another one.

Each change happens once, or its writer gets an error.
"""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyarrow import fs
from tests.pipeline.table.rows import LAYOUT, SCHEMA, amounts, append, batch, watched

from quotascope.pipeline.errors import LostCommit, NotWritten, OtherSource, UnreadableTable
from quotascope.pipeline.table import Follower, Map, Table, follow, log, retried
from quotascope.pipeline.table.storage import Storage
from quotascope.pipeline.table.table import remade


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    append(table, "a", batch(0))
    append(table, "b", batch(1))
    return table.storage.uri


def parquet(path: str) -> int:
    """Return the number of files, committed or not."""
    return len([*Path(path).glob("day=*/**/*.parquet")])


def test_writers_at_once(path: str) -> None:
    """
    Of many processes that append the same batch one adds it; the others add nothing and leave no file.

    All other batches succeed.
    """
    numbers = [2] * 4 + [*range(3, 8)]
    with ThreadPoolExecutor(4) as pool:
        added = pool.map(lambda n: retried(lambda: append(Table.open(path), f"{n}", batch(n))), numbers)
        assert sorted(added) == [0] * 3 + [1_000] * 6
    table = Table.open(path)
    assert amounts(table.read()) == list(range(8_000))
    assert parquet(path) == len(table.files())


def test_a_folder_that_another_process_has_just_created(tmp_path: Path) -> None:
    """A listing succeeds where Arrow finds the folder missing, and then finds it there."""
    storage = Storage(str(tmp_path))
    real = storage.filesystem

    class Late:
        """A file system in which another process creates the folder during the first listing."""

        def get_file_info(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
            if not (tmp_path / "folder").exists():
                (tmp_path / "folder").mkdir()
                raise FileNotFoundError(selector.base_dir)
            return real.get_file_info(selector)

    storage.__dict__["filesystem"] = Late()
    assert storage.listing("folder") == []


def test_makers_of_the_same_table(tmp_path: Path) -> None:
    """Of several processes that create the same table at once, one does and the others open it."""
    for attempt in range(8):
        path = str(tmp_path / f"{attempt}")
        together = Barrier(4)

        def make(path: str = path, together: Barrier = together) -> Table:
            together.wait()
            return Table.create(path, SCHEMA, LAYOUT)

        with ThreadPoolExecutor(4) as pool:
            tables = [each.result() for each in [pool.submit(make) for _ in range(4)]]
        assert len({table.identity for table in tables}) == 1
        assert [table.version for table in tables] == [0] * 4


def test_two_compactions(path: str) -> None:
    """
    Of two compactions of the same files one wins.

    The other gets an error and leaves nothing, and no row is there twice.
    """
    first, second = Table.open(path), Table.open(path)
    replaced = len(second.files())
    with pytest.raises(LostCommit, match="run this again"):
        second.compact(map_items=watched([], after_work=first.compact))
    assert amounts(first.read()) == list(range(2_000))
    assert second.compact() == 0
    assert parquet(path) == replaced + len(first.files())


def test_the_log_itself_lets_one_removal_win(path: str) -> None:
    """Two logs that read the same version cannot both remove a file, even without a check beforehand."""
    table = Table.open(path)
    storage = table.storage
    old = table.files()
    first, second = log.opened(storage), log.opened(storage)
    log.commit(storage, first, [], old, {})
    with pytest.raises(LostCommit, match="oncurrent"):
        log.commit(storage, second, [], old, {})
    assert table.files() == ()


def test_an_append_during_a_compaction(path: str) -> None:
    """Rows that were appended while files were merged stay beside the merged ones."""
    append_more = partial(append, Table.open(path), "c", batch(2))
    assert Table.open(path).compact(map_items=watched([], after_work=append_more)) > 0
    assert amounts(Table.open(path).read()) == list(range(3_000))


def test_days_dropped_during_a_compaction(path: str) -> None:
    """A compaction does not bring back days that were dropped while it ran."""
    drop = partial(Table.open(path).drop_before, dt.date(1970, 1, 5))
    with pytest.raises(LostCommit):
        Table.open(path).compact(map_items=watched([], after_work=drop))
    assert {file.day for file in Table.open(path).files()} == {4}


def test_a_batch_id_that_went_on(path: str) -> None:
    """A process whose last epoch is overtaken gets an error, and adds nothing."""
    one, second_table = Table.open(path), Table.open(path)
    staged = second_table.stage(batch(3))
    assert one.advance("stream", one.stage(batch(2)), after_epoch=None, epoch=7) == 1_000
    with pytest.raises(LostCommit, match="stream went on"):
        second_table.advance("stream", staged, after_epoch=None, epoch=8)
    assert amounts(one.read()) == list(range(3_000))
    assert not (Path(path) / staged[0].path).exists()


def _negated(rows: pa.Table) -> pa.Table:
    return rows.set_column(3, SCHEMA.field("amount"), pc.negate(rows["amount"]))


def _fail() -> None:
    raise NotWritten("target", "no space")


class Pair(NamedTuple):
    source: Table
    target: Table

    def follow(self, map_items: Map = map) -> int:
        (count,) = follow(self.source, [Follower(self.target, _negated, SCHEMA.names)], map_items)
        return count


@pytest.fixture
def follower(tmp_path: Path) -> Pair:
    source = Table.create(str(tmp_path / "source"), SCHEMA, LAYOUT)
    target = Table.create(str(tmp_path / "target"), SCHEMA, LAYOUT)
    return Pair(source, target)


def test_compaction_and_retention_bring_nothing_new(follower: Pair) -> None:
    """Compacted rows are not new, whether they were taken over before or not. Dropped days stay in the follower."""
    append(follower.source, "a", batch(0))
    follower.follow()
    append(follower.source, "b", batch(1))
    follower.source.compact()
    assert follower.follow() == 1_000
    follower.source.drop_before(dt.date(1970, 1, 5))
    assert follower.follow() == 0
    assert follower.target.read().num_rows == 2_000


def test_a_late_follower_takes_what_there_is(follower: Pair) -> None:
    """A follower that was made later begins with the files of the last commit, compacted ones included."""
    append(follower.source, "a", batch(0))
    append(follower.source, "b", batch(1))
    follower.source.compact()
    assert follower.follow() == 2_000
    assert follower.follow() == 0


def test_a_table_that_was_made_again_is_another_source(follower: Pair, tmp_path: Path) -> None:
    """A table that was made again may have the same rows, and is refused until those of the former one are removed."""
    append(follower.source, "a", batch(0))
    follower.follow()
    again = Table.create(str(tmp_path / "again"), SCHEMA, LAYOUT)
    append(again, "a", batch(1))
    with pytest.raises(OtherSource, match=r"target: its rows were made of another table than .*again"):
        Pair(again, follower.target).follow()
    assert follower.target.read().num_rows == 1_000
    follower.target.drop_before(dt.date(2030, 1, 1))
    assert Pair(again, follower.target).follow() == 1_000


def test_two_that_follow_at_once(follower: Pair) -> None:
    """Of two processes that take over the same rows one wins, though the other saw more and looks again."""
    append(follower.source, "a", batch(0))
    tries: list[int] = []

    def overtake() -> None:
        tries.append(len(tries))
        if len(tries) == 1:
            assert follower.follow() == 1_000
            append(follower.source, "b", batch(1))

    assert follower.follow(watched([], before_work=overtake)) == 1_000
    assert len(tries) == 2
    assert amounts(follower.target.read()) == [-number for number in reversed(range(2_000))]


def test_two_followers_of_one_table(follower: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Rows that are new to two followers are read once.

    A failure of one keeps nothing from the other, and it catches up alone.
    """
    second_table = Table.create(str(tmp_path / "other"), SCHEMA, LAYOUT)
    both = [Follower(follower.target, _negated, SCHEMA.names), Follower(second_table, _negated, SCHEMA.names)]
    columns_read: list[Any] = []
    noted = watched(columns_read)
    append(follower.source, "a", batch(0))
    first = {file.path for file in follower.source.files()}
    with monkeypatch.context() as patch:
        patch.setattr(follower.target, "advance", lambda *_, **__: _fail())
        with pytest.raises(NotWritten, match="no space"):
            follow(follower.source, both, noted)
    assert sorted(file.path for item in columns_read for file in item) == sorted(first)
    assert [len(table.read()) for table in (follower.target, second_table)] == [0, 1_000]
    columns_read.clear()
    append(follower.source, "b", batch(1))
    later = {file.path for file in follower.source.files()} - first
    assert follow(follower.source, both, noted) == [2_000, 1_000]
    assert sorted(file.path for item in columns_read for file in item) == sorted([*first, *later, *later])
    for table in (follower.target, second_table):
        assert amounts(table.read()) == [-number for number in reversed(range(2_000))]


def test_what_cannot_be_made_to_the_end_leaves_nothing(follower: Pair) -> None:
    """If rows of one shard cannot be written, files of others are removed, and nothing is committed."""
    append(follower.source, "a", batch(0))
    seen: list[pa.Table] = []

    def make(rows: pa.Table) -> pa.Table:
        seen.append(rows)
        if len(seen) > 1:
            _fail()
        return _negated(rows)

    with pytest.raises(NotWritten, match="no space"):
        follow(follower.source, [Follower(follower.target, make, SCHEMA.names)])
    assert parquet(follower.target.storage.uri) == 0
    assert follower.follow() == 1_000


def test_an_interrupt_after_rows_were_made_again_keeps_them(follower: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt after the commit of rows made again removes no file of the table; those of dropped days are gone."""
    for number in range(2):
        append(follower.source, f"{number}", batch(number))
    follower.follow()
    days = sorted({file.day for file in follower.target.files()})
    follower.target.drop_before(dt.date(1970, 1, 1) + dt.timedelta(days[-1]))
    kept, commit = amounts(follower.target.read()), log.commit

    def interrupted(*arguments: Any, **options: Any) -> None:
        commit(*arguments, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(log, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remade(follower.source, Follower(follower.target, _negated, SCHEMA.names))
    table = Table.open(follower.target.storage.uri)
    assert (len(days) > 1, table.lost(), amounts(table.read())) == (True, [], kept)


def test_a_forgotten_commit_is_an_error(follower: Pair) -> None:
    """If the log has forgotten the commits since the last time, the follower says so instead of leaving rows out."""
    append(follower.source, "a", batch(0))
    follower.follow()
    append(follower.source, "b", batch(1))
    append(follower.source, "c", batch(2))
    DeltaTable(follower.source.storage.uri).create_checkpoint()
    Path(follower.source.storage.uri, "_delta_log", f"{2:020d}.json").unlink()
    with pytest.raises(UnreadableTable, match="commit 2 is needed, and no longer"):
        follower.follow()


def test_a_large_shard_is_several_pieces(follower: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a shard are given out together until they are enough work, and never with another shard's."""
    monkeypatch.setattr("quotascope.pipeline.table.table.TASK_ROWS", 600)
    monkeypatch.setattr("quotascope.pipeline.table.table.CHUNK", 100)
    for number in range(4):
        append(follower.source, f"{number}", batch(number))
    pieces: list[Any] = []
    assert follower.follow(watched(pieces)) == 4_000
    assert all(len({file.shard for file in piece}) == 1 for piece in pieces)
    assert len(pieces) > len({piece[0].shard for piece in pieces})
    assert sum(file.rows for piece in pieces for file in piece) == 4_000
