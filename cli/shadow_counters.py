"""What a stream of shadows shows to Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, Final, TypeAlias

from quotascope.metrics.catalog.family import OVERFLOW, Family
from quotascope.metrics.catalog.shadow_stream import (
    SHADOW_DECIDED,
    SHADOW_LATE_REQUESTS,
    SHADOW_REFUSED_MUTATIONS,
    SHADOW_THROTTLE_SECONDS,
    SHADOW_THROTTLED_REQUESTS,
)

MOST_ENTITIES: Final = 20_000
"""Entities on brokers under shadows that have series of their own; further ones are counted together."""
Series: TypeAlias = Mapping[str, Mapping[tuple[str, ...], float]]
_Key: TypeAlias = tuple[str, ...]


def _entity(row: Mapping[str, Any]) -> _Key:
    """The labels of a row: `shadow`, `quota_type`, `broker`, `user`, `client_id`."""
    names = "candidate", "quota_type", "broker", "user", "client_id"
    return tuple(str(row[name]) for name in names)


class ShadowCounters:
    """
    Counts of each entity under each shadow, which only grow.

    Args:
        counted: what was counted before, rows of `runs.shadow.ShadowStream.counted`.
        late: requests that came late before.

    """

    def __init__(self, counted: Iterable[Mapping[str, Any]], late: int = 0) -> None:
        self._lock = Lock()
        self._counts: dict[_Key, list[int]] = {}
        self._late, self._until_ms = late, 0
        # as they came, so that after a restart the same entities have series
        for row in sorted(counted, key=lambda row: (row["step"], _entity(row))):
            self._count(row)

    def add(self, counted: Iterable[Mapping[str, Any]], late: int = 0, until_ms: int = 0) -> None:
        """Count what a step decided, and until when it did, epoch ms."""
        with self._lock:
            self._late += late
            self._until_ms = max(self._until_ms, until_ms)
            for row in sorted(counted, key=_entity):
                self._count(row)

    def _count(self, row: Mapping[str, Any]) -> None:
        key = _entity(row)
        if key not in self._counts and len(self._counts) >= MOST_ENTITIES:
            key = (*key[:3], OVERFLOW, OVERFLOW)
        counts = self._counts.setdefault(key, [0, 0, 0])
        counts[0] += row["throttled_requests"]
        counts[1] += row["throttled_ms"]
        counts[2] += row["rejected_mutations"]

    def read(self) -> tuple[Series]:
        """All series by the name of their family, then by the values of its labels."""
        with self._lock:
            refused: dict[_Key, float] = {}
            for (shadow, kind, *entity), (_, _, mutations) in self._counts.items():
                if kind == "controller_mutation":
                    refused[shadow, *entity] = mutations
            series: dict[str, Mapping[_Key, float]] = {
                SHADOW_THROTTLED_REQUESTS.name: {key: float(each[0]) for key, each in self._counts.items()},
                SHADOW_THROTTLE_SECONDS.name: {key: each[1] / 1_000 for key, each in self._counts.items()},
                SHADOW_REFUSED_MUTATIONS.name: refused,
                SHADOW_LATE_REQUESTS.name: {(): self._late},
                SHADOW_DECIDED.name: {(): self._until_ms / 1_000} if self._until_ms else {},
            }  # fmt: skip
        return (series,)


def series_of(family: Family, read: tuple[Series]) -> Mapping[tuple[str, ...], float]:
    """The series of a family in what `ShadowCounters.read` returned."""
    return read[0][family.name]
