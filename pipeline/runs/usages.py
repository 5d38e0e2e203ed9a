"""What is drawn of a history: its length, and the usage of some groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo

import numpy as np
import pyarrow as pa

from ..errors import PipelineError
from ..history.store import History
from ..report.rollups import COLUMNS, Drawn, drawn
from ..report.summary import Group
from ..table import File, Table

_SECOND = 1_000


class EmptyHistory(PipelineError):
    """A history without a single request."""


def rows_of(table: Table) -> int:
    """How many rows a table has."""
    return sum(file.rows for file in table.files())


def span_ms(history: History) -> tuple[int, int]:
    """
    The first second of a history that anybody used, and the end of the last one: ms since 1970.

    Raises:
        EmptyHistory: nobody used anything.

    """
    table = history.rollups["seconds"]
    files = table.files()
    if not files:
        raise EmptyHistory(f"{history.detail.storage.uri}: the history is empty: ingest request logs first")  # fmt: skip
    days = [file.day for file in files]
    ends = [file for file in files if file.day in (min(days), max(days))]
    starts = [batch.column("start").to_numpy() for batch in _batches(table, ends, ("start",))]  # fmt: skip
    found = np.concatenate(starts)
    return int(found.min()), int(found.max()) + _SECOND


def usages(
    history: History,
    groups: Sequence[Group],
    span: tuple[int, int],
    zone: tzinfo,
) -> dict[Group, Drawn]:
    """What groups used, second by second."""
    table = history.rollups["seconds"]
    return drawn(_batches(table, table.files(), COLUMNS), groups, span, zone)


def _batches(
    table: Table, files: Iterable[File], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """File by file, in no particular order."""
    for file in files:
        yield from table.read(columns=list(columns), files=[file]).to_batches()
