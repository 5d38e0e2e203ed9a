"""Streams of history rows in pieces that no user, and no group, is cut by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

NEEDED: Final = (
    "user",
    "client_id",
    "broker",
    "timestamp",
    "completed",
    "connection",
    "api_key",
    "api_version",
    "produce_bytes",
    "fetch_bytes",
    "request_ms",
    "network_ms",
    "mutations",
    "mutations_charged",
    "mutation_timestamp",
    "refused",
    "throttle_ms",
)
"""The columns of a history that a replay looks at."""


def whole_groups(
    tables: Iterable[pa.Table], rows: int, key: str = "user"
) -> Iterator[pa.Table]:
    """
    The rows in pieces of about so many, each with all rows of its groups; what is cut off is carried over.

    Memory is that of the largest group, or of a piece.

    Args:
        tables: rows of a group come together.
        rows: how many make a piece, at least.
        key: the column that tells groups apart.

    """
    whole: list[pa.Table] = []
    cut_off: list[pa.Table] = []
    for table in tables:
        if not len(table):
            continue
        start = _last_group(table, key)
        if start or (cut_off and _group(cut_off[-1], key) != _group(table, key)):
            whole += [*cut_off, table.slice(0, start)]
            cut_off = []
        cut_off.append(table.slice(start))
        if sum(map(len, whole)) >= rows:
            yield pa.concat_tables(whole)
            whole = []
    if whole or cut_off:
        yield pa.concat_tables([*whole, *cut_off])


def _group(table: pa.Table, key: str) -> object:
    return table.column(key)[len(table) - 1].as_py()


def _last_group(table: pa.Table, key: str) -> int:
    """Where the rows of the last group begin."""
    groups = table.column(key)
    differing = pc.indices_nonzero(pc.not_equal(groups, groups[len(groups) - 1]))
    return int(differing[len(differing) - 1].as_py()) + 1 if len(differing) else 0
