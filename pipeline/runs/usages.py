"""
What is drawn of a history: its period, and the usage of some groups.

The period is that of the requests that are replayed, the table `history`, whatever its sums still hold of days that were dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo

import pyarrow as pa

from ..errors import PipelineError
from ..history.charges import SECOND_MS, rollup
from ..history.store import History
from ..report.rollups import COLUMNS, Drawn, drawn
from ..report.summary import Group
from ..table import File, Table


class EmptyHistory(PipelineError):
    """A history without a single request."""


def rows_of(table: Table) -> int:
    """How many rows a table has."""
    return sum(file.rows for file in table.files())


def span_ms(history: History) -> tuple[int, int]:
    """
    The second of the first request of a history, and the end of the second of its last one: ms since 1970.

    Raises:
        EmptyHistory: there is no request.

    """
    table = history.detail
    files = [file for file in table.files() if file.rows]
    if not files:
        raise EmptyHistory(f"{table.storage.uri}: the history is empty: ingest request logs first")  # fmt: skip
    spans = [_span_of(table, file) for file in files]
    first, last = (min(span[0] for span in spans), max(span[1] for span in spans))
    return first - first % SECOND_MS, last - last % SECOND_MS + SECOND_MS


def _span_of(table: Table, file: File) -> tuple[int, int]:
    """The first and the last time of a file; it is read where another program wrote the commit without them."""
    if file.first is not None and file.last is not None:
        return file.first, file.last
    times = table.read(["timestamp"], files=[file])["timestamp"].to_numpy()
    return int(times.min()), int(times.max())


def usages(
    history: History,
    groups: Sequence[Group],
    span: tuple[int, int],
    zone: tzinfo,
) -> dict[Group, Drawn]:
    """What groups used within the history's period, second by second."""
    return drawn(_seconds(history, span), groups, span, zone)


def _seconds(history: History, span: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    """The sums of a period; of days that only the sums lost they are made of the requests once more."""
    table = history.seconds
    begin, end = span
    for batch in _batches(table, table.files(), COLUMNS):
        starts = batch.column("start").to_numpy()
        yield batch.filter(pa.array((starts >= begin) & (starts < end)))
    kept = table.first_kept_day
    lost = [file for file in history.detail.files() if kept and file.day < kept]
    for batch in _batches(history.detail, lost, history.detail.schema.names):
        sums = rollup(pa.Table.from_batches([batch]))
        yield from sums.select(COLUMNS).to_batches()


def _batches(
    table: Table, files: Iterable[File], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """File by file, in no particular order."""
    for file in files:
        yield from table.read(columns=list(columns), files=[file]).to_batches()
