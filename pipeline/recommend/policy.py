"""What a recommended limit has to keep."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import Enum
from typing import Final

from quotascope.metrics import QuotaType

from ..errors import PipelineError

FLOORS: Final[Mapping[QuotaType, float]] = {
    QuotaType.PRODUCE: 10_000.0,
    QuotaType.FETCH: 10_000.0,
    QuotaType.REQUEST: 1.0,
    QuotaType.CONTROLLER_MUTATION: 0.5,
}
"""Below these a limit saves a broker nothing, and the first unusual request of a quiet client would run into it."""
MOST_HEADROOM: Final = 1_000.0
"""As a ratio; a limit a thousand times as high as needed limits nothing."""
HIGHEST_FLOOR: Final = 1e15
"""In any unit; a petabyte a second is more than any cluster has."""


class Shape(Enum):
    """Whom the recommended rules name."""

    USER = "user"
    """One rule for all clients of a user."""
    CLIENT = "client-id"
    """One rule for a client-id, whoever its user is."""
    PAIR = "user,client-id"
    """One rule for each pair."""


class BadPolicy(PipelineError):
    """A number of the policy is out of its range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    How often a limit may bite, and how much room is left above.

    Raises:
        BadPolicy: a number is out of its range.

    """

    share: float = 0.01
    """Most of the time that an entity may be throttled, as a ratio from 0 to below 1, in every season."""
    headroom: float = 0.2
    """What is added to the lowest limit that keeps `share`, as a ratio."""
    shape: Shape = Shape.USER
    by_hour: bool = True
    """Whether each hour of the week has to keep the share, so that a nightly peak is not lost in a quiet week; else all the time together."""
    zone: tzinfo = UTC
    """Whose hours and weekdays."""
    kinds: Collection[QuotaType] = tuple(QuotaType)
    """The quota types that limits are wanted of."""
    short_log: bool = False
    """Whether limits may be made of less than a day of log."""
    floors: Mapping[QuotaType, float] = field(default_factory=lambda: FLOORS)
    """Limits are never lower than these, in the unit of the quota type."""

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            told = f"{self.share * 100:g} %"
            raise BadPolicy(f"the share of time must be from 0 % to below 100 %, not {told}")  # fmt: skip
        if not 0 <= self.headroom <= MOST_HEADROOM:
            told = f"{self.headroom * 100:g} %"
            raise BadPolicy(f"the headroom must be from 0 % to {MOST_HEADROOM * 100:.0f} %, not {told}")  # fmt: skip
        for floor in self.floors.values():
            if not 0 < floor <= HIGHEST_FLOOR:
                raise BadPolicy(f"a floor must be above 0 and at most {HIGHEST_FLOOR:g}, not {floor:g}")  # fmt: skip
