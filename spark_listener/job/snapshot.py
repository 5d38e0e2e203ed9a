"""What is known of a job at one moment, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quotascope.clients.accounting import ClientTotals

from ..events import Cause

QueryTotals = tuple[str, ClientTotals]
"""A streaming query (its name, else its id; empty for what belongs to none) and the absolute counts of one of its clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySnapshot:
    """A streaming query, under one name whatever number of times it was started."""

    name: str
    """Its name, else its id, which stays the same over restarts from a checkpoint."""
    active: bool
    """Whether it runs."""
    restarts: int
    """Starts after the first: runs of the same id."""
    phases: Mapping[str, float]
    """Seconds that each phase of the last micro-batch took (`durationMs`), empty before there is one."""
    progress_age_seconds: float | None
    """Since the end of the last micro-batch that was told, or since the start when none was; None when it does not run."""
    max_offsets_behind: float | None
    """Of the worst partition of the worst Kafka source; None where no source tells."""
    avg_offsets_behind: float | None
    """Over the partitions of the worst Kafka source; None where no source tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """The books of one application. Counts never go down."""

    app: str
    """`spark.app.name`."""
    failures: Mapping[Cause, int]
    """Failed attempts of tasks; every cause is there, most with 0."""
    retries: Mapping[Cause, int]
    """Attempts that repeated a failed one, by the cause of that failure; every cause is there."""
    stage_retries: int
    """Attempts of stages after the first."""
    executors_lost: int
    """Executors that went away, whether or not they had tasks; those that were no longer needed do not count."""
    queries: tuple[QuerySnapshot, ...]
    """Sorted by name."""
    throttles: tuple[QueryTotals, ...]
    """One for each query and client, sorted."""
    unknown_attempts: int
    """
    Attempts that neither succeeded nor left a note, in stages whose attempts do tell what their Kafka clients were told: what
    `throttles` lacks.
    """
    events: int
    """Events that were handled, or left out on purpose."""
    lost_events: int
    """Events that sources missed or that could not be read."""
    lag_seconds: float
    """How far the source is behind."""
    sources: tuple[str, ...]
    """Where the events come from: pull, callbacks, streaming or event_log; empty while none is live."""
    problems: tuple[tuple[str, int], ...]
    """How often which part of the listener failed; `queries` are streaming queries that were forgotten, as there were too many."""
