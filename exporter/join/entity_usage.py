"""The numbers of entities, in base units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite, nan
from typing import Final

from ..mapping import MILLISECONDS, PERCENT, Meaning
from ..snapshot import EntityUsage
from .plan import Numbers, Places

UNLIMITED_TOKENS: Final = 9e15
"""
More tokens than any limit gives. A bucket without a limit grows by Long.MAX a second up to
1e20: within a millisecond of losing its limit it holds this many.
"""


def usages(entities: Iterable[Places], numbers: Numbers) -> Iterator[EntityUsage]:
    """What each of these entities used: where nothing of it changed, and no cause was found, the object of the last time."""
    values = numbers.values
    for places in entities:
        amount, throttle_ms = values[places.usage], values[places.throttle_time]
        used = amount / places.divisor if isfinite(amount) else None
        throttled = (
            throttle_ms / MILLISECONDS if isfinite(throttle_ms) else places.unthrottled
        )
        last = places.last
        if (
            last is None
            or last.usage != used
            or last.throttle_time_seconds != (throttled or 0.0)
            or last.throttle_known is (throttled is None)
            or last.cause is not None
            or places.more
        ):
            last = places.last = _usage(places, used, throttled, numbers)
        yield last


def _usage(
    places: Places, used: float | None, throttled: float | None, numbers: Numbers
) -> EntityUsage:
    usage = EntityUsage(
        entity=places.entity,
        usage=used,
        throttle_time_seconds=throttled or 0.0,
        throttle_known=throttled is not None,
    )
    if places.more:
        _add_more(usage, places, numbers)
        if places.last == usage:
            return places.last
    return usage


def _add_more(usage: EntityUsage, places: Places, numbers: Numbers) -> None:
    found = {
        meaning: numbers.values[place]
        for meaning, place in places.more.items()
        if isfinite(numbers.values[place])
    }
    told = places.more.get(Meaning.TOLD_UTILIZATION)
    if told is not None:
        percent = numbers.values[told]
        usage.told_utilization = percent / PERCENT if isfinite(percent) else nan
    tokens = found.get(Meaning.TOKENS)
    limited = places.entity.limit is not None or numbers.plan.limits is None
    if tokens is not None and limited and tokens < UNLIMITED_TOKENS:
        usage.tokens = tokens
    throttled_ms = found.get(Meaning.THROTTLED_SECONDS)
    if throttled_ms is not None:
        usage.throttled_seconds_total = throttled_ms / MILLISECONDS
    usage.throttled_requests_total = found.get(Meaning.THROTTLED_REQUESTS)
    usage.rejected_mutations_total = found.get(Meaning.REJECTED_MUTATIONS)
