"""An application as its event log shows it: stages, failed attempts, micro-batches and throttle times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from statistics import median

from quotascope.pages.words import shown

from ..errors import EventLogDamaged, ReportError, UnreadableSummary
from ..event_log import EventLog, EventLogError, TooLarge, in_order
from ..events import FailureCause
from ..job import ClientKind, Job, JobSnapshot, QueryTotals, read_summary
from .critical_path import Saving, critical_seconds
from .history import ApplicationHistory, FailedAttempt, MicroBatch, QueryFailure, StageHistory

Progress = Callable[[int, int], None]
"""Function that is called with the bytes read so far and the size of the log."""

LIMITED_SHARE = 0.1
"""The share of a query's time from which on a quota is said to limit it: see `Application.limited_share`."""
_PERIODS = 100
"""Number of micro-batches by which the time between triggers is measured."""
_BY_QUOTA = (FailureCause.KAFKA_QUOTA, FailureCause.KAFKA_TIMEOUT_THROTTLED)


@dataclass(frozen=True, kw_only=True)  # no slots, since the shares are computed once
class Application:
    """An application as its event log shows it."""

    snapshot: JobSnapshot
    app: str
    app_id: str
    began: float
    """The first time in the log; seconds since 1970, 0 if it has none."""
    ended: float
    """The last time in the log."""
    finished: bool
    """True if the log has the end of the application."""
    running: bool
    """True if Spark has not closed the log: the application runs, or was killed."""
    is_cut: bool
    """True if the last line is incomplete: only a part of the log was copied, or Spark is writing it."""
    damage: tuple[str, ...]
    """Files of the log of which only a beginning could be read, and why."""
    missing_ends: int
    """
    Least number of attempts of tasks that ended without a line of their end.

    The number follows from their ids, their repetitions and the sizes of their stages.
    """
    open_attempts: int
    """Attempts of tasks that started and did not end as far as the log shows."""
    repeated_lines: int
    """Lines that say the same as one before them, and count once."""
    inferred_executors: int
    """Executors that are taken for given back by their idle time alone."""
    disordered: bool
    """True if lines were not in Spark's order; they are sorted by time where `is_sorted`."""
    is_sorted: bool
    """True if lines were sorted by time."""
    compacted: bool
    """True if the History server has removed tasks of jobs that ended."""
    missing_files: int
    """Rolled files of the log that were not there."""
    with_summary: bool
    """True if `throttles` come from the listener's summary, False if from the notes of failed attempts."""
    throttles: tuple[QueryTotals, ...]
    """Throttle times by query and client."""
    unknown_attempts: int
    """Attempts missing in `throttles`, as in `JobSnapshot`."""
    seen_clients: tuple[ClientKind, ...]
    """Kinds of clients, as in `JobSnapshot`."""
    unseen_clients: tuple[ClientKind, ...]
    """
    Clients that the job may have had, with unknown throttle times.

    The log shows Python code in tasks, or does not rule out clients of the JVM.
    """
    listener: bool
    """True if the log shows that the listener was attached."""
    summary_file: str
    """Path at which the listener was to write its summary, by the log; empty if the log does not say it."""
    plugin: bool
    """True if the log shows that the throttle plugin was loaded."""
    failed_queries: tuple[QueryFailure, ...]
    """Runs of streaming queries that ended by an exception, in order."""
    stages: tuple[StageHistory, ...]
    attempts: tuple[FailedAttempt, ...]
    """Failed attempts, in the order in which they ended."""
    batches: tuple[MicroBatch, ...]
    left_out: int
    """Stages, attempts and batches that are counted but too many to be listed."""

    @property
    def unreadable_lines(self) -> int:
        """Lines of the log that are no events, including an incomplete line after the end of the application."""
        return self.snapshot.lost_events - self.missing_files + (self.is_cut and self.finished)

    @property
    def counts_complete(self) -> bool:
        """
        True if failures, retries and losses are exact as far as the log goes.

        They are lower bounds if parts of the log are missing.
        """
        lacks = self.missing_ends or self.damage or self.compacted or self.missing_files or self.unreadable_lines
        return not lacks and (self.is_sorted or not self.disordered)

    @property
    def throttled_ms(self) -> int | None:
        """Sum over all clients, a lower bound unless `throttles_complete`; None if it is unknown."""
        total = sum(totals.throttled_ms for _, totals in self.throttles)
        return total if total or self.throttles_complete else None

    @property
    def throttles_complete(self) -> bool:
        """True if the throttle times of all clients are in, so that 0 means not throttled."""
        return self.with_summary and bool(self.throttles) and not self.unknown_attempts and not self.unseen_clients

    def causes(self) -> list[tuple[FailureCause, int, int]]:
        """Return the causes that occurred, with failed attempts and retries."""
        failures, retries = self.snapshot.failures, self.snapshot.retries
        rows = [(cause, failures[cause], retries[cause]) for cause in FailureCause]
        return [row for row in rows if row[1] or row[2]]

    def critical_seconds(self, query: str | None = None) -> float | None:
        """
        Return the throttle time on the critical path of stages.

        Without the quota the application would be shorter by this time at most. Stages of streaming queries are no
        part of its path: it takes as long as its driver waits for the queries (`awaitTermination`).

        Notes have the throttle times of failed attempts. Those of other attempts are known by query only, and are
        taken as the same share of the time of all attempts of the query; throttle times without a query are taken as
        the same share of all attempts of the application. The assumptions of `critical_path` apply.

        Args:
            query: the streaming query that the stages belong to; None (or empty) for the stages that belong to none.

        Returns:
            Seconds, a lower bound where throttle times are one; None if no throttle time or no attempt is known, or the
            summary counts attempts that the log lacks.

        """
        if self.throttled_ms is None or (self.with_summary and not self.counts_complete):
            return None
        if not any(stage.slots.noted or stage.slots.unnoted for stage in self.stages):
            return None if self.throttled_ms else 0.0
        shares = self._shares
        savings = (
            self._saving(stage, stage.slots.saved(shares.get(stage.query, shares[None])))
            for stage in self.stages
            if stage.query == (query or "")
        )
        return round(critical_seconds(savings), 3)

    @property
    def batch_seconds(self) -> float | None:
        """Throttle time on the critical paths of the micro-batches of all streaming queries; None if it is unknown."""
        queries = {stage.query for stage in self.stages if stage.query}
        critical = [self.critical_seconds(query) for query in queries]
        return None if None in critical else round(sum(filter(None, critical)), 3)

    def trigger_period(self, query: str) -> float | None:
        """
        Return the seconds from trigger to trigger of a streaming query, as the median of its last micro-batches.

        The result is None if there are too few.
        """
        begins = [batch.began for batch in self.batches if batch.query == query][-_PERIODS:]
        periods = [later - earlier for earlier, later in pairwise(begins) if later > earlier]
        return round(median(periods), 3) if periods else None

    @property
    def least_seconds(self) -> float | None:
        """
        Least seconds that the application would have taken without the quota.

        None unless all throttle times are known. Also None if a quota failed attempts, which took more than their
        throttle times, and if there are streaming queries, for which the driver waits.
        """
        if any(stage.query for stage in self.stages):
            return None
        critical = self.critical_seconds()
        if critical is None or not self.throttles_complete or any(map(self.snapshot.failures.get, _BY_QUOTA)):
            return None
        return max(0.0, self.ended - self.began - critical)

    def limited_share(self, query: str) -> float | None:
        """
        Return the share (0 to 1) of the time of a streaming query's stages that is on the critical path and throttled.

        The result is None if it is unknown.
        """
        critical = self.critical_seconds(query)
        # the time in which stages ran: no stage saves more than all of its time
        busy = critical_seconds(self._saving(stage, math.inf) for stage in self.stages if stage.query == query)
        if critical is None or not busy:
            return None
        share = critical / busy
        # where throttle times are missing, the share is a lower bound: only a high one says something
        return share if share >= LIMITED_SHARE or self.throttles_complete else None

    def _saving(self, stage: StageHistory, saved: float) -> Saving:
        """Return a stage that would be shorter by `saved` seconds; an unknown time of it is the end of the log."""
        began = self.ended if stage.began is None else stage.began
        return Saving(began, self.ended if stage.ended is None else stage.ended, saved)

    @cached_property
    def _shares(self) -> dict[str | None, float]:
        """
        Return the throttled share of attempts without a note, by query.

        The key None stands for queries without throttle times of their own.
        """
        queries = {stage.query for stage in self.stages}
        # seconds by query, None for those of no query with stages; what is in notes is taken off again
        throttled: dict[str | None, float] = {}
        for query, totals in self.throttles:
            key = query if query and query in queries else None
            throttled[key] = throttled.get(key, 0.0) + totals.throttled_ms / 1_000
        # seconds that attempts without a note took, by query; None for those of all queries
        took: dict[str | None, float] = {}
        for stage in self.stages:
            key = stage.query if stage.query in throttled else None
            throttled[key] = throttled.get(key, 0.0) - stage.slots.noted
            for owner in {stage.query, None}:
                took[owner] = took.get(owner, 0.0) + stage.slots.unnoted
        shares = {key: max(0.0, seconds) / took[key] if took.get(key) else 0.0 for key, seconds in throttled.items()}
        # throttle times without a query are spread over the attempts of all
        of_all = min(1.0, shares.get(None, 0.0))
        return {None: of_all} | {key: min(1.0, share + of_all) for key, share in shares.items() if key}


