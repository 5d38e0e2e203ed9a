"""Throttling under quotas that are not set, compared with the quotas in force, and marks for clients held back now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final


class ThrottleChange(StrEnum):
    """The change of an entity's throttling under other quotas; the value is the label ``change``."""

    NEW = "new"
    """The entity is not throttled, and would be."""
    LONGER = "longer"
    """The entity is throttled, and would be for longer."""
    SHORTER = "shorter"
    """The entity is throttled, and would be for a shorter time or not at all: its usage without a quota is unknown."""
    ENDED = "ended"
    """The entity is throttled, and would not be any more."""
    UNCHANGED = "unchanged"
    """The entity is throttled, and would be for the same time."""

    @property
    def words(self) -> str:
        """Heading of a column."""
        return _WORDS[self]

    @property
    def worse(self) -> bool:
        """True if the change speaks against the quotas."""
        return self in WORSE


WORSE: Final = (ThrottleChange.NEW, ThrottleChange.LONGER)
"""Changes that count for alerts, exit codes and verdicts."""
_WORDS: Final = {
    ThrottleChange.NEW: "newly throttled",
    ThrottleChange.LONGER: "longer",
    ThrottleChange.SHORTER: "shorter",
    ThrottleChange.ENDED: "no longer",
    ThrottleChange.UNCHANGED: "unchanged",
}
HELD_BACK: Final = (
    "≥: held back now. A client that a quota throttles uses at least this much without the quota; "
    "how much more is not seen."
)
"""Legend of figures that `lower_bound` marks."""
FIRST_THROTTLE: Final = (
    "A throttle that is new or longer is the first one under these limits. A client that waits for answers slows "
    "down to the limit: each later one is about a request's size / limit."
)
"""Legend of throttle times that are computed from current rates."""
HELD_BACK_LOGGED: Final = (
    "a quota held clients back while they were recorded, and how much more they would have used without it is unknown"
)
"""Reason for lower bounds in logs and other records of the past (`legend_of_bounds`)."""


def change_between(base: float, new: float) -> ThrottleChange | None:
    """
    Return the change from one throttled time to another, None if both are 0.

    >>> [str(change_between(*times)) for times in ((0, 1), (1, 2), (2, 1), (1, 0), (1, 1), (0, 0))]
    ['new', 'longer', 'shorter', 'ended', 'unchanged', 'None']
    """
    if base == new:
        return ThrottleChange.UNCHANGED if new else None
    if not base:
        return ThrottleChange.NEW
    if not new:
        return ThrottleChange.ENDED
    return ThrottleChange.LONGER if new > base else ThrottleChange.SHORTER


def legend_of_bounds(reasons: Iterable[str]) -> Sequence[str]:
    """
    Return the legend of ``≥`` in a report: one definition for all reasons, nothing without a reason.

    >>> legend_of_bounds(["samples are missing", "requests are missing"])
    ['≥ marks lower bounds: samples are missing; requests are missing.']
    """
    text = "; ".join(reasons)
    return [f"≥ marks lower bounds: {text}."] if text else []


def lower_bound(text: str, *, held_back: bool, short: bool = False) -> str:
    """
    Return a figure of demand as text, marked as a lower bound if the entity was throttled.

    >>> lower_bound("40 %", held_back=True), lower_bound("40 %", held_back=False)
    ('≥ 40 %, held back now', '40 %')
    >>> lower_bound("40 %", held_back=True, short=True)
    '≥ 40 %'
    """
    if not held_back:
        return text
    return f"≥ {text}" if short else f"≥ {text}, held back now"
