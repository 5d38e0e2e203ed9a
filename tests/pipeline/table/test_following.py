"""A table that is made of another one's rows takes each of them over once."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from tests.pipeline.table.rows import LAYOUT, SCHEMA, amounts, batch

from quotascope.pipeline.errors import LostCommit, UnreadableTable
from quotascope.pipeline.table import Run, Table, run_here


def _negated(rows: pa.Table) -> pa.Table:
    return rows.set_column(3, SCHEMA.field("amount"), pc.negate(rows["amount"]))


class Follower(NamedTuple):
    """Two tables, of which one follows the other."""

    source: Table
    target: Table

    def follow(self, run: Run = run_here) -> int:
        """Take over what is new."""
        return self.target.follow(self.source, _negated, run=run)


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    """A table that holds the negated amounts of another one."""
    source = Table.create(str(tmp_path / "source"), SCHEMA, LAYOUT)
    target = Table.create(str(tmp_path / "target"), SCHEMA, LAYOUT)
    return Follower(source, target)


def test_what_is_new_is_taken_over_once(follower: Follower) -> None:
    """Each call takes over what was appended since the last one."""
    follower.source.append("a", batch(0))
    assert follower.follow() == 1_000
    assert follower.follow() == 0
    follower.source.append("b", batch(1))
    follower.source.append("c", batch(2))
    assert follower.follow() == 2_000
    assert amounts(follower.target.read()) == [-each for each in reversed(range(3_000))]


def test_compaction_and_retention_bring_nothing_new(follower: Follower) -> None:
    """Rows that a compaction wrote again are not new, whether they were taken over before or not; dropped days stay in the follower."""
    follower.source.append("a", batch(0))
    follower.follow()
    follower.source.append("b", batch(1))
    follower.source.compact()
    assert follower.follow() == 1_000
    follower.source.drop_before(dt.date(1970, 1, 5))
    assert follower.follow() == 0
    assert follower.target.read().num_rows == 2_000


def test_a_late_follower_takes_what_there_is(follower: Follower) -> None:
    """A follower that was made later begins with the files of the last commit, compacted ones included."""
    follower.source.append("a", batch(0))
    follower.source.append("b", batch(1))
    follower.source.compact()
    assert follower.follow() == 2_000
    assert follower.follow() == 0


def test_a_table_made_anew_is_another_source(follower: Follower, tmp_path: Path) -> None:
    """A source that was deleted and made again is followed from its begin."""
    follower.source.append("a", batch(0))
    follower.follow()
    again = Table.create(str(tmp_path / "again"), SCHEMA, LAYOUT)
    again.append("a", batch(1))
    assert Follower(again, follower.target).follow() == 1_000


def test_two_followers_at_once(follower: Follower) -> None:
    """Of two that take over the same rows at once one wins, though the other one saw more of them."""
    follower.source.append("a", batch(0))

    def overtaken(work: Callable[[Any], Any], items: Sequence[Any], progress: object = None) -> Iterable[Any]:
        assert progress is None
        assert follower.follow() == 1_000
        return map(work, items)

    with pytest.raises(LostCommit, match="run this again"):
        follower.follow(overtaken)
    assert follower.target.read().num_rows == 1_000


def test_a_forgotten_commit_is_an_error(follower: Follower) -> None:
    """When the log has forgotten what came since the last time, the follower says so instead of leaving rows out."""
    follower.source.append("a", batch(0))
    follower.follow()
    follower.source.append("b", batch(1))
    follower.source.append("c", batch(2))
    DeltaTable(follower.source.storage.uri).create_checkpoint()
    Path(follower.source.storage.uri, "_delta_log", f"{2:020d}.json").unlink()
    with pytest.raises(UnreadableTable, match="commit 2 is needed"):
        follower.follow()


def test_a_large_bucket_is_several_pieces(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a bucket are given out together until they are enough work, and never with another bucket's."""
    monkeypatch.setattr("quotascope.pipeline.table.table.PORTION", 600)
    monkeypatch.setattr("quotascope.pipeline.table.table.CHUNK", 100)
    for number in range(4):
        follower.source.append(f"{number}", batch(number))
    pieces: list[Any] = []

    def noted(work: Callable[[Any], Any], items: Sequence[Any], progress: object = None) -> Iterable[Any]:
        assert progress is None
        pieces.extend(items)
        return map(work, items)

    assert follower.follow(noted) == 4_000
    assert all(len({file.bucket for file in piece}) == 1 for piece in pieces)
    assert len(pieces) > len({piece[0].bucket for piece in pieces})
    assert sum(file.rows for piece in pieces for file in piece) == 4_000