def read_application(path: Path, summary: Path | None = None, progress: Progress | None = None) -> Application:
    """
    Read an event log as far as it has been written.

    Args:
        path: a file, or a folder, see `EventLog`.
        summary: the listener's summary (`write_summary`), with the throttle times of attempts that succeeded.
        progress: function that is called from time to time.

    Raises:
        EventLogError: the log cannot be read.
        UnreadableSummary: the summary cannot be used, or is of another application.
        ReportError: a file cannot be opened.

    """
    try:
        counted = None if summary is None else read_summary(summary)
        log, job, history, damage = _read(path, progress)
    except OSError as error:
        where = error.filename or path
        raise ReportError(f"{where}: {error.strerror or error}") from error
    coverage, snapshot = log.coverage, job.snapshot()
    if coverage is None or not snapshot.events:
        raise EventLogError(damage[0] if damage else f"{log.path} holds no event yet")
    if counted is not None and history.app_id and counted.app_id not in ("", history.app_id):
        raise UnreadableSummary(f"{summary} is the summary of {shown(counted.app_id)}, not of {shown(history.app_id)}")
    is_sorted = False
    if coverage.disordered:
        try:
            log, job, history, damage = _read(path, progress, is_sorted=True)
            snapshot, coverage, is_sorted = job.snapshot(), log.coverage or coverage, True
        except TooLarge:
            pass
    times = [time for time in (history.began, (coverage.first_ms or 0) / 1_000) if time]
    unseen = 0 if log.compacted else coverage.unseen
    missing = max(unseen, history.short)
    source = counted or snapshot
    possible: dict[ClientKind, bool] = {
        "jvm": history.without_java_clients is not True,
        "python": history.runs_python,
    }
    return Application(
        snapshot=snapshot,
        app=history.app,
        app_id=history.app_id,
        began=min(times, default=0.0),
        ended=max(history.ended, (coverage.last_ms or 0) / 1_000),
        finished=history.finished,
        running=not log.finished and not damage,
        is_cut=log.is_cut and not damage,
        damage=tuple(damage),
        missing_ends=missing + coverage.without_end,
        # missing attempts that are not unseen have a line of their start, and so count as still open
        open_attempts=max(0, coverage.still_open - (missing - unseen)),
        repeated_lines=coverage.repeated,
        disordered=is_sorted or coverage.disordered,
        is_sorted=is_sorted,
        inferred_executors=snapshot.executors_inferred,
        plugin=history.plugin,
        failed_queries=history.failed_queries(),
        compacted=log.compacted,
        missing_files=log.missing_files,
        with_summary=counted is not None,
        throttles=source.throttles,
        unknown_attempts=source.unknown_attempts,
        seen_clients=source.seen_clients,
        unseen_clients=tuple(
            kind for kind, is_possible in possible.items() if is_possible and kind not in source.seen_clients
        ),
        listener=history.listener,
        summary_file=history.summary_file.replace("{app_id}", history.app_id),
        stages=history.stages(),
        attempts=history.attempts(),
        batches=history.batches(),
        left_out=history.left_out,
    )


def _limited(progress: Progress, size: int, read_bytes: int) -> None:
    """Report progress, at most as much as the log had when its reading began."""
    progress(min(read_bytes, size), size)


def _read(
    path: Path, progress: Progress | None, *, is_sorted: bool = False
) -> tuple[EventLog, Job, ApplicationHistory, list[str]]:
    """
    Read a log as far as it can be read, in its own order or sorted by time.

    Returns:
        The log, the job and the history of its events, and the problem of each damaged file.

    Raises:
        EventLogError: nothing can be read.
        TooLarge: it cannot be sorted.
        OSError: a file cannot be opened.

    """
    history, damage = ApplicationHistory(), []
    job = Job("", watcher=history)
    with EventLog(path, whole=True) as log:
        size = log.size()
        bar = None if progress is None else partial(_limited, progress, size)
        while True:
            try:
                if is_sorted:
                    in_order(log, job, bar)
                else:
                    log.feed(job, bar)
            except EventLogDamaged as error:
                damage.append(str(error))
                if log.skip_damage():
                    continue
            return log, job, history, damage
