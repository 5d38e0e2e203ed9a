"""Extent of a log: its period, the hours of the week in it, and the requests that were throttled while logged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.pages.words import counted, seconds

from ..errors import PipelineError
from ..history.charges import EXEMPT_APIS
from ..history.schema import UNKNOWN_MS
from ..rates import QUARTER_MS, seen_hours
from .policy import RuleShape

COLUMNS: Final = ("user", "client_id", "timestamp", "throttle_ms", "refused", "api_key")
"""Columns of a history that are read."""
_OF_BROKERS: Final = pa.array(
    [
        *EXEMPT_APIS,
        ApiKey.ENVELOPE,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    ],
    pa.int16(),
)
"""APIs that only brokers and controllers use."""
_ANYONE: Final = "ANONYMOUS"
"""User of all clients and brokers without authentication."""
DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_DAY_HOURS: Final = 24


class ShortLog(PipelineError):
    """A log covers less than a day, which is too short for limits."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Requests of an entity, of all APIs and brokers."""

    requests: int = 0
    throttled: int = 0
    """Requests that were throttled or refused while the log was written."""
    unknown: int = 0
    """Requests that the log shows without a throttle time."""

    @property
    def known(self) -> int:
        """Requests for which the log shows whether they were throttled."""
        return self.requests - self.unknown

    @property
    def share(self) -> float | None:
        """The throttled share of the known requests; None without known requests."""
        return self.throttled / self.known if self.known else None

    def __add__(self, logged: Logged) -> Logged:
        return Logged(self.requests + logged.requests, self.throttled + logged.throttled, self.unknown + logged.unknown)


@dataclass(slots=True)
class RequestTally:
    """Counts of some rows of a history. The counts of its parts add up."""

    entities: dict[QuotaEntity, Logged] = field(default_factory=dict)
    quarters: set[int] = field(default_factory=set)
    """Quarters of an hour since 1970 that have a request."""
    all: Logged = field(default_factory=Logged)
    brokers: set[QuotaEntity] = field(default_factory=set)
    """Entities that brokers use for requests to each other."""

    def add(self, tally: RequestTally) -> None:
        """Add the counts of other rows."""
        self.all += tally.all
        self.quarters |= tally.quarters
        self.brokers |= tally.brokers
        for entity, logged in tally.entities.items():
            self.entities[entity] = self.entities.get(entity, Logged()) + logged


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Extent of the history from which limits were computed."""

    span_ms: tuple[int, int]
    """Begin of the first second with a request, and end of the last one, ms since 1970."""
    hours_of_week: int
    """Number of the 168 hours of a week that have a request."""
    clock_hours: int
    """Number of calendar hours that have a request: three Mondays at 09h are three."""
    logged: Logged
    """Counts of all requests."""
    entities: Mapping[QuotaEntity, Logged]
    """Counts by entity."""

    @property
    def period_ms(self) -> int:
        """Time from the first request to the last."""
        return self.span_ms[1] - self.span_ms[0]

    @property
    def short(self) -> bool:
        """True if the history covers less than a day: by the clock, or with requests in fewer than 24 hours."""
        return self.period_ms < DAY_MS or self.clock_hours < _DAY_HOURS

    def of(self, entity: QuotaEntity) -> Logged:
        """Return the counts of an entity."""
        return self.entities.get(entity, Logged())

    def check(self, source: str) -> None:
        """Raise `ShortLog` unless the history covers a day."""
        if self.short:
            raise ShortLog(
                f"{source}: the history covers {seconds(self.period_ms / 1_000)}, with requests in "
                f"{counted(self.clock_hours, 'hour')}: less than a day says nothing about the hours that are missing. "
                "Ingest more logs, or pass --short-log to see limits made of this one"
            )


def coverage_of(counts: RequestTally, span_ms: tuple[int, int], zone: tzinfo) -> Coverage:
    """
    Return the extent of a history from the counts of all of its rows.

    Args:
        counts: the counts of all rows.
        span_ms: the history's period.
        zone: time zone of the hours of the week.

    """
    times = np.array(sorted(counts.quarters), np.int64) * QUARTER_MS
    return Coverage(
        span_ms=span_ms,
        hours_of_week=int(seen_hours(times, zone).sum()),
        clock_hours=np.unique(times // _HOUR_MS).size,
        logged=counts.all,
        entities=counts.entities,
    )


def tally(batches: Iterable[pa.RecordBatch], shape: RuleShape) -> RequestTally:
    """Count rows of history (`COLUMNS`), in any order, by the entities of a shape."""
    counts = RequestTally()
    for batch in batches:
        waits: Any = batch.column("throttle_ms")
        refused: Any = batch.column("refused")
        throttled: Any = pc.or_(pc.greater(waits, pa.scalar(0, pa.int32())), refused)
        has_no_throttle_time: Any = pc.equal(waits, pa.scalar(UNKNOWN_MS, pa.int32()))
        columns = {name: batch.column(name) for name in shape.names}
        columns["throttled"] = throttled.cast(pa.int64())
        columns["unknown"] = pc.and_not(has_no_throttle_time, refused).cast(pa.int64())
        sums = (
            pa.table(columns)
            .group_by(list(shape.names))
            .aggregate([("throttled", "count"), ("throttled", "sum"), ("unknown", "sum")])
        )
        entities: dict[QuotaEntity, Logged] = {}
        for row in sums.to_pylist():
            entity = QuotaEntity(**{name: row[name] for name in shape.names})
            entities[entity] = Logged(row["throttled_count"], row["throttled_sum"], row["unknown_sum"])
        times: Any = batch.column("timestamp").to_numpy()
        quarters = set(np.unique(times // QUARTER_MS).tolist())
        brokers = _brokers(batch, shape)
        counts.add(RequestTally(entities, quarters, sum(entities.values(), Logged()), brokers))
    return counts


def _brokers(batch: pa.RecordBatch, shape: RuleShape) -> set[QuotaEntity]:
    """Return the entities of a shape that only brokers use, by the APIs of their requests."""
    sent: Any = pc.is_in(batch.column("api_key"), _OF_BROKERS)
    rows = pa.table({name: batch.column(name) for name in shape.names}).filter(sent)
    entities = rows.group_by(list(shape.names)).aggregate([]).to_pylist()
    return {
        QuotaEntity(**{name: row[name] for name in shape.names})
        for row in entities
        if row.get("user") != _ANYONE and row.get("client_id") != ""
    }
