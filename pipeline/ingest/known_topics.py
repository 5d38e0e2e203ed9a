"""What a table of requests tells of topics."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnreadableTable
from ..request_log.mutations import LEDGER_COLUMNS, MutationLedger, Resolved
from ..table import File, Table


class KnownTopics:
    """
    A ledger that learns from a table whatever came to it since the last request that names topics, by this run or by others.

    Each file is read once, and not again when files are compacted.

    Args:
        table: of requests.
        ledger: with what is known from elsewhere.

    """

    def __init__(self, table: Table, ledger: MutationLedger) -> None:
        self._table = table
        self._ledger = ledger
        self._version: int | None = None

    def resolve(self, requests: pa.Table) -> Resolved:
        """Return `MutationLedger.resolve` of requests that the table does not hold."""
        if requests["topics"].null_count < len(requests):
            self._learn(self._new_files())
        return self._ledger.resolve(requests)

    def _new_files(self) -> Iterable[File]:
        try:
            self._version, files = self._table.added_since(self._version)
        except UnreadableTable:  # that long ago: the log has forgotten it
            self._version, files = self._table.added_since(None)
        now = self._table.files()
        there = {file.path for file in now}
        # what was compacted may be deleted by now: then all is read once more, and telling it twice changes nothing
        return files if all(file.path in there for file in files) else now

    def _learn(self, files: Iterable[File]) -> None:
        for file in files:
            for batch in self._table.storage.batches(file, LEDGER_COLUMNS):
                rows = pa.Table.from_batches([batch])
                if rows["topics"].null_count < len(rows):
                    self._ledger.remember(rows.filter(pc.is_valid(rows["topics"])))
