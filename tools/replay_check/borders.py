"""
On which side of a window's end a request fell.

A window ends a second after the request that began it, both moments are whole ms in the log, and what is charged within a ms or two of
that end may belong to the window before or to the one after. Each is a request's bytes more or less for as long as the window is the
oldest. Answers measured from there tell which it was: where they are far off, the request beside the border is tried on its other side.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .moments import Moments

_LEAST_EXPLAINED: Final = 2
"""Answers that one moved request has to put right: a single one could be right by chance."""
_MOST_WRONG: Final = 0.1
"""Share of a sensor's answers: where more are far off, it is not a ms that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A request beside a border, moved by a ms or two."""

    first: bool
    """Whether it is the window's first request, moved earlier into the window before; else the one before it, moved later."""
    earlier_ms: int


MOVES: Final = tuple(
    Move(first=first, earlier_ms=ms if first else -ms)
    for ms in (1, 2)
    for first in (False, True)
)


def moved(wrong: Collection[int], moments: Moments, move: Move) -> Mapping[str, int]:
    """By sensor: the line that a move is about, beside the beginning of the oldest window of the sensor's first wrong answer."""
    found = {}
    for sensor, line in _first_wrong(wrong, moments):
        oldest_ms = moments.measured[line][1]
        beside = moments.beside(sensor, oldest_ms, first=move.first)
        if beside is not None:
            found[sensor] = beside
    return found


def explained(
    wrong: Collection[int], left: Collection[int], moments: Moments
) -> frozenset[str]:
    """Sensors of which a move put enough answers right; `wrong` were far off before it, `left` still are."""
    before, after = _counts(wrong, moments), _counts(left, moments)
    return frozenset(
        sensor
        for sensor, count in before.items()
        if count - after.get(sensor, 0) >= _LEAST_EXPLAINED
    )


def _first_wrong(wrong: Collection[int], moments: Moments) -> Iterator[tuple[str, int]]:
    """Of each sensor with enough wrong answers the first of them."""
    firsts: dict[str, int] = {}
    for line in sorted(wrong & moments.measured.keys()):
        firsts.setdefault(moments.measured[line][0], line)
    counts, answers = _counts(wrong, moments), _counts(moments.measured, moments)
    for sensor, line in firsts.items():
        if _LEAST_EXPLAINED <= counts[sensor] <= answers[sensor] * _MOST_WRONG:
            yield sensor, line


def _counts(lines: Collection[int], moments: Moments) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for line in lines:
        if line in moments.measured:
            sensor = moments.measured[line][0]
            counts[sensor] = counts.get(sensor, 0) + 1
    return counts
