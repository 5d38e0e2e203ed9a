"""How the rows of a part of the work are read."""

from pathlib import Path

import pytest
from tests.pipeline.table.rows import DAY_MS, LAYOUT, SCHEMA, append, rows

from quotascope.pipeline.runs.engine import whole_users
from quotascope.pipeline.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)


def test_a_bucket_is_read_in_shares(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more rows than a worker should hold each user's come in one piece, each row once; of fewer all at once."""
    monkeypatch.setattr("quotascope.pipeline.runs.engine.SHARE", 120)
    for number in range(2):
        append(table, f"{number}", rows(*((f"user {n % 40}", None, n * DAY_MS // 99, number) for n in range(400))))
    for files in table.buckets().values():
        shares = [set(part["user"].to_pylist()) for part in whole_users(table, files, SCHEMA.names, across_users=False)]
        count = sum(part.num_rows for part in whole_users(table, files, ["user"], across_users=False))
        assert count == sum(file.rows for file in files)
        assert len(shares) == -(-count // 120)
        assert len(set.union(*shares)) == sum(map(len, shares))
        assert len([each for each in shares if each]) > 1


def test_long_names_are_held_once(table: Table) -> None:
    """A row has about 100 bytes in memory, however long its names are."""
    long = "x" * 32_767
    append(table, "long", rows(*((long, long, DAY_MS, number) for number in range(2_000))))
    [held] = whole_users(table, table.files(), SCHEMA.names, across_users=False)
    assert held.nbytes < 1 << 20


@pytest.mark.parametrize("across_users", [False, True])
def test_a_bucket_of_files_without_rows_has_no_users(table: Table, *, across_users: bool) -> None:
    """Other programs may commit such files."""
    empty = table.storage.write(table.layout, (3, 1), table.schema, [])
    assert table.advance("empty", [empty], after=None, epoch=0) == 0
    (held,) = whole_users(table, table.files(), ["user", "amount"], across_users=across_users)
    assert (len(held), held.column_names) == (0, ["user", "amount"])
