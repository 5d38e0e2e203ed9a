"""Reading of a table in parts that have all rows of a user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from .storage import File, shards_of
from .table import Table

SHARE: Final = 1 << 23
"""Approximate number of rows that a worker holds at once; a user with more rows is held completely."""
_ENCODED: Final = pa.dictionary(pa.int32(), pa.string())


def whole_users(table: Table, files: Sequence[File], columns: Sequence[str]) -> Iterator[pa.Table]:
    """
    Yield the rows of all files of a shard in tables, each with all rows of some users, in no particular order.

    A table has at most about `SHARE` rows, or all rows of one user. All files are read again for each table. Rows are
    `encoded`.
    """
    key, shards = table.layout.shard_of, table.layout.shards
    parts = 1 if key is None else max(1, -(-sum(file.rows for file in files) // SHARE))  # rounded up
    for part in range(parts):

        def rows_of_part(rows: pa.Table, part: int = part) -> pa.Table:
            """Return the rows of the users in a part."""
            if parts == 1 or key is None:
                return rows
            # Among `shards * parts` shards, the users of this shard have the numbers that differ from its own by
            # multiples of `shards`: division gives the part.
            numbers = shards_of(rows.column(key), shards * parts)
            return rows.filter(pa.array(numbers // shards == part))

        yield encoded(table, files, columns, rows_of_part)


def encoded(
    table: Table,
    files: Sequence[File],
    columns: Sequence[str],
    chosen: Callable[[pa.Table], pa.Table] = lambda rows: rows,
) -> pa.Table:
    """
    Return the rows of files that `chosen` returns for each batch, by default all rows.

    Texts become dictionaries with indices of 32 bits, so that a row has about 100 bytes, however long its names are.
    """
    fields = [table.schema.field(name) for name in columns]
    schema = pa.schema([field.with_type(_ENCODED) if field.type == pa.string() else field for field in fields])
    parts = [schema.empty_table()]  # other programs may leave files without rows
    for file in files:
        parts += [chosen(pa.Table.from_batches([batch])) for batch in table.storage.batches(file, schema)]
    return pa.concat_tables(parts)
