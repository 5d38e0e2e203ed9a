"""Rows of a table of which all of a user are in memory at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from .storage import File, shards_of
from .table import Table

SHARE: Final = 1 << 23
"""Number of rows of a shard that a worker holds at once, if no user has more."""
_ENCODED: Final = pa.dictionary(pa.int32(), pa.string())


def whole_users(table: Table, files: Sequence[File], columns: Sequence[str]) -> Iterator[pa.Table]:
    """
    Yield the rows of all files of a shard in tables that hold all rows of some users each, in no particular order.

    A table has about `SHARE` rows at most, or all rows of one user. The files are read once for each table. Rows are
    `encoded`.
    """
    key, shards = table.layout.shard_of, table.layout.shards
    shares = 1 if key is None else max(1, -(-sum(file.rows for file in files) // SHARE))
    for share in range(shares):

        def of_share(rows: pa.Table, share: int = share) -> pa.Table:
            if shares == 1 or key is None:
                return rows
            numbers = shards_of(rows.column(key), shards * shares)
            return rows.filter(pa.array(numbers // shards == share))

        yield encoded(table, files, columns, of_share)


def encoded(
    table: Table,
    files: Sequence[File],
    columns: Sequence[str],
    taken: Callable[[pa.Table], pa.Table] = lambda rows: rows,
) -> pa.Table:
    """
    Return the rows of files, or those that are taken of each batch.

    Texts are dictionaries of 32 bits, so that a row has about 100 bytes however long its names are.
    """
    fields = [table.schema.field(name) for name in columns]
    schema = pa.schema([field.with_type(_ENCODED) if field.type == pa.string() else field for field in fields])
    parts = [schema.empty_table()]  # other programs may leave files without rows
    for file in files:
        parts += [taken(pa.Table.from_batches([batch])) for batch in table.storage.batches(file, schema)]
    return pa.concat_tables(parts)
