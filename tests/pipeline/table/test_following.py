"""A table that is made of another one's rows takes each of them over once."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from tests.pipeline.table.rows import DAY_MS, LAYOUT, SCHEMA, amounts, append, batch

from quotascope.pipeline.errors import NotWritten, OtherSource, UnreadableTable
from quotascope.pipeline.table import Follower, Run, Table, follow, run_here


def _negated(rows: pa.Table) -> pa.Table:
    return rows.set_column(3, SCHEMA.field("amount"), pc.negate(rows["amount"]))


def _fail() -> None:
    raise NotWritten("target", "no space")


class Pair(NamedTuple):
    """Two tables, of which one follows the other."""

    source: Table
    target: Table

    def follow(self, run: Run = run_here) -> int:
        """Take over what is new."""
        (count,) = follow(self.source, [Follower(self.target, _negated, SCHEMA.names)], run)
        return count


@pytest.fixture
def follower(tmp_path: Path) -> Pair:
    """A table that holds the negated amounts of another one."""
    source = Table.create(str(tmp_path / "source"), SCHEMA, LAYOUT)
    target = Table.create(str(tmp_path / "target"), SCHEMA, LAYOUT)
    return Pair(source, target)


def test_what_is_new_is_taken_over_once(follower: Pair) -> None:
    """Each call takes over what was appended since the last one."""
    append(follower.source, "a", batch(0))
    assert follower.follow() == 1_000
    assert follower.follow() == 0
    append(follower.source, "b", batch(1))
    append(follower.source, "c", batch(2))
    assert follower.follow() == 2_000
    assert amounts(follower.target.read()) == [-each for each in reversed(range(3_000))]


def test_compaction_and_retention_bring_nothing_new(follower: Pair) -> None:
    """Rows that a compaction wrote again are not new, whether they were taken over before or not; dropped days stay in the follower."""
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
    """It is followed from its begin if all of its rows are later; the same rows would count twice."""
    append(follower.source, "a", batch(0))
    follower.follow()
    again, same = (Table.create(str(tmp_path / name), SCHEMA, LAYOUT) for name in ("again", "same"))
    later = pc.add(batch(1)["timestamp"], pa.scalar(2 * DAY_MS))
    append(again, "a", batch(1).set_column(2, SCHEMA.field("timestamp"), later))
    append(same, "a", batch(0))
    assert Pair(again, follower.target).follow() == 1_000
    with pytest.raises(OtherSource, match=r"target: its rows were made of another table than .*same"):
        Pair(same, follower.target).follow()
    assert follower.target.read().num_rows == 2_000


def test_two_that_follow_at_once(follower: Pair) -> None:
    """Of two that take over the same rows at once one wins, though the other one saw more of them; that one looks again."""
    append(follower.source, "a", batch(0))
    tries = []

    def overtaken(work: Callable[[Any], Any], items: Sequence[Any], progress: object = None) -> Iterable[Any]:
        assert progress is None
        tries.append(items)
        if len(tries) == 1:
            assert follower.follow() == 1_000
            append(follower.source, "b", batch(1))
        return map(work, items)

    assert follower.follow(overtaken) == 1_000
    assert len(tries) == 2
    assert amounts(follower.target.read()) == [-each for each in reversed(range(2_000))]


def test_two_followers_of_one_table(follower: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are new to both are read once; what one cannot write keeps nothing from the other one, and it catches up alone."""
    other = Table.create(str(tmp_path / "other"), SCHEMA, LAYOUT)
    both = [Follower(follower.target, _negated, SCHEMA.names), Follower(other, _negated, SCHEMA.names)]
    read: list[str] = []

    def noted(work: Callable[[Any], Any], items: Sequence[Any], progress: object = None) -> Iterable[Any]:
        assert progress is None
        read.extend(file.path for item in items for file in item)
        return map(work, items)

    append(follower.source, "a", batch(0))
    first = {file.path for file in follower.source.files()}
    with monkeypatch.context() as patch:
        patch.setattr(follower.target, "advance", lambda *_, **__: _fail())
        with pytest.raises(NotWritten, match="no space"):
            follow(follower.source, both, noted)
    assert sorted(read) == sorted(first)
    assert [len(table.read()) for table in (follower.target, other)] == [0, 1_000]
    read.clear()
    append(follower.source, "b", batch(1))
    later = {file.path for file in follower.source.files()} - first
    assert follow(follower.source, both, noted) == [2_000, 1_000]
    assert sorted(read) == sorted([*first, *later, *later])
    for table in (follower.target, other):
        assert amounts(table.read()) == [-each for each in reversed(range(2_000))]


def test_a_forgotten_commit_is_an_error(follower: Pair) -> None:
    """When the log has forgotten what came since the last time, the follower says so instead of leaving rows out."""
    append(follower.source, "a", batch(0))
    follower.follow()
    append(follower.source, "b", batch(1))
    append(follower.source, "c", batch(2))
    DeltaTable(follower.source.storage.uri).create_checkpoint()
    Path(follower.source.storage.uri, "_delta_log", f"{2:020d}.json").unlink()
    with pytest.raises(UnreadableTable, match="commit 2 is needed"):
        follower.follow()


def test_a_large_bucket_is_several_pieces(follower: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a bucket are given out together until they are enough work, and never with another bucket's."""
    monkeypatch.setattr("quotascope.pipeline.table.table.PORTION", 600)
    monkeypatch.setattr("quotascope.pipeline.table.table.CHUNK", 100)
    for number in range(4):
        append(follower.source, f"{number}", batch(number))
    pieces: list[Any] = []

    def noted(work: Callable[[Any], Any], items: Sequence[Any], progress: object = None) -> Iterable[Any]:
        assert progress is None
        pieces.extend(items)
        return map(work, items)

    assert follower.follow(noted) == 4_000
    assert all(len({file.bucket for file in piece}) == 1 for piece in pieces)
    assert len(pieces) > len({piece[0].bucket for piece in pieces})
    assert sum(file.rows for piece in pieces for file in piece) == 4_000
