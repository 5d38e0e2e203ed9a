"""One log, replayed under the rules that were in force, beside what the broker reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from quotascope.metrics import KafkaRelease, QuotaType
from quotascope.pipeline.followed import Followed, followed

from .log import RequestLog
from .moments import MOVES, ROUNDING_MS, Moments, Move, explained, moved
from .replay import Comparison, Plan, Replay
from .rules import RulesInForce
from .unlogged import PERCENT_PER_MS, UnloggedTime

TOLERANCE: Final = {
    QuotaType.PRODUCE: 0.05,
    QuotaType.FETCH: 0.05,
    QuotaType.CONTROLLER_MUTATION: 0.05,
    QuotaType.REQUEST: 0.20,
}
"""How far a total may be off, as a ratio of what was reported."""
LEAST_S: Final = 1.0
"""Seconds: the error of a total below this counts as a ratio of this."""
_ROUNDS: Final = 3
"""How often it is looked for borders: what is put right lets later answers show more."""
_SHIFTS_MS: Final = (-1, 1, -ROUNDING_MS, ROUNDING_MS)
"""How far off a moment may be: the log has whole ms, and a window ends or does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All answers to one client that one quota had to do with."""

    user: str
    client_id: str
    kind: QuotaType
    requests: int
    """Those that this quota has to do with."""
    throttled: int
    """Those that were throttled by it."""
    close: int
    """Those with a prediction near the answer (`Comparison.close`)."""
    reported_s: float
    predicted_s: float
    unknown: int
    """Throttled answers that cannot be predicted, and are left out of all other figures but `requests`."""

    @property
    def error(self) -> float:
        """Predicted less reported, as a ratio of the reported seconds or of `LEAST_S`."""
        return (self.predicted_s - self.reported_s) / max(self.reported_s, LEAST_S)

    @property
    def holds(self) -> bool:
        """Whether the error is within `TOLERANCE`."""
        return abs(self.error) <= TOLERANCE[self.kind]


def totals(comparisons: Iterable[Comparison]) -> list[Total]:
    """By client and quota, of those that either the broker or the replay throttled."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for each in comparisons:
        who = each.request.principal.name, each.request.client_id
        groups.setdefault(who, []).append(each)
    found = [total for who in sorted(groups) for total in _totals(who, groups[who])]
    return [
        total
        for total in found
        if total.reported_s or total.predicted_s or total.unknown
    ]


def _totals(who: tuple[str, str], group: list[Comparison]) -> Iterator[Total]:
    user, client_id = who
    for kind in QuotaType:
        counted = [each for each in group if each.counted_by(kind)]
        known = [each for each in counted if each.known]
        reported = [each for each in known if each.reported_by is kind]
        predicted = [each for each in known if each.prediction.kind is kind]
        yield Total(
            user=user,
            client_id=client_id,
            kind=kind,
            requests=len(counted),
            throttled=sum(each.reported_ms > 0 for each in reported),
            close=sum(each.close(kind) for each in known),
            reported_s=sum(each.reported_ms for each in reported) / 1000,
            predicted_s=sum(each.prediction.total_ms for each in predicted) / 1000,
            unknown=sum(not e.known and e.reported_by is kind for e in counted),
        )


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
    """The release that the throttle times follow."""

    @property
    def holds(self) -> bool:
        """Whether every total is within its tolerance."""
        return all(total.holds for total in self.totals)


def check(
    log: RequestLog,
    rules: RulesInForce,
    *,
    infer: bool = True,
    release: KafkaRelease | None = None,
) -> Check:
    """
    Replay a log.

    With `infer`, what the log leaves out is inferred from answers, in several passes: thread time (`unlogged`), and moments to the ms
    (`moments`). Without, only what the log shows is charged, and every error stays.

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

    def __init__(self, log: RequestLog, rules: RulesInForce) -> None:
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
    """Lines with another byte-rate throttle than the answer."""


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
