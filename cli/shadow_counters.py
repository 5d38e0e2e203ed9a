"""What a stream of shadows shows to Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, Final, TypeAlias

from prometheus_client import Metric
from prometheus_client.registry import Collector

from quotascope.metrics.catalog.family import OVERFLOW
from quotascope.metrics.catalog.shadow_stream import (
    SHADOW_DECIDED,
    SHADOW_LATE_REQUESTS,
    SHADOW_REFUSED_MUTATIONS,
    SHADOW_THROTTLE_SECONDS,
    SHADOW_THROTTLED_REQUESTS,
    stream_families,
)

MOST_ENTITIES: Final = 20_000
"""Entities on brokers under shadows that have series of their own; further ones are counted together."""
Series: TypeAlias = Mapping[str, Mapping[tuple[str, ...], float]]
_Key: TypeAlias = tuple[str, ...]


class ShadowCounters(Collector):
    """
    Counts of each entity under each shadow, which only grow.

    Args:
        counted: what was counted before, rows with `runs.shadow.KEY` and `runs.shadow.COUNTED`.
        late: requests that came late before.

    """

    def __init__(self, counted: Iterable[Mapping[str, Any]], late: int = 0) -> None:
        self._lock = Lock()
        self._counts: dict[_Key, list[int]] = {}
        self._late, self._until_ms = late, 0
        # those with the most series first, so that a restart changes little about which these are
        self.add(sorted(counted, key=lambda row: -row["throttled_requests"]))

    def add(
        self, counted: Iterable[Mapping[str, Any]], late: int = 0, until_ms: int = 0
    ) -> None:
        """Count what a step decided, and until when it did, epoch ms."""
        with self._lock:
            self._late += late
            self._until_ms = max(self._until_ms, until_ms)
            for row in counted:
                self._count(row)

    def _count(self, row: Mapping[str, Any]) -> None:
        shadow, broker, quota_type = (str(row[name]) for name in ("candidate", "broker", "quota_type"))  # fmt: skip
        key: _Key = shadow, quota_type, broker, str(row["user"]), str(row["client_id"])
        if key not in self._counts and len(self._counts) >= MOST_ENTITIES:
            key = shadow, quota_type, broker, OVERFLOW, OVERFLOW
        counts = self._counts.setdefault(key, [0, 0, 0])
        for place, name in enumerate(("throttled_requests", "throttled_ms", "rejected_mutations")):  # fmt: skip
            counts[place] += row[name]

    def read(self) -> tuple[Series]:
        """All series by the name of their family, then by the values of its labels."""
        with self._lock:
            counts = dict(self._counts)
            throttled = {key: float(each[0]) for key, each in counts.items()}
            seconds = {key: each[1] / 1_000 for key, each in counts.items()}
            refused = {(shadow, *rest): float(counts[shadow, kind, *rest][2]) for shadow, kind, *rest in counts if kind == "controller_mutation"}  # fmt: skip
            decided: dict[_Key, float] = (
                {(): self._until_ms / 1_000} if self._until_ms else {}
            )
            return ({
                SHADOW_THROTTLED_REQUESTS.name: throttled,
                SHADOW_THROTTLE_SECONDS.name: seconds,
                SHADOW_REFUSED_MUTATIONS.name: refused,
                SHADOW_LATE_REQUESTS.name: {(): float(self._late)},
                SHADOW_DECIDED.name: decided,
            },)  # fmt: skip

    def collect(self) -> Iterator[Metric]:
        """The families for Prometheus."""
        (series,) = self.read()
        for family in stream_families():
            metric = Metric(family.name.removesuffix("_total"), family.help, str(family.type.value))  # fmt: skip
            for labels, value in series[family.name].items():
                named = dict(zip(family.labels, labels, strict=True))
                metric.add_sample(family.name, named, value)
            yield metric
