"""Replay of a log under the rules that were in force, and comparison with the throttles that the broker reported."""

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
"""Largest error of a total, as a ratio of the reported throttle time."""
LEAST_S: Final = 1.0
"""Least reported throttle time in seconds that an error is divided by."""
_LEAST_LATE: Final = 3
"""Least number of requests that a late rule must have missed; one or two may belong to another window."""
_LONGEST_DELAY_MS: Final = 2_000
"""Longest time that a change takes to reach a broker through ZooKeeper."""
_ROUNDS: Final = 3
"""Largest number of rounds that move requests beside borders; a round may find more than the one before it."""
_SHIFTS_MS: Final = (-1, 1, -ROUNDING_MS, ROUNDING_MS)
"""Corrections in ms to try for the moment of a decision, as the log has whole ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Comparison of all answers to one client with the predictions for one quota."""

    user: str
    client_id: str
    kind: QuotaType
    requests: int
    """Number of requests that this quota charges."""
    throttled: int
    """Number of requests that this quota throttled, by the answers."""
    close: int
    """Number of requests with a prediction near the answer (`Comparison.close`)."""
    reported_s: float
    """Throttle time in the answers."""
    predicted_s: float
    """Throttle time that the replay predicts."""
    unknown: int
    """Number of throttled answers that cannot be predicted; they are left out of `close`, `throttled` and the times."""

    @property
    def error(self) -> float:
        """Predicted minus reported seconds, as a ratio of the reported seconds, or of `LEAST_S` if that is larger."""
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
            unknown=sum(not comparison.known and comparison.reported_by is kind for comparison in counted),
        )
        if total.reported_s or total.predicted_s or total.unknown:
            result.append(total)
    return result


@dataclass(frozen=True, kw_only=True)
class Check:
    """Result of one pass over a log."""

    comparisons: list[Comparison]
    """Answers to clients, in the order of the broker's decisions."""
    totals: list[Total]
    unlogged_ms: Mapping[str, float]
    """Inferred thread time that the log leaves out, by sensor of the request quota."""
    share: float
    """Ms of network thread that are charged for each ms of `sendTimeMs`, over all sensors."""
    unreadable: int
    """Number of lines that are no requests."""
    moments: Moments
    """Moments of decisions that the pass learned."""
    kafka: Followed
    """Release that the throttle times follow."""

    @property
    def holds(self) -> bool:
        """True if every total is within its tolerance."""
        return all(total.holds for total in self.totals)

    @cached_property
    def far_off(self) -> frozenset[int]:
        """Lines whose predicted throttle of a byte rate is not close to the answer."""
        return frozenset(
            comparison.request.line
            for comparison in self.comparisons
            if comparison.prediction.bytes_of is not None
            and comparison.known
            and not comparison.close(comparison.prediction.bytes_of)
        )


def check(log: RequestLog, rules: RulesInForce, *, infer: bool = True, release: KafkaRelease | None = None) -> Check:
    """
    Replay a log, and compare the predicted throttles with the reported ones.

    Args:
        log: log of one process.
        rules: rules that were in force.
        infer: whether to infer facts from answers that the log leaves out, in several passes: thread time
            (`unlogged`), the ms of decisions (`moments`), the tokens of buckets at the begin, and, in ZooKeeper mode,
            the time when quotas came into force (`late_rules`). Otherwise only the facts in the log are charged.
        release: release that throttle times follow; by default the one that the log names, else the newest.

    """
    kafka = followed(release, log=log.release)
    plan = Plan(log, rules.under(kafka.release))
    time = UnloggedTime()
    first_pass = _pass(plan, kafka, {}, time, infer=infer)
    if not infer:
        return first_pass
    late = late_rules(plan, first_pass.comparisons) if kafka.release.zookeeper else {}
    if late:
        for key, delays in late.items():
            plan.delays[key] = min(delays, key=partial(_error_with_delay, plan, kafka, key))
        time = UnloggedTime()
        first_pass = _pass(plan, kafka, {}, time)
    earlier_ms = dict(first_pass.moments.found)

    def run(earlier_ms: Mapping[int, int]) -> Check:
        """Run a pass that begins with the thread time and the share that the first pass found."""
        return _pass(plan, kafka, earlier_ms, UnloggedTime(booked=time.found, share=first_pass.share))

    return _Refined(run, earlier_ms).result()


