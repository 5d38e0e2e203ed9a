"""The policy that recommended limits keep, and the steps and floors of limits."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import Enum
from typing import Final

from quotascope.metrics.kafka.entities import BYTES_PER_SECOND, MUTATIONS_PER_SECOND, THREADS, QuotaType
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pages.words import brief

from ..errors import PipelineError
from ..releases import Followed

FLOORS: Final[Mapping[QuotaType, float]] = {
    kind: {BYTES_PER_SECOND: 10_000.0, THREADS: 1.0, MUTATIONS_PER_SECOND: 0.5}[kind.unit] for kind in QuotaType
}
"""
Lowest useful limits in Kafka's units.

A lower limit saves a broker nothing, and the first unusual request of a quiet client would exceed it.
"""
STEPS: Final = {
    kind: {BYTES_PER_SECOND: 1.0, THREADS: 0.01, MUTATIONS_PER_SECOND: 0.01}[kind.unit] for kind in QuotaType
}
"""
Steps of limits: all limits are multiples of these.

Kafka accepts only whole bytes/s. Hundredths of a percent and of a mutation/s are fine enough.
"""
MOST_HEADROOM: Final = 1_000.0
"""Highest headroom, as a ratio; a limit a thousand times as high as needed limits nothing."""
HIGHEST_FLOOR: Final = 1e15
"""Highest floor in any unit; a petabyte a second is more than any cluster has."""
_DIGITS: Final = 3
_TARGET: Final = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)=(\d{1,9}(?:\.\d{1,6})?)(us|ms|s)")
_US: Final = {"us": 1.0, "ms": 1e3, "s": 1e6}


class RuleShape(Enum):
    """Kinds of entities that the recommended rules name."""

    USER = "user"
    """One rule for all clients of a user."""
    CLIENT = "client-id"
    """One rule for a client-id, whatever its user."""
    PAIR = "user,client-id"
    """One rule for each pair."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a history that identify an entity."""
        return tuple(self.value.replace("-", "_").split(","))


class BadPolicy(PipelineError):
    """A number of the policy is out of its range."""

    is_of_usage = True


@dataclass(frozen=True, slots=True)
class QueueTarget:
    """Target for the queue times of clients on each broker: a percentile may not exceed a time."""

    part: float
    """Percentile as a part of the requests, from 0 to below 1."""
    most_us: float
    """Longest allowed queue time of that percentile."""

    @classmethod
    def of(cls, text: str) -> QueueTarget:
        """Read `p99=20ms`. Raises `BadPolicy`."""
        match = _TARGET.fullmatch(text)
        if match is None or not float(match[1]) or not float(match[2]):
            raise BadPolicy(f"a target is a percentile and a time, such as p99=20ms, not {text[:60]!r}")
        return cls(float(match[1]) / 100, float(match[2]) * _US[match[3]])

    def __str__(self) -> str:
        return f"p{100 * self.part:g} of {time_text(self.most_us)}"


def time_text(time_us: float | None) -> str:
    """Return a queue time as text with three digits; "unknown" for None."""
    return "unknown" if time_us is None else brief(time_us / 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    Bounds for limits: the time for which a limit may throttle, and the headroom above.

    Raises:
        BadPolicy: a number is out of its range.

    """

    share: float = 0.01
    """Greatest part of the time in which an entity may be throttled, as a ratio from 0 to below 1, in every season."""
    headroom: float = 0.2
    """Ratio that is added to the lowest limit that keeps `share`."""
    shape: RuleShape = RuleShape.USER
    by_hour: bool = True
    """
    True if each hour of the week has to keep the share, so that a nightly peak is not lost in a quiet week.

    Otherwise all the time together has to keep it.
    """
    zone: tzinfo = UTC
    """Time zone of hours and weekdays."""
    kinds: Collection[QuotaType] = tuple(QuotaType)
    """Quota types that get limits."""
    short_log: bool = False
    """True if limits may be made of less than a day of log."""
    floors: Mapping[QuotaType, float] = field(default_factory=lambda: FLOORS)
    """Lowest limits, in the unit of the quota type."""
    protect: QueueTarget | None = None
    """
    Target that request quotas keep for the clients that they do not throttle, instead of the share.

    It is None if they keep the share.
    """
    io_threads: int | None = None
    """Handler threads of each broker (`num.io.threads`); None to estimate them from the log."""

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise BadPolicy(f"the share of time must be from 0 % to below 100 %, not {self.share * 100:g} %")
        if not 0 <= self.headroom <= MOST_HEADROOM:
            raise BadPolicy(
                f"the headroom must be from 0 % to {MOST_HEADROOM * 100:.0f} %, not {self.headroom * 100:g} %"
            )
        for floor in self.floors.values():
            if not 0 < floor <= HIGHEST_FLOOR:
                raise BadPolicy(f"a floor must be above 0 and at most {HIGHEST_FLOOR:g}, not {floor:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWindows:
    """Windows of the cluster's quotas, and the release that measures by them."""

    client: WindowConfig = field(default_factory=WindowConfig)
    """Windows of client quotas: `quota.window.num` and `quota.window.size.seconds`."""
    controller: WindowConfig = field(default_factory=WindowConfig)
    """Windows of controller mutation quotas: the same settings with `controller.` in front."""
    followed: Followed = field(default_factory=Followed)


def limit_of(kind: QuotaType, steps: int) -> float:
    """
    Return a number of steps as a limit.

    >>> limit_of(QuotaType.REQUEST, 105), limit_of(QuotaType.PRODUCE, 105)
    (1.05, 105.0)
    """
    if STEPS[kind] >= 1:
        return steps * STEPS[kind]
    # a quotient of whole numbers is the float nearest to the decimal; a product with 0.01 may not be
    return steps / round(1 / STEPS[kind])


def steps_of(kind: QuotaType, limit: float) -> int:
    """Return the smallest number of steps that reaches a limit; at least 1."""
    return max(1, math.ceil(round(limit / STEPS[kind], 6)))


def rounded_up(steps: int) -> int:
    """
    Return a number, rounded up to three digits.

    >>> rounded_up(7), rounded_up(1_234_001), rounded_up(999_001)
    (7, 1240000, 1000000)
    """
    scale: int = 10 ** max(0, len(str(steps)) - _DIGITS)
    return -(-steps // scale) * scale
