"""One log, replayed under the rules that were in force, beside what the broker reported."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise, product
from typing import Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.pipeline.releases import Followed, followed

from .log import RequestLog
from .moments import MOVES, ROUNDING_MS, Moments, Move, explained, moved
from .replay import CLOSE_MS, Comparison, Plan, Replay
from .rules import Key, RulesInForce
from .unlogged import PERCENT_PER_MS, UnloggedTime

TOLERANCE: Final = {quota_type: 0.20 if quota_type is QuotaType.REQUEST else 0.05 for quota_type in QuotaType}
"""Largest error of a total, as a ratio of what was reported."""
LEAST_S: Final = 1.0
"""Reported seconds of a total below which its error is a ratio of this number."""
_LEAST_LATE: Final = 3
"""Least number of requests that a rule has to have missed: one or two may belong to another window."""
_LONGEST_DELAY_MS: Final = 2_000
"""The longest time that a change takes to reach a broker through ZooKeeper."""
_ROUNDS: Final = 3
"""Most rounds of looking for borders: what one round corrects lets later answers show more."""
_SHIFTS_MS: Final = (-1, 1, -ROUNDING_MS, ROUNDING_MS)
"""Errors in ms to try for a moment: the log has whole ms, and a window has ended or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All answers to one client in which one quota played a part."""

    user: str
    client_id: str
    kind: QuotaType
    requests: int
    """Number of requests that this quota charges."""
    throttled: int
    """Number of requests that were throttled by it."""
    close: int
    """Number of requests with a prediction near the answer (`Comparison.close`)."""
    reported_s: float
    predicted_s: float
    unknown: int
    """Throttled answers that cannot be predicted, and are left out of all other figures but `requests`."""

    @property
    def error(self) -> float:
        """Predicted minus reported seconds, as a ratio of the reported seconds or of `LEAST_S`."""
        return (self.predicted_s - self.reported_s) / max(self.reported_s, LEAST_S)

    @property
    def holds(self) -> bool:
        """True if the error is within `TOLERANCE`."""
        return abs(self.error) <= TOLERANCE[self.kind]


def totals(comparisons: Iterable[Comparison]) -> list[Total]:
    """Return totals by client and quota, for clients that the broker or the replay throttled."""
    groups: dict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for comparison in comparisons:
        groups[comparison.request.principal.name, comparison.request.client_id].append(comparison)
    result = []
    for (user, client_id), kind in product(sorted(groups), QuotaType):
        counted = [comparison for comparison in groups[user, client_id] if comparison.counted_by(kind)]
        comparable = [comparison for comparison in counted if comparison.known]
        reported = [comparison for comparison in comparable if comparison.reported_by is kind]
        predicted = [comparison for comparison in comparable if comparison.prediction.kind is kind]
        total = Total(
            user=user,
            client_id=client_id,
            kind=kind,
            requests=len(counted),
            throttled=sum(comparison.reported_ms > 0 for comparison in reported),
            close=sum(comparison.close(kind) for comparison in comparable),
            reported_s=sum(comparison.reported_ms for comparison in reported) / 1000,
            predicted_s=sum(comparison.prediction.total_ms for comparison in predicted) / 1000,
            unknown=sum(not e.known and e.reported_by is kind for e in counted),
        )
        if total.reported_s or total.predicted_s or total.unknown:
            result.append(total)
    return result


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
    """Moments of decisions that the pass learned."""
    kafka: Followed
    """The release that the throttle times follow."""

    @property
    def holds(self) -> bool:
        """True if every total is within its tolerance."""
        return all(total.holds for total in self.totals)

    @cached_property
    def far_off(self) -> frozenset[int]:
        """Lines whose byte-rate throttle differs from the answer."""
        return frozenset(
            comparison.request.line
            for comparison in self.comparisons
            if comparison.prediction.bytes_of is not None
            and comparison.known
            and not comparison.close(comparison.prediction.bytes_of)
        )


def check(log: RequestLog, rules: RulesInForce, *, infer: bool = True, release: KafkaRelease | None = None) -> Check:
    """
    Replay a log.

    With `infer`, what the log leaves out is inferred from answers, in several passes: thread time (`unlogged`), moments
    to the ms (`moments`), what buckets held when it begins, and in ZooKeeper mode when quotas came into force
    (`late_rules`). Without `infer`, only what the log shows is charged, and every error stays.

    Throttle times follow `release`, else the one that the log names, else the newest.
    """
    kafka = followed(release, log=log.release)
    plan = Plan(log, rules.under(kafka.release))
    time = UnloggedTime()
    first_pass = _pass(plan, kafka, {}, time, infer=infer)
    if not infer:
        return first_pass
    if kafka.release.zookeeper and (late := late_rules(plan, first_pass.comparisons)):
        for key, delays in late.items():
            plan.delays[key] = min(delays, key=partial(_off_with, plan, kafka, key))
        time = UnloggedTime()
        first_pass = _pass(plan, kafka, {}, time)
    again = partial(UnloggedTime, booked=time.found, share=first_pass.share)
    earlier_ms = dict(first_pass.moments.found)
    return _Refined(lambda moved: _pass(plan, kafka, moved, again()), earlier_ms).result()


def _off_with(plan: Plan, kafka: Followed, key: Key, delay_ms: int) -> int:
    """Return the error in ms of the throttles of a quota type where one of its rules came later."""
    plan.delays[key] = delay_ms
    kind = key[0]
    comparisons = _pass(plan, kafka, {}, UnloggedTime()).comparisons
    return sum(
        abs(comparison.prediction.by(kind) - comparison.reported_ms)
        for comparison in comparisons
        if comparison.reported_by is kind
    )


def late_rules(plan: Plan, comparisons: Iterable[Comparison]) -> dict[Key, list[int]]:
    """
    Return about how many ms after the answer to a change a quota of bytes may have come into force.

    In ZooKeeper mode a broker hears of changes one after the other, up to some hundred ms later. Bytes that a client
    sent until then were not charged to the rule's sensor, and its first throttle is shorter by their share.
    """
    late: dict[Key, list[int]] = {}
    clients: dict[tuple[QuotaType, str, str], list[Comparison]] = defaultdict(list)
    for comparison in comparisons:
        if comparison.prediction.bytes_of is not None:
            client = comparison.request.principal.name, comparison.request.client_id
            clients[comparison.prediction.bytes_of, *client].append(comparison)
    for (kind, user, client_id), answers in clients.items():
        rules, changed_at = plan.rules_of(kind)
        entity = rules.decide(user, client_id).entity
        if entity is None or entity not in changed_at:
            continue
        missing_bytes = _first_error(answers, kind) / 1000 * rules[entity]
        sent = [
            comparison.request
            for comparison in answers
            if 0 <= comparison.request.decided_ms - changed_at[entity] <= _LONGEST_DELAY_MS
        ]
        sums = list(accumulate(request.produced or request.fetched or 0 for request in sent))
        index = bisect_left(sums, missing_bytes)
        if _LEAST_LATE <= index < len(sent) - 2:
            borders = pairwise(request.decided_ms for request in sent[index - 1 : index + 3])
            late[kind, entity] = [(earlier + later) // 2 - changed_at[entity] for earlier, later in borders]
    return late


def _first_error(answers: Iterable[Comparison], kind: QuotaType) -> int:
    """Return the error of the first throttle that the broker reported of a kind, ms; 0 without one."""
    throttled = next(
        (comparison for comparison in answers if comparison.reported_ms > CLOSE_MS and comparison.reported_by is kind),
        None,
    )
    return 0 if throttled is None else throttled.prediction.bytes_ms - throttled.reported_ms


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
    """
    Passes that correct moments which are a ms or two off.

    Moments are corrected where that alone explains an answer, and beside borders.
    """

    def __init__(self, run: Callable[[Mapping[int, int]], Check], earlier_ms: dict[int, int]) -> None:
        self._run = run
        self._earlier_ms = earlier_ms

    def result(self) -> Check:
        """Return the last pass."""
        checked = self._round(self._run(self._earlier_ms))
        for _ in range(_ROUNDS):
            previous = checked
            for move in MOVES:
                checked = self._move(checked, move)
            if checked is previous:
                break
            checked = self._round(checked)
        return checked

    def _round(self, checked: Check) -> Check:
        """Correct the moments of requests by their own answers."""
        for shift_ms in _SHIFTS_MS:
            if not checked.far_off:
                break
            shifted = self._shifted(checked.far_off, shift_ms)
            right = checked.far_off - self._run(self._earlier_ms | shifted).far_off
            if right:
                self._earlier_ms |= {line: shifted[line] for line in right}
                checked = self._run(self._earlier_ms)
        return checked

    def _move(self, checked: Check, move: Move) -> Check:
        """Correct the side of a window's end on which requests fell, where several answers show it."""
        lines = moved(checked.far_off, checked.moments, move)
        if not lines:
            return checked
        tried = self._run(self._earlier_ms | self._shifted(lines.values(), move.earlier_ms))
        sensors = explained(checked.far_off, tried.far_off, checked.moments)
        if not sensors:
            return checked
        right = (line for sensor, line in lines.items() if sensor in sensors)
        self._earlier_ms |= self._shifted(right, move.earlier_ms)
        return self._run(self._earlier_ms)

    def _shifted(self, lines: Iterable[int], earlier_ms: int) -> dict[int, int]:
        return {line: self._earlier_ms.get(line, 0) + earlier_ms for line in lines}
