"""Search for the highest request quota with which the other clients' queue times keep a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.pages.words import counted, shown
from quotascope.quotas import Entity, QuotaSet
from quotascope.quotas.candidates import Candidate

from ..blame.benefit import Benefit, BrokerQueue, percentile_us
from .policy import ClusterWindows, QueueTarget, RuleShape, time_text

HIGHEST: Final = 3_200.0
"""Highest level that is tried, in percent of a thread: 32 handler threads."""
_AT_ONCE: Final = 6
"""Number of levels that are tried in one reading of the log."""
_ROUNDS: Final = 3
"""Number of readings of the log. Each leaves a seventh of the range of levels, on a logarithmic scale, the last 2 %."""
_DEFAULTS: Final = {
    RuleShape.USER: QuotaEntity(DEFAULT),
    RuleShape.CLIENT: QuotaEntity(None, DEFAULT),
    RuleShape.PAIR: QuotaEntity(DEFAULT, DEFAULT),
}


class Answer(Enum):
    """Answer of a search."""

    UNKNOWN = "unknown"
    """The simulated queues do not explain the log's queue times."""
    HELD = "held"
    """The target is kept in the log, without limits."""
    REACHED = "reached"
    """The target is kept with limits."""
    UNREACHABLE = "unreachable"
    """The target is not even kept with the lowest limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The answer of a search."""

    target: QueueTarget
    answer: Answer
    level: float | None
    """
    Limit of clients in percent of a thread, or the best level that was tried if the target is unreachable.

    It is None if no level was tried.
    """
    queues: Benefit
    """Simulated queues of the log, or under several levels."""
    number: int = 0
    """Index of the level in `queues`."""

    @property
    def waits(self) -> Sequence[tuple[BrokerQueue, float | None, float | None]]:
        """
        Brokers with the percentile of the other clients' queue times, us, in the log and as predicted.

        A percentile is None on a broker without other clients.
        """
        part, number = self.target.part, self.number
        return [
            (queue, percentile_us(queue.logged_waits[number], part), predicted)
            for queue, predicted in zip(self.queues.explained, self.queues.predicted(number, part), strict=True)
        ]  # fmt: skip

    def values(self) -> dict[str, Any]:
        """Return the answer for JSON; times are ms."""
        return {
            "target": str(self.target),
            "answer": self.answer.value,
            "request_percentage": self.level,
            "waits": [
                {"broker": queue.broker, "logged_ms": _ms(logged), "predicted_ms": _ms(predicted)}
                for queue, logged, predicted in self.waits
            ],
            "brokers": self.queues.values(),
        }  # fmt: skip

    @property
    def headline(self) -> str:
        """Answer in one sentence."""
        if self.answer is Answer.UNKNOWN:
            reason = (
                "the simulated queues keep it, and the log does not"
                if self.queues.explained
                else "no simulated queue explains the log's"
            )
            return f"Whether limits keep {self.target} is unknown: {reason}."
        if self.answer is Answer.HELD:
            return f"The log keeps {self.target} on each broker: no limit is needed."
        level = f"{self.level:g} % of a thread for each client"
        if left_out := len(self.queues.brokers) - len(self.queues.explained):
            level += f" ({counted(left_out, 'broker')} left out)"
        if self.answer is Answer.UNREACHABLE:
            return f"No request quota that was tried keeps {self.target} for the other clients; the nearest is {level}."
        return f"{self.target} is kept for the other clients by {level}, the highest limit found."

    @property
    def notes(self) -> Sequence[str]:
        """Percentile on each broker, and the confidence in the prediction."""
        name = f"p{100 * self.target.part:g}"
        waits = [
            (
            f"Broker {shown(queue.broker)}: {name} of the others' queue times {time_text(logged)} as logged, "
            f"{time_text(predicted)} as predicted.")
            for queue, logged, predicted in self.waits
            if self.answer is not Answer.HELD
        ]  # fmt: skip
        if self.level is not None:
            waits.append(
                "Closed loop: a limited client sends later, in bursts as brokers let it; its own wait does not count."
            )
        return (*waits, *self.queues.notes)


def protect(
    target: QueueTarget,
    floor: float,
    limited: Callable[[float], Candidate],
    queues_under: Callable[[Sequence[Candidate]], Benefit],
) -> Protection:
    """
    Search for the highest level that keeps a target, if every entity is limited to that level.

    Args:
        target: target for the clients that are not throttled.
        floor: lowest level, percent of a thread.
        limited: function that returns the candidate with a level for all entities.
        queues_under: function that simulates the queues under candidates (`benefit_of`).

    """
    queues = queues_under([Candidate(name="as logged", quotas=QuotaSet())])
    logged = (percentile_us(queue.logged_waits[0], target.part) for queue in queues.brokers)
    if all(queue.times_known for queue in queues.brokers) and _worst(logged) <= target.most_us:
        return Protection(target=target, answer=Answer.HELD, level=None, queues=queues)
    if not queues.explained or _worst(queues.predicted(0, target.part)) <= target.most_us:
        return Protection(target=target, answer=Answer.UNKNOWN, level=None, queues=queues)
    # The highest level that keeps the target is between `low`, which is the `best` one so far or the floor, and `high`.
    # Each round tries levels between them, and the first one tries the floor, too.
    low, high, best, number, levels = floor, max(floor, HIGHEST), None, 0, [floor]
    for _ in range(_ROUNDS):
        between = np.geomspace(low, high, _AT_ONCE + 2)[1:-1]
        levels += sorted({round(level, 2) for level in between.tolist()} - {floor})
        queues_of_levels = queues_under([limited(level) for level in levels])
        waits = [_worst(queues_of_levels.predicted(place, target.part)) for place in range(len(levels))]
        good = [place for place, wait in enumerate(waits) if wait <= target.most_us]
        if not good and best is None:
            nearest = int(np.argmin(waits))
            return Protection(
                target=target,
                answer=Answer.UNREACHABLE,
                level=levels[nearest],
                queues=queues_of_levels,
                number=nearest,
            )
        if good:
            queues, number = queues_of_levels, good[-1]
            low = best = levels[number]
        high = min((level for level in levels if level > low), default=high)
        levels = []
    return Protection(target=target, answer=Answer.REACHED, level=best, queues=queues, number=number)


def _worst(waits_us: Iterable[float | None]) -> float:
    """Return the longest of the brokers' waits, us; infinite if no broker has other clients."""
    return max((wait for wait in waits_us if wait is not None), default=np.inf)


def limited_to(level: float, shape: RuleShape, windows: ClusterWindows) -> Candidate:
    """Return a candidate that limits every entity of a shape to a level, by the default rule of request quotas."""
    quotas: dict[Entity, dict[str, float]] = {_DEFAULTS[shape]: {QuotaType.REQUEST.quota_key: level}}
    return Candidate(
        name=f"{level:g} %", quotas=QuotaSet(quotas), windows=windows.client, controller_windows=windows.controller
    )


def _ms(time_us: float | None) -> float | None:
    """Return a time in ms; None for None."""
    return None if time_us is None else time_us / 1e3
