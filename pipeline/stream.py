"""
Shadow quotas on the brokers' requests as they arrive.

A topic of request logs is ingested, and each batch is decided under candidates.

A batch is committed to the tables of requests, taken over to the history, decided, and then counted: whatever kills the
stream, the next start goes on where the tables end, and counts what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from quotascope.pages.words import counted
from quotascope.quotas.candidates import Candidate

from .history import History
from .ingest import IngestOptions, IngestReport
from .releases import Followed
from .replay.continued import HOLD_MS
from .runs.engine import on_spark
from .runs.ingest import ingest_topic
from .runs.shadow import KEY, ShadowCounters, ShadowStream
from .table import Map
from .table.storage import SHARDS

_ENTITY: Final = itemgetter(*KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Batch, ingested and decided; or the end, when no request waits for earlier ones any more."""

    batch: int | None
    """Number of the batch; None at the end."""
    report: IngestReport | None
    """Report of its lines; None at the end."""
    decided: int
    """Number of decided requests."""
    waiting: int
    """Number of requests that wait for earlier ones."""
    late: int
    """Number of decided requests that came late."""
    throttled_requests: int
    """Number of requests that a candidate throttles; one counts under each candidate."""
    entities: int
    """Number of throttled entities, on a broker and under a candidate each."""
    newly_throttled: int
    """Number of these that no quota throttled while logged."""
    kafka: Followed
    """Release that the step followed."""

    @property
    def words(self) -> str:
        """Return the step in one line."""
        new = f"of {counted(self.entities, 'entity')}, {self.newly_throttled:,} newly throttled"
        throttled = f"{self.throttled_requests:,} throttled ({new})"
        return f"{self.decided:,} requests decided, {throttled}, {self.late:,} late, {self.waiting:,} waiting"


class ShadowedTopic:
    """
    A topic of request logs under candidates.

    Args:
        into: a folder of usage history, or a URI.
        candidates: the shadows.
        hold_ms: time for which requests wait for earlier ones, ms.
        shards: into how many parts users are spread, if the tables are new.

    Raises:
        TableError: the tables cannot be read or made.

    """

    def __init__(
        self, into: str, candidates: Sequence[Candidate], *, hold_ms: int = HOLD_MS, shards: int = SHARDS
    ) -> None:
        self._into, self._shards = into, shards
        self.shadow = ShadowStream(into, History.create(into, shards), candidates, hold_ms=hold_ms)
        self.counters = ShadowCounters(self.shadow.counted().to_pylist(), self.shadow.late)
        """Counts of all steps, also of those before a restart; any thread may read them."""

    def run(
        self,
        source: Mapping[str, str],
        checkpoint: str,
        options: IngestOptions,
        *,
        every: str | None = None,
        done: Callable[[Step], None],
    ) -> None:
        """
        Ingest and decide batch by batch, until the query ends or an exception, such as a keyboard interrupt, stops it.

        Args:
            source: options of Spark's Kafka source.
            checkpoint: folder of the stream's own state, of no other stream.
            options: options for reading the logs.
            every: interval of batches, such as `10 seconds`; None reads the messages that there are, and ends.
            done: called after each batch, and at the end.

        Raises:
            NoSpark: it is not installed.
            PipelineError: something cannot be read or written; what was committed before stays, and another run
                continues from there.

        """
        workers = on_spark("shadow of shards").map

        def decide(batch: int, report: IngestReport) -> None:
            """Decide the requests of a batch that was ingested."""
            done(self._step(workers, batch, report))

        ingest_topic(source, self._into, checkpoint, options, shards=self._shards, every=every, done=decide)
        done(self._step(workers))

    def _step(self, workers: Map, batch: int | None = None, report: IngestReport | None = None) -> Step:
        """Decide the new requests of the history, and count them. At the end no request waits."""
        part = self.shadow.step(workers, all_of_it=batch is None)
        rows: list[dict[str, Any]] = part.results.to_pylist()
        self.counters.add(rows, part.late, part.until_ms)
        held_back = {_ENTITY(row): row["held_back_requests"] for row in rows if row["throttled_requests"]}
        return Step(
            batch=batch,
            report=report,
            decided=part.decided,
            waiting=part.waiting,
            late=part.late,
            throttled_requests=sum(row["throttled_requests"] for row in rows),
            entities=len(held_back),
            newly_throttled=sum(not requests for requests in held_back.values()),
            kafka=self.shadow.kafka,
        )
