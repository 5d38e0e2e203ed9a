"""What happened when: a lane for each streaming query and for each stage that belongs to none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quotascope.pages.words import seconds, shown

from .account import Account, Batch, FailedAttempt, StageAccount
from .colours import CAUSES, FAILED_STAGE, STAGE

_MOST_ROWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that took a while. Times are seconds since the application began."""

    began: float
    ended: float
    colour: str
    throttled: float
    """Seconds of throttle time that are noted for it, at most as long as it took."""
    title: str


@dataclass(slots=True, kw_only=True)
class Lane:
    """A query or a stage, and what failed in it."""

    label: str
    work: list[Span] = field(default_factory=list)
    """Micro-batches, or attempts of the stage."""
    failed: list[list[Span]] = field(default_factory=list)
    """Failed attempts of tasks, in rows without overlaps as far as there is room."""
    weight: float = 0.0
    """How much there is to be seen."""

    @property
    def began(self) -> float:
        """When the first of it began."""
        return min(span.began for row in (self.work, *self.failed) for span in row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Lanes in the order in which they began."""

    seconds: float
    """How long the application took so far; never 0."""
    lanes: tuple[Lane, ...]
    not_drawn: int
    """Lanes for which there is no room: those where least went wrong."""


def timeline(account: Account, most: int = 40) -> Timeline:
    """Arrange what is known of an application in lanes."""
    lanes: dict[str, Lane] = {}
    queries = {batch.query for batch in account.batches}
    for batch in account.batches:
        _lane(lanes, batch.query, 0).work.append(_of_batch(batch, account))
    for stage in account.stages:
        if stage.began is not None and stage.query not in queries:
            lane = _lane(lanes, stage.query, stage.stage, stage.name)
            span = _of_stage(stage, stage.began, account)
            lane.work.append(span)
            lane.weight += (span.ended - span.began) / 1e9
    for attempt in sorted(account.attempts, key=lambda attempt: attempt.began):
        lane = _lane(lanes, attempt.query, attempt.stage)
        _place(lane.failed, _of_attempt(attempt, account))
        lane.weight += 1 + (attempt.throttled_ms or 0)
    by_weight = sorted(lanes.values(), key=lambda lane: lane.weight, reverse=True)
    return Timeline(
        seconds=max(account.ended - account.began, 1e-3),
        lanes=tuple(sorted(by_weight[:most], key=lambda lane: lane.began)),
        not_drawn=max(0, len(by_weight) - most),
    )


def ticks(whole: float, most: int = 8) -> Sequence[float]:
    """Round times from 0 on, in seconds, at most so many."""
    step = next((each for each in _STEPS if whole / each < most), whole / most)
    return [step * n for n in range(int(whole / step) + 1)]


_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_STEPS = (
    *(base * scale for scale in (0.001, 0.01, 0.1) for base in (1.0, 2.0, 5.0)),
    *(base * scale for scale in (1.0, _MINUTE) for base in (1, 2, 5, 10, 15, 30)),
    *(base * _HOUR for base in (1, 2, 3, 6, 12)),
    *(base * scale for scale in (_DAY, 100 * _DAY) for base in (1, 2, 5, 10, 20, 50)),
)


def _lane(lanes: dict[str, Lane], query: str, stage: int, name: str = "") -> Lane:
    label = f"query {shown(query, 40)}" if query else f"stage {stage}"
    lane = lanes.setdefault(label, Lane(label=label))
    if name and not query:
        lane.label = f"{label}: {shown(name, 40)}"
    return lane


def _of_batch(batch: Batch, account: Account) -> Span:
    return _span(
        account,
        batch.began,
        batch.began + batch.seconds,
        STAGE,
        f"batch {batch.number}: {batch.rows} rows, {seconds(batch.seconds)}",
    )


def _of_stage(stage: StageAccount, began: float, account: Account) -> Span:
    ended = account.ended if stage.ended is None else stage.ended
    colour = FAILED_STAGE if stage.failed else STAGE
    outcome = ", failed" if stage.failed else ""
    title = f"stage {stage.stage}, attempt {stage.attempt}: {stage.tasks} tasks, {seconds(max(0.0, ended - began))}{outcome}"
    return _span(account, began, ended, colour, title)


def _of_attempt(attempt: FailedAttempt, account: Account) -> Span:
    throttled = (attempt.throttled_ms or 0) / 1_000
    told = f", told to wait {seconds(throttled)}" if throttled else ""
    title = (
        f"stage {attempt.stage}, partition {attempt.partition}, attempt {attempt.number}: "
        f"{attempt.cause} after {seconds(attempt.ended - attempt.began)}{told}"
    )
    colour = CAUSES[attempt.cause]
    return _span(account, attempt.began, attempt.ended, colour, title, throttled)


def _span(
    account: Account,
    began: float,
    ended: float,
    colour: str,
    title: str,
    throttled: float = 0.0,
) -> Span:
    """What lies outside of the application, by a clock that was set, is moved to its ends."""
    begin, end = (
        min(max(time, account.began), account.ended) - account.began
        for time in (began, max(began, ended))
    )
    return Span(
        began=begin,
        ended=end,
        colour=colour,
        throttled=min(throttled, end - begin),
        title=title,
    )


def _place(rows: list[list[Span]], span: Span) -> None:
    """Put it into the first row that has ended; when there are many, into the last. They come in the order of their beginnings."""
    row = next((row for row in rows if row[-1].ended <= span.began), None)
    if row is None and len(rows) < _MOST_ROWS:
        rows.append([])
    (rows[-1] if row is None else row).append(span)
