"""Makes what workers have staged part of the tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from quotascope.metrics import KafkaRelease

from ..errors import LostCommit
from ..request_log.mutations import MutationLedger
from ..request_log.releases import keep, notes
from ..request_log.schema import REQUESTS
from ..table import NO_NOTES, File, Table, Turn, retried
from .known_topics import KnownTopics
from .parts import Staged
from .report import Report
from .seen import Seen
from .tables import Tables

RUNS: Final = "quotascope.ingest"
"""Under which id the commits of all runs count up, so that of two at once one fails and has to look again what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a commit is known by."""

    name: str
    epoch: int
    repeated: bool = False
    """Whether the same batch may come again, as after a stream's restart; else an epoch that is taken is another run's."""
    turn: Turn | None = None
    """Of all runs, which a batch with a name of its own takes as well."""


def next_run(table: Table) -> Batch:
    """The next commit of runs; ask before looking for what the table holds."""
    turn = _next_turn(table)
    return Batch(name=turn.of, epoch=turn.epoch)


def repeated(table: Table, name: str, epoch: int) -> Batch:
    """A commit that may come again under its own name, and takes its turn among the runs; ask before looking for what the table holds."""
    return Batch(name=name, epoch=epoch, repeated=True, turn=_next_turn(table))


def _next_turn(table: Table) -> Turn:
    last = table.last_epoch(RUNS)
    return Turn(RUNS, 0 if last is None else last + 1)


class Committer:
    """
    Commits batches one after the other, and remembers what they told of topics.

    Args:
        tables: where they go.
        ledger: with the topics' partitions before the first line; it learns the rest from the table.

    """

    def __init__(self, tables: Tables, ledger: MutationLedger) -> None:
        self._tables = tables
        self._topics = KnownTopics(tables.requests, ledger)
        self._kept = 0
        """Requests that an attempt added before it lost the commit of its quarantine."""

    def add(
        self,
        stage: Callable[[], Sequence[Staged]],
        batch_of: Callable[[Table], Batch] = next_run,
    ) -> Report:
        """
        Stage and commit, the requests before the quarantine; again while another run adds rows first, which may be the same.

        Args:
            stage: writes the rows that the tables do not hold now, and returns what all workers wrote.
            batch_of: what the commit to a table is known by.

        Raises:
            LostCommit: other runs committed first each time (`retried`); what was added stays, and is not added twice.
            TableError: a table could not be written; nothing was added to it.

        """

        def attempt() -> Report:
            requests, quarantine = map(batch_of, self._tables)
            return self.commit(stage(), requests, quarantine)

        self._kept = 0
        return retried(attempt)

    def commit(
        self, parts: Sequence[Staged], requests: Batch, quarantine: Batch
    ) -> Report:
        """
        Commit what was staged, the requests before the quarantine.

        Args:
            parts: of all workers.
            requests: what the commit of the requests is known by.
            quarantine: the same for the quarantine.

        Raises:
            LostCommit: another run was quicker; run it all again, nothing is added twice.
            TableError: a table could not be written; nothing was added to it.

        """
        report = Report(
            read=sum(part.lines for part in parts),
            duplicates=sum(part.duplicates for part in parts),
            quarantined_before=sum(part.quarantined_before for part in parts),
            forwarded=sum(part.forwarded for part in parts),
        )
        files = [file for part in parts for file in part.requests]
        files += self._with_topics(parts, report)
        # requests of an attempt that then lost the commit of its quarantine are found as duplicates now
        report.duplicates -= self._kept
        self._kept += _commit(self._tables.requests, files, requests, _notes(parts))
        refused = [file for part in parts for file in part.quarantine]
        report.quarantined = _commit(self._tables.quarantine, refused, quarantine)
        report.kept, self._kept = self._kept, 0
        for part in parts:
            report.reasons.update(part.reasons)
        return report

    def _with_topics(self, parts: Sequence[Staged], report: Report) -> list[File]:
        """Stage the requests that name topics, now that all of them are here."""
        named = pa.concat_tables(
            [REQUESTS.empty_table(), *(part.topics for part in parts)]
        )
        new = Seen(self._tables.requests, "timestamp").fresh(named)
        resolved = self._topics.resolve(new)
        report.duplicates += len(named) - len(new)
        report.forwarded += resolved.forwarded
        return self._tables.requests.stage(resolved.requests)


def _notes(parts: Sequence[Staged]) -> Mapping[str, int]:
    named: dict[KafkaRelease, int] = {}
    for part in parts:
        keep(named, part.named)
    return notes(named)


def _commit(
    table: Table,
    files: Sequence[File],
    batch: Batch,
    notes: Mapping[str, int] = NO_NOTES,
) -> int:
    rows = sum(file.rows for file in files)
    if not files:
        return 0
    added = table.commit(batch.name, files, batch.epoch, batch.turn, notes)
    if added < rows and not batch.repeated:
        raise LostCommit(table.storage.uri, "another run added rows")
    return added