def _error_with_delay(plan: Plan, kafka: Followed, key: Key, delay_ms: int) -> int:
    """Set the delay of a rule in a plan, and return the error in ms of all throttles of its quota type."""
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
    Return candidates for the delays, in ms after the answer to a change, with which byte-rate quotas came into force.

    In ZooKeeper mode a broker learns of changes one after the other, up to some hundred ms later. The bytes that a
    client sent until then were not charged to the rule's sensor, so that its first throttle is shorter than predicted.
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
        sent_bytes = list(accumulate(request.produced or request.fetched or 0 for request in sent))
        first_charged = bisect_left(sent_bytes, missing_bytes)
        if _LEAST_LATE <= first_charged < len(sent) - 2:
            around = [request.decided_ms for request in sent[first_charged - 1 : first_charged + 3]]
            late[kind, entity] = [(earlier + later) // 2 - changed_at[entity] for earlier, later in pairwise(around)]
    return late


def _first_error(answers: Iterable[Comparison], kind: QuotaType) -> int:
    """Return predicted minus reported ms of the first throttle of a kind that the broker reported; 0 without one."""
    for comparison in answers:
        if comparison.reported_ms > CLOSE_MS and comparison.reported_by is kind:
            return comparison.prediction.bytes_ms - comparison.reported_ms
    return 0


def _pass(
    plan: Plan, kafka: Followed, earlier_ms: Mapping[int, int], time: UnloggedTime, *, infer: bool = True
) -> Check:
    """Run one pass over a log; `earlier_ms` is as in `Plan.events`."""
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
    Search for the moments of decisions that are off by a ms or two.

    A moment is corrected if that alone explains the request's own answer, or if the request is beside the border of a
    window and several later answers show it.
    """

    def __init__(self, run: Callable[[Mapping[int, int]], Check], earlier_ms: dict[int, int]) -> None:
        self._run = run
        self._earlier_ms = earlier_ms

    def result(self) -> Check:
        """Return the pass with all corrections."""
        best = self._shift_single(self._run(self._earlier_ms))
        for _ in range(_ROUNDS):
            previous = best
            for move in MOVES:
                best = self._move_beside_borders(best, move)
            if best is previous:
                break
            best = self._shift_single(best)
        return best

    def _shift_single(self, best: Check) -> Check:
        """Correct the moments of requests by their own answers; return the pass with the corrections."""
        for shift_ms in _SHIFTS_MS:
            if not best.far_off:
                break
            shifted = self._shifted(best.far_off, shift_ms)
            corrected = best.far_off - self._run(self._earlier_ms | shifted).far_off
            if corrected:
                self._earlier_ms |= {line: shifted[line] for line in corrected}
                best = self._run(self._earlier_ms)
        return best

    def _move_beside_borders(self, best: Check, move: Move) -> Check:
        """Move requests to the other side of a border if several answers show it; return the pass with the moves."""
        lines = moved(best.far_off, best.moments, move)
        if not lines:
            return best
        tried = self._run(self._earlier_ms | self._shifted(lines.values(), move.earlier_ms))
        sensors = explained(best.far_off, tried.far_off, best.moments)
        if not sensors:
            return best
        corrected = (line for sensor, line in lines.items() if sensor in sensors)
        self._earlier_ms |= self._shifted(corrected, move.earlier_ms)
        return self._run(self._earlier_ms)

    def _shifted(self, lines: Iterable[int], earlier_ms: int) -> dict[int, int]:
        """Return the corrections of some lines, increased by `earlier_ms`."""
        return {line: self._earlier_ms.get(line, 0) + earlier_ms for line in lines}
