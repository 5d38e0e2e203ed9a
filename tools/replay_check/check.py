"""One log, replayed under the rules that were in force, beside what the broker reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Final

from quotascope.metrics import KafkaRelease, QuotaType
from quotascope.pipeline.releases import Followed, followed

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
"""Rounds of looking for borders: what is put right lets later answers show more."""
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
    groups: dict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for each in comparisons:
        groups[each.request.principal.name, each.request.client_id].append(each)
    found = []
    for (user, client_id), kind in product(sorted(groups), QuotaType):
        counted = [each for each in groups[user, client_id] if each.counted_by(kind)]
        known = [each for each in counted if each.known]
        reported = [each for each in known if each.reported_by is kind]
        predicted = [each for each in known if each.prediction.kind is kind]
        total = Total(
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
        if total.reported_s or total.predicted_s or total.unknown:
            found.append(total)
    return found


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of a pass over a log."""

    comparisons: list[Comparison]
    """Answers to clients, in the order of the broker's decisions."""
    totals: list[Total]
    unlogged_ms: Mapping[str, float]
    """Thread time that the log leaves out, by sensor of the request quota: inferred."""
    share: float
    """Ms of network thread charged for each ms of `sendTimeMs`, over all sensors."""
    unreadable: int
    """Lines that are no requests."""
    moments: Moments
    """What the pass learned of the moments of decisions."""
    kafka: Followed
    """The release that the throttle times follow."""

    @property
    def holds(self) -> bool:
        """Whether every total is within its tolerance."""
        return all(total.holds for total in self.totals)

    @cached_property
    def far_off(self) -> frozenset[int]:
        """Lines with another byte-rate throttle than the answer."""
        return frozenset(
            each.request.line
            for each in self.comparisons
            if each.prediction.bytes_of is not None and each.known and not each.close(each.prediction.bytes_of)
        )


def check(log: RequestLog, rules: RulesInForce, *, infer: bool = True, release: KafkaRelease | None = None) -> Check:
    """
    Replay a log.

    With `infer`, what the log leaves out is inferred from answers, in several passes: thread time (`unlogged`), and moments to the ms
    (`moments`). Without, only what the log shows is charged, and every error stays.

    Throttle times follow `release`, else the one that the log names, else the newest.
    """
    kafka = followed(release, log=log.release)
    plan = Plan(log, rules.under(kafka.release))
    time = UnloggedTime()
    first = _pass(plan, kafka, {}, time, infer=infer)
    if not infer:
        return first
    again = partial(UnloggedTime, booked=time.found, share=first.share)
    earlier_ms = dict(first.moments.found)
    return _Refined(lambda moved: _pass(plan, kafka, moved, again()), earlier_ms).result()


def _pass(
    plan: Plan, kafka: Followed, earlier_ms: Mapping[int, int], time: UnloggedTime, *, infer: bool = True
) -> Check:
    replay = Replay(plan, earlier_ms, time, infer=infer)
    comparisons = list(replay.comparisons())
    return Check(
        comparisons=comparisons,
        totals=totals(comparisons),
        unlogged_ms={name.removeprefix("Request-"): percent / PERCENT_PER_MS for name, percent in time.total.items()},
        share=time.average_share(),
        unreadable=plan.unreadable,
        moments=replay.moments,
        kafka=kafka,
    )


class _Refined:
    """Passes that put each moment right that is a ms or two off: of answers that this alone explains, and beside borders."""

    def __init__(self, run: Callable[[Mapping[int, int]], Check], earlier_ms: dict[int, int]) -> None:
        self._run = run
        self._earlier_ms = earlier_ms

    def result(self) -> Check:
        """The last pass."""
        found = self._round(self._run(self._earlier_ms))
        for _ in range(_ROUNDS):
            before = found
            for move in MOVES:
                found = self._move(found, move)
            if found is before:
                break
            found = self._round(found)
        return found

    def _round(self, found: Check) -> Check:
        """Put right what each answer shows of its own moment."""
        for shift_ms in _SHIFTS_MS:
            if not found.far_off:
                break
            shifted = self._shifted(found.far_off, shift_ms)
            right = found.far_off - self._run(self._earlier_ms | shifted).far_off
            if right:
                self._earlier_ms |= {line: shifted[line] for line in right}
                found = self._run(self._earlier_ms)
        return found

    def _move(self, found: Check, move: Move) -> Check:
        """Put right on which side of a window's end requests fell, where several answers show it."""
        lines = moved(found.far_off, found.moments, move)
        if not lines:
            return found
        tried = self._run(self._earlier_ms | self._shifted(lines.values(), move.earlier_ms))
        sensors = explained(found.far_off, tried.far_off, found.moments)
        if not sensors:
            return found
        right = (line for sensor, line in lines.items() if sensor in sensors)
        self._earlier_ms |= self._shifted(right, move.earlier_ms)
        return self._run(self._earlier_ms)

    def _shifted(self, lines: Iterable[int], earlier_ms: int) -> dict[int, int]:
        return {line: self._earlier_ms.get(line, 0) + earlier_ms for line in lines}
