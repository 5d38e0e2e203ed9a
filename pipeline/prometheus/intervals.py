"""The scrape interval of a node in each hour, from the number of its scrapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median_high
from typing import Final

from .promql import HOUR_S

WINDOW_S: Final = 600
"""Length in seconds of the windows whose scrapes are counted."""
_FULL: Final = 0.9
"""Least scrapes of an hour with one interval, as a part of six times those of its busiest window."""
_ALIKE: Final = 0.95
"""Least scrapes of an hour that has the interval of a busier hour, as a part of that hour's scrapes."""
_SHORTER: Final = 0.9
"""Part of the intervals of neighboring hours below which an hour has an interval of its own."""


@dataclass(frozen=True, slots=True)
class Hour:
    """The scrapes of a node in an hour, of which there is at least one."""

    busiest: float
    """Number of scrapes in its busiest window."""
    scrapes: float
    """Number of all scrapes."""

    @property
    def is_full(self) -> bool:
        """True if all windows are about as busy, so that there was no gap, and no other interval."""
        return self.scrapes >= _FULL * HOUR_S / WINDOW_S * self.busiest


def intervals_of(hours: Sequence[Hour]) -> list[float]:
    """
    Return the scrape interval of each hour in seconds.

    An hour with gaps, or in which the interval changed, gets the shortest interval among its own and those of the
    nearest full hours, so that its scrapes never stand for more time than was seen.
    """
    full = _of_full(hours)
    before: list[float | None] = [None]
    for place in range(len(hours)):
        before.append(full.get(place, before[-1]))
    after: list[float | None] = [None]
    for place in reversed(range(len(hours))):
        after.append(full.get(place, after[-1]))
    shortest = WINDOW_S / max((hour.busiest for hour in hours), default=1.0)
    intervals: list[float] = []
    for place, hour in enumerate(hours):
        beside = [one for one in (before[place], after[len(hours) - 1 - place]) if one is not None]
        own = WINDOW_S / hour.busiest
        if place in full:
            intervals.append(full[place])
        elif not beside:
            intervals.append(shortest)
        else:
            intervals.append(own if own < _SHORTER * min(beside) else min(beside))
    return intervals


def _of_full(hours: Sequence[Hour]) -> Mapping[int, float]:
    """Return the intervals of full hours by their place; those that are about as busy have one interval."""
    places = sorted(
        (place for place, hour in enumerate(hours) if hour.is_full), key=lambda place: -hours[place].busiest
    )
    alike: list[list[int]] = []
    for place in places:
        if alike and hours[place].busiest >= _ALIKE * hours[alike[-1][0]].busiest:
            alike[-1].append(place)
        else:
            alike.append([place])
    return {place: interval for group in alike for interval in [_interval(hours, group)] for place in group}


def _interval(hours: Sequence[Hour], places: Sequence[int]) -> float:
    """Return the interval of hours that have the same: a whole number of seconds where their scrapes allow it."""
    usual = median_high(hours[place].scrapes for place in places)
    # a scrape more or less is one at the edge of the hour, which others have lost or won
    scrapes = fmean(hours[place].scrapes for place in places if abs(hours[place].scrapes - usual) <= 1)
    whole = round(HOUR_S / scrapes)
    return float(whole) if whole >= 1 and abs(HOUR_S / whole - scrapes) <= 1 else HOUR_S / scrapes
