"""Tables whose log loses commits, or has other bytes than were written: no part is read as if it were complete."""

from functools import partial
from pathlib import Path
from shutil import rmtree

import pytest
from tests.pipeline.table.rows import LAYOUT, SCHEMA, amounts, append, batch

from quotascope.pipeline.errors import UnreadableTable
from quotascope.pipeline.table import Table, kept
from quotascope.pipeline.table.storage import Storage


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    for number in range(3):
        append(table, f"{number}", batch(number, 20))
    return table


def _commit(table: Table, version: int) -> Path:
    return Path(table.storage.uri, "_delta_log", f"{version:020d}.json")


def test_a_lost_last_commit_is_missed_and_restored(table: Table) -> None:
    """A lost last commit, for which Delta reads an older table, is an error until its copy is restored."""
    _commit(table, 3).unlink()
    with pytest.raises(UnreadableTable, match=r"ends with commit 2, and commit 3 was made.*history repair"):
        Table.open(table.storage.uri)
    assert [file.whole for file in kept.restore(table.storage, write=True)] == [True]
    assert amounts(Table.open(table.storage.uri).read()) == list(range(60))


@pytest.mark.parametrize("version", [1, 3])
def test_an_empty_commit_is_found_and_restored(table: Table, version: int) -> None:
    """A commit without its lines adds nothing, which Delta does not mind."""
    _commit(table, version).write_bytes(b"")
    with pytest.raises(UnreadableTable, match=rf"{version:020d}.json is gone or has other bytes"):
        Table.open(table.storage.uri)
    assert [file.path for file in kept.restore(table.storage, write=False)] == [f"_delta_log/{version:020d}.json"]
    assert [file.whole for file in kept.restore(table.storage, write=True)] == [True]
    assert amounts(Table.open(table.storage.uri).read()) == list(range(60))


def test_a_commit_without_a_whole_copy_is_lost(table: Table) -> None:
    """The table returns to its state before that commit, and `restore` reports the loss."""
    _commit(table, 3).write_bytes(b"")
    (copy,) = Path(table.storage.uri, "_commits").glob(f"{3:020d}-*")
    copy.write_bytes(b"")
    assert [file.whole for file in kept.restore(table.storage, write=True)] == [False]
    assert amounts(Table.open(table.storage.uri).read()) == list(range(40))


def test_a_flipped_bit_of_a_checkpoint_is_found(table: Table) -> None:
    """A checkpoint says which files there are; without it, the commits say the same."""
    for number in range(3, 100):
        append(table, f"{number}", batch(number, 1))
    (checkpoint,) = Path(table.storage.uri, "_delta_log").glob("*.checkpoint.parquet")
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 3] ^= 4
    checkpoint.write_bytes(content)
    with pytest.raises(UnreadableTable, match=r"its log \(_delta_log\) cannot be read.*history repair"):
        Table.open(table.storage.uri)
    assert [file.whole for file in kept.restore(table.storage, write=True)] == [True]
    again = Table.open(table.storage.uri)
    assert again.version == 100
    assert len(again.read()) == 60 + 97


def test_what_a_killed_run_did_not_keep_is_kept_with_the_next_commit(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit without a copy is valid, and gets its copy with the next commit."""
    with monkeypatch.context() as patch:
        patch.setattr(kept, "keep", lambda *_: None)
        append(table, "4", batch(4, 20))
    append(table, "5", batch(5, 20))
    assert [file.version for file in kept.listed(table.storage)] == [0, 1, 2, 3, 4, 5]


def test_a_log_that_is_gone_makes_no_new_table(table: Table) -> None:
    """A table whose log is gone is neither taken for none nor replaced by an empty one."""
    for commit in Path(table.storage.uri, "_delta_log").iterdir():
        commit.unlink()
    for action in (Table.open, partial(Table.create, schema=SCHEMA, layout=LAYOUT)):
        with pytest.raises(UnreadableTable, match=r"it is gone; .*history repair"):
            action(table.storage.uri)
    assert all(file.whole for file in kept.restore(table.storage, write=True))
    assert amounts(Table.open(table.storage.uri).read()) == list(range(60))


def test_the_last_commit_is_needed_beside_its_checkpoint(table: Table) -> None:
    """A table without its last commit is damaged, though the library reads its checkpoint."""
    table.forget()
    _commit(table, 3).unlink()
    with pytest.raises(UnreadableTable, match=r"is gone or has other bytes.*history repair"):
        Table.open(table.storage.uri)
    assert [file.whole for file in kept.restore(table.storage, write=True)] == [True]
    append(Table.open(table.storage.uri), "4", batch(4, 20))


def test_the_copies_are_not_listed_at_each_commit(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A commit takes as long after thousands of others.

    This process knows the last copy, unless another one has committed since.
    """
    append(table, "first", batch(0))
    counts = list[int]()
    listed = kept.listed

    def counted(storage: Storage) -> list[kept.Kept]:
        counts.append(1)
        return listed(storage)

    monkeypatch.setattr(kept, "listed", counted)
    for number in range(5):
        append(table, f"{number}", batch(0))
    assert not counts
    append(Table.open(table.storage.uri), "by another", batch(0))
    append(table, "last", batch(0))
    versions = [file.version for file in listed(table.storage) if file.kind == "json"]
    assert versions == [*range(table.version + 1)]


def test_a_damaged_log_without_copies(table: Table) -> None:
    """A repair has nothing to restore it from, and is not advised."""
    append(table, "first", batch(0))
    _commit(table, 0).write_bytes(b"{")
    with pytest.raises(UnreadableTable, match="history repair"):
        Table.open(table.storage.uri)
    rmtree(Path(table.storage.uri, "_commits"))
    with pytest.raises(UnreadableTable, match="move the folder away, and ingest the request logs again"):
        Table.open(table.storage.uri)
