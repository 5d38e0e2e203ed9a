"""One log, replayed under the rules that were in force, beside what the broker reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from quotascope.metrics import KafkaRelease
from quotascope.pipeline.followed import Followed, followed

from .borders import MOVES, Move, explained, moved
from .comparison import Comparison, Total, totals
from .log import RequestLog
from .moments import ROUNDING_MS, Moments
from .percent import PERCENT_PER_MS
from .plan import Plan
from .replay import Replay
from .rules import Rules
from .unlogged import UnloggedTime

_ROUNDS: Final = 3
"""How often it is looked for borders: what is put right lets later answers show more."""
_SHIFTS_MS: Final = (-1, 1, -ROUNDING_MS, ROUNDING_MS)
"""How far off a moment may be: the log has whole ms, and a window ends or does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What became of it."""

    comparisons: list[Comparison]
    """Answers to clients, in the order of the broker's decisions."""
    totals: list[Total]
    unlogged_ms: Mapping[str, float]
    """Thread time that the log leaves out, by sensor of the request quota: inferred."""
    share: float
    """Ms of network thread charged for each ms of `sendTimeMs`, over all sensors."""
    unreadable: int
    """Lines that are no requests."""
    kafka: Followed = field(default_factory=Followed)
    """The release whose throttle times were followed."""

    @property
    def holds(self) -> bool:
        """Whether every total is within its tolerance."""
        return all(total.holds for total in self.totals)


def check(
    log: RequestLog,
    rules: Rules,
    *,
    infer: bool = True,
    release: KafkaRelease | None = None,
) -> Check:
    """
    Replay a log.

    With `infer`, what the log leaves out is inferred from answers, in several passes: thread time (`unlogged`), and moments to the ms
    (`moments`). Without, only what the log tells is charged, and every error runs on.

    Throttle times follow `release`, else the one that the log names, else the newest.
    """
    kafka = followed(release, log=log.release)
    rules = rules.under(kafka.release)
    if infer:
        return replace(_Inferring(log, rules).result(), kafka=kafka)
    plan = Plan(log, rules)
    return replace(_result(plan, Replay(plan, UnloggedTime(), infer=False)), kafka=kafka)  # fmt: skip


class _Inferring:
    """The passes that it takes to infer what the log leaves out."""

    def __init__(self, log: RequestLog, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        plan = Plan(log, rules)
        first = Replay(plan, UnloggedTime(), infer=True)
        _result(plan, first)
        self._booked = first.time.found
        self._share = first.time.average_share()
        self._earlier_ms = dict(first.moments.found)

    def result(self) -> Check:
        """The last pass, with each moment put right that is a ms or two off: of answers that this alone explains, and beside borders."""
        found = self._round(self._run(self._earlier_ms))
        for _ in range(_ROUNDS):
            before = found
            for move in MOVES:
                found = self._move(found, move)
            if found is before:
                break
            found = self._round(found)
        return found.check

    def _round(self, found: _Pass) -> _Pass:
        """Put right what each answer shows of its own moment."""
        for shift_ms in _SHIFTS_MS:
            if not found.wrong:
                break
            shifted = {
                line: self._earlier_ms.get(line, 0) + shift_ms for line in found.wrong
            }
            right = found.wrong - self._run(self._earlier_ms | shifted).wrong
            if right:
                self._earlier_ms |= {line: shifted[line] for line in right}
                found = self._run(self._earlier_ms)
        return found

    def _move(self, found: _Pass, move: Move) -> _Pass:
        """Put right on which side of a window's end requests fell, where several answers show it."""
        lines = moved(found.wrong, found.moments, move)
        if not lines:
            return found
        tried = self._run(self._earlier_ms | self._moved(lines.values(), move))
        sensors = explained(found.wrong, tried.wrong, found.moments)
        if not sensors:
            return found
        right = (line for sensor, line in lines.items() if sensor in sensors)
        self._earlier_ms |= self._moved(right, move)
        return self._run(self._earlier_ms)

    def _moved(self, lines: Iterable[int], move: Move) -> dict[int, int]:
        return {line: self._earlier_ms.get(line, 0) + move.earlier_ms for line in lines}

    def _run(self, earlier_ms: Mapping[int, int]) -> _Pass:
        plan = Plan(self._log, self._rules, earlier_ms)
        time = UnloggedTime(booked=self._booked, share=self._share)
        replay = Replay(plan, time, infer=True)
        result = _result(plan, replay)
        return _Pass(check=result, moments=replay.moments, wrong=_far_off(result))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """What one pass over the log says."""

    check: Check
    moments: Moments
    wrong: frozenset[int]
    """Lines whose byte rate is not what the answer says."""


def _far_off(result: Check) -> frozenset[int]:
    return frozenset(
        each.request.line
        for each in result.comparisons
        if each.prediction.bytes_of is not None
        and each.known
        and not each.close(each.prediction.bytes_of)
    )


def _result(plan: Plan, replay: Replay) -> Check:
    comparisons = list(replay.comparisons())
    time = replay.time
    return Check(
        comparisons=comparisons,
        totals=totals(comparisons),
        unlogged_ms={
            name.removeprefix("Request-"): percent / PERCENT_PER_MS
            for name, percent in time.total.items()
        },
        share=time.average_share(),
        unreadable=plan.unreadable,
    )
