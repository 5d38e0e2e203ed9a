"""Several writers of one table: each change happens once, or its writer gets an error."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from tests.pipeline.table.rows import LAYOUT, SCHEMA, amounts, append, batch

from quotascope.pipeline.errors import LostCommit
from quotascope.pipeline.table import Run, Table, log, retried


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Path of a table with two batches."""
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    append(table, "a", batch(0))
    append(table, "b", batch(1))
    return table.storage.uri


def test_writers_of_the_same_batch(path: str) -> None:
    """Of many that append the same batch at once one adds it; the others look again, add nothing and leave nothing."""
    again = partial(retried, lambda: append(Table.open(path), "c", batch(2)))
    with ThreadPoolExecutor(4) as pool:
        added = [*pool.map(lambda _: again(), range(4))]
    assert sorted(added) == [0, 0, 0, 1_000]
    table = Table.open(path)
    assert amounts(table.read()) == list(range(3_000))
    assert len([*Path(path).glob("day=*/**/*.parquet")]) == len(table.files())


def test_makers_of_the_same_table(tmp_path: Path) -> None:
    """Of some that make the same table at the same time one does; the others open it."""
    for attempt in range(8):
        path = str(tmp_path / f"{attempt}")
        together = Barrier(4)

        def make(path: str = path, together: Barrier = together) -> Table:
            together.wait()
            return Table.create(path, SCHEMA, LAYOUT)

        with ThreadPoolExecutor(4) as pool:
            made = [each.result() for each in [pool.submit(make) for _ in range(4)]]
        assert len({table.identity for table in made}) == 1
        assert [table.version for table in made] == [0] * 4


def test_writers_of_different_batches(path: str) -> None:
    """Appends of different batches at once all succeed."""
    with ThreadPoolExecutor(4) as pool:
        added = [*pool.map(lambda number: append(Table.open(path), f"{number}", batch(number)), range(2, 8))]
    assert added == [1_000] * 6
    assert amounts(Table.open(path).read()) == list(range(8_000))


def during(change: Callable[[], object]) -> Run:
    """Do the work here, and then something else before anything of it is committed."""

    def run(work: Callable[[Any], Any], items: Sequence[Any], progress: object = None) -> Iterable[Any]:
        assert progress is None
        yield from map(work, items)
        change()

    return run


def parquet(path: str) -> int:
    """How many files there are, committed or not."""
    return len([*Path(path).glob("day=*/**/*.parquet")])


def test_two_compactions(path: str) -> None:
    """Of two compactions of the same files one wins; the other gets an error and leaves nothing, and no row is there twice."""
    first, second = Table.open(path), Table.open(path)
    replaced = len(second.files())
    with pytest.raises(LostCommit, match="run this again"):
        second.compact(run=during(first.compact))
    assert amounts(first.read()) == list(range(2_000))
    assert second.compact() == 0
    assert parquet(path) == replaced + len(first.files())


def test_the_log_itself_lets_one_removal_win(path: str) -> None:
    """Two logs that read the same version cannot both remove a file, not even when no one looks before."""
    table = Table.open(path)
    storage = table.storage
    old = [log.removed(storage, file, rows_stay=True) for file in table.files()]
    first, second = log.opened(storage), log.opened(storage)
    log.commit(storage, first, old, {})
    with pytest.raises(LostCommit, match="oncurrent"):
        log.commit(storage, second, old, {})
    assert table.files() == ()


def test_an_append_during_a_compaction(path: str) -> None:
    """What was appended while files were merged stays beside the merged ones."""
    more = partial(append, Table.open(path), "c", batch(2))
    assert Table.open(path).compact(run=during(more)) > 0
    assert amounts(Table.open(path).read()) == list(range(3_000))


def test_days_dropped_during_a_compaction(path: str) -> None:
    """A compaction does not bring back days that were dropped while it ran."""
    drop = partial(Table.open(path).drop_before, dt.date(1970, 1, 5))
    with pytest.raises(LostCommit):
        Table.open(path).compact(run=during(drop))
    assert {file.day for file in Table.open(path).files()} == {4}


def test_a_batch_id_that_went_on(path: str) -> None:
    """Who follows an epoch that is not the last one any more gets an error, and adds nothing."""
    one, other = Table.open(path), Table.open(path)
    staged = other.stage(batch(3))
    assert one.advance("stream", one.stage(batch(2)), after=None, epoch=7) == 1_000
    with pytest.raises(LostCommit, match="stream went on"):
        other.advance("stream", staged, after=None, epoch=8)
    assert amounts(one.read()) == list(range(3_000))
    assert not (Path(path) / staged[0].path).exists()
