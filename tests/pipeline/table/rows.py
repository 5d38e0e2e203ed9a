"""Rows for the tests of tables."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from quotascope.pipeline.table import Map, Table, TableLayout

_COLUMNS: list[Any] = [
    pa.field("user", pa.string(), nullable=False),
    pa.field("client_id", pa.string()),
    pa.field("timestamp", pa.int64(), nullable=False),
    pa.field("amount", pa.int64(), nullable=False),
]
SCHEMA = pa.schema(_COLUMNS)
LAYOUT = TableLayout(shard_of="user", shards=4, day_of="timestamp")
DAY_MS = 86_400_000


def rows(*values: tuple[str, str | None, int, int]) -> pa.Table:
    columns: Sequence[Sequence[object]] = list(zip(*values, strict=True)) or [()] * 4
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def batch(number: int, count: int = 1_000) -> pa.Table:
    """Rows of many users on two days; no two batches have an amount in common."""
    day = 3 * DAY_MS + number
    users = range(count)
    return rows(*((f"user-{n % 7}", f"client-{n % 3}", day + n * 160_000, number * count + n) for n in users))


def append(table: Table, batch_id: str, rows: pa.Table | Iterable[pa.RecordBatch]) -> int:
    """Add rows in any order, unless their batch was added before; return how many were added."""
    return 0 if table.holds(batch_id) else table.advance(batch_id, table.stage(rows), after_epoch=None, epoch=0)


def amounts(table: pa.Table) -> list[int]:
    amounts_found: list[Any] = table.column("amount").to_pylist()
    return sorted(amounts_found)


def watched(
    items_seen: list[Any],
    before_work: Callable[[], object] = lambda: None,
    after_work: Callable[[], object] = lambda: None,
) -> Map:
    """
    Return a map that works here, and runs something before the work, or between work and commit.

    It notes its items.
    """

    def map_items(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterable[Any]:
        items_seen.extend(items)
        before_work()
        yield from map(work, items)
        after_work()

    return map_items
