"""What a stream of shadows shows to Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, Final, TypeAlias

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import shadow as catalog
from quotascope.metrics.catalog.family import OVERFLOW, Family

MOST_ENTITIES: Final = 20_000
"""Entities on brokers under shadows that have series of their own; further ones are counted together."""
_Key: TypeAlias = tuple[str, ...]
Series: TypeAlias = Mapping[Family, Mapping[_Key, float]]


def _entity(row: Mapping[str, Any]) -> _Key:
    """The labels of a row: `shadow`, `quota_type`, `broker`, `user`, `client_id`."""
    return tuple(str(row[name]) for name in ("candidate", "quota_type", "broker", "user", "client_id"))


class ShadowCounters:
    """
    Counts of each entity under each shadow, which only grow.

    Args:
        counted: what was counted before, rows of `runs.shadow.ShadowStream.counted`.
        late: requests that came late before.

    """

    def __init__(self, counted: Iterable[Mapping[str, Any]], late: int = 0) -> None:
        self._lock = Lock()
        self._counts: dict[_Key, tuple[int, int, int]] = {}
        self._late = self._until_ms = 0
        self.add(counted, late)

    def add(self, counted: Iterable[Mapping[str, Any]], late: int = 0, until_ms: int = 0) -> None:
        """Count what steps decided, and until when they did, epoch ms."""
        with self._lock:
            self._late += late
            self._until_ms = max(self._until_ms, until_ms)
            # as they came, so that after a restart the same entities have series
            for row in sorted(counted, key=lambda row: (row["step"], _entity(row))):
                key = _entity(row)
                if key not in self._counts and len(self._counts) >= MOST_ENTITIES:
                    key = (*key[:3], OVERFLOW, OVERFLOW)
                requests, ms, refused = self._counts.get(key, (0, 0, 0))
                requests, ms = requests + row["throttled_requests"], ms + row["throttled_ms"]
                self._counts[key] = requests, ms, refused + row["rejected_mutations"]

    def read(self) -> tuple[Series]:
        """All series by their family, then by the values of its labels."""
        with self._lock:
            mutating = QuotaType.CONTROLLER_MUTATION.label
            series: Series = {
                catalog.SHADOW_THROTTLED_REQUESTS: {key: each[0] for key, each in self._counts.items()},
                catalog.SHADOW_THROTTLE_SECONDS: {key: each[1] / 1_000 for key, each in self._counts.items()},
                catalog.SHADOW_REFUSED_MUTATIONS: {
                    (shadow, *entity): each[2]
                    for (shadow, kind, *entity), each in self._counts.items()
                    if kind == mutating
                },
                catalog.SHADOW_LATE_REQUESTS: {(): self._late},
                catalog.SHADOW_DECIDED: {(): self._until_ms / 1_000} if self._until_ms else {},
            }
        return (series,)


def series_of(family: Family, read: tuple[Series]) -> Mapping[_Key, float]:
    """The series of a family in what `ShadowCounters.read` returned."""
    return read[0][family]
