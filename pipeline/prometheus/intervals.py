"""Estimation of the scrape interval of a node in each hour, from the number of its scrapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median_high
from typing import Final

from .promql import HOUR_S

WINDOW_S: Final = 600
"""Length in seconds of the windows whose scrapes are counted."""
_FULL: Final = 0.9
"""
Least number of scrapes in a full hour, as a part of six times the number in its busiest window.
"""
_ALIKE: Final = 0.95
"""Least number of scrapes in the busiest window of two hours with one interval, as a part of the busier hour's."""
_SHORTER: Final = 0.9
"""Part of the intervals of neighboring full hours, below which the interval of another hour is believed."""


@dataclass(frozen=True, slots=True)
class Hour:
    """Numbers of scrapes of a node in an hour; they are not 0."""

    busiest: float
    """Number of scrapes in the busiest window of `WINDOW_S`."""
    scrapes: float
    """Number of scrapes in the hour."""

    @property
    def is_full(self) -> bool:
        """True if all windows have about as many scrapes: there was neither a gap nor a change of the interval."""
        return self.scrapes >= _FULL * HOUR_S / WINDOW_S * self.busiest


def intervals_of(hours: Sequence[Hour]) -> list[float]:
    """
    Return the scrape interval of each hour in seconds.

    A full hour has the interval of its scrapes. An hour with gaps, or in which the interval changed, gets the shortest
    interval among its own and the ones of the nearest full hours, so that its scrapes never stand for more time than
    was seen.
    """
    by_place = _intervals_of_full_hours(hours)
    last_full = _last_full(by_place, range(len(hours)))
    next_full = _last_full(by_place, reversed(range(len(hours))))
    shortest = WINDOW_S / max((hour.busiest for hour in hours), default=1.0)
    intervals: list[float] = []
    for place, hour in enumerate(hours):
        neighbors = [interval for interval in (last_full[place], next_full[place]) if interval is not None]
        own = WINDOW_S / hour.busiest
        if place in by_place:
            intervals.append(by_place[place])
        elif not neighbors:
            intervals.append(shortest)
        elif own < _SHORTER * min(neighbors):
            intervals.append(own)
        else:
            intervals.append(min(neighbors))
    return intervals


def _last_full(by_place: Mapping[int, float], places: Iterable[int]) -> dict[int, float | None]:
    """Return the interval of the last full hour up to each place, in the order of `places`; None before the first."""
    last: float | None = None
    result: dict[int, float | None] = {}
    for place in places:
        last = by_place.get(place, last)
        result[place] = last
    return result


def _intervals_of_full_hours(hours: Sequence[Hour]) -> Mapping[int, float]:
    """Return the intervals of full hours by their index; hours with about as many scrapes have the same interval."""
    full = [place for place, hour in enumerate(hours) if hour.is_full]
    groups: list[list[int]] = []
    for place in sorted(full, key=lambda place: -hours[place].busiest):
        if groups and hours[place].busiest >= _ALIKE * hours[groups[-1][0]].busiest:
            groups[-1].append(place)
        else:
            groups.append([place])
    intervals: dict[int, float] = {}
    for group in groups:
        intervals |= dict.fromkeys(group, _common_interval([hours[place].scrapes for place in group]))
    return intervals


def _common_interval(scrapes_by_hour: Sequence[float]) -> float:
    """Return the interval of some full hours in seconds, a whole number if their scrapes allow it."""
    usual = median_high(scrapes_by_hour)
    # one scrape more or less may have moved over the edge of the hour
    scrapes = fmean(scrapes for scrapes in scrapes_by_hour if abs(scrapes - usual) <= 1)
    whole_seconds = round(HOUR_S / scrapes)
    if whole_seconds >= 1 and abs(HOUR_S / whole_seconds - scrapes) <= 1:
        return float(whole_seconds)
    return HOUR_S / scrapes
