"""Which beans are left over from earlier rules, and which only look so."""

from __future__ import annotations

from math import isfinite, isnan
from typing import Final

from quotascope.metrics import QuotaType

from .interpretation import Tags
from .plan import Numbers, Places
from .recent import LINGER_SECONDS, Recent
from .standing import Standing

_QUOTA_SAMPLES: Final = 11
_MUTATION_RATE_SAMPLES: Final = 2
_ROUNDING: Final = 1e-9


class Staleness:
    """Judges beans that the rules do not explain, by what they were at the previous collection."""

    def __init__(self) -> None:
        self._rose: Recent[tuple[str, Tags]] = Recent(LINGER_SECONDS)

    def forget(self, at: float) -> None:
        """Drop what is too long ago to matter at ``at`` (Unix time in seconds)."""
        self._rose.forget(at)

    def in_use(
        self, places: Places, now: Numbers, before: Numbers | None, at: float
    ) -> bool:
        """
        Whether a bean counts in spite of the rules.

        It does when its rate or throttle rose since the previous collection, or was seen
        to do so within the last minute.

        Args:
            places: The bean.
            now: This collection.
            before: The previous one under the same rules, None when there is none. Under other rules
                the bean was used rightly, and its last traffic is no sign that it still is.
            at: Unix time in seconds.

        """
        if places.standing is Standing.FORWARDED and isfinite(now.of(places)[1]):
            return True
        key = (now.plan.node_id, places.tags)
        if before is None:
            self._rose.drop(key)
        elif _rises(places, now, before):
            self._rose.note(key, at)
        return key in self._rose


def _rises(places: Places, now: Numbers, before: Numbers) -> bool:
    earlier = before.plan.entities.get(places.tags)
    old_usage, old_throttle = (
        0.0 if isnan(value) else max(value, 0.0)
        for value in ((0.0, 0.0) if earlier is None else before.of(earlier))
    )
    usage, throttle = now.of(places)
    # Both comparisons are False for NaN.
    return (
        usage > old_usage * _most_idle_rise(places.tags[0]) or throttle > old_throttle
    )


def _most_idle_rise(quota_type: QuotaType) -> float:
    """
    By how much a rate can rise without traffic.

    With S samples Kafka's ``Rate`` divides by S - 1 to S windows, depending on the age of
    the oldest.
    """
    mutation = quota_type is QuotaType.CONTROLLER_MUTATION
    samples = _MUTATION_RATE_SAMPLES if mutation else _QUOTA_SAMPLES
    return samples / (samples - 1) + _ROUNDING
