"""What a stream of shadows shows to Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, Final

from prometheus_client import Metric
from prometheus_client.registry import Collector

from quotascope.metrics.catalog.family import OVERFLOW
from quotascope.metrics.catalog.shadow_stream import (
    SHADOW_DECIDED,
    SHADOW_LATE_REQUESTS,
    SHADOW_REFUSED_MUTATIONS,
    SHADOW_THROTTLE_SECONDS,
    SHADOW_THROTTLED_REQUESTS,
)

MOST_ENTITIES: Final = 20_000
"""Entities on brokers under shadows that have series of their own; further ones are counted together."""
_Key = tuple[str, str, str, str, str]


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
        key = shadow, quota_type, broker, str(row["user"]), str(row["client_id"])
        if key not in self._counts and len(self._counts) >= MOST_ENTITIES:
            key = shadow, quota_type, broker, OVERFLOW, OVERFLOW
        counts = self._counts.setdefault(key, [0, 0, 0])
        for place, name in enumerate(("throttled_requests", "throttled_ms", "rejected_mutations")):  # fmt: skip
            counts[place] += row[name]

    def collect(self) -> Iterator[Metric]:
        """All families; those of a mutation quota have refused mutations as well."""
        with self._lock:
            counts = {key: tuple(each) for key, each in self._counts.items()}
            late, until_ms = self._late, self._until_ms
        for place, family in enumerate((SHADOW_THROTTLED_REQUESTS, SHADOW_THROTTLE_SECONDS, SHADOW_REFUSED_MUTATIONS)):  # fmt: skip
            metric = Metric(family.name.removesuffix("_total"), family.help, "counter")
            for key, each in counts.items():
                labels = dict(zip(("shadow", "quota_type", "broker", "user", "client_id"), key, strict=True))  # fmt: skip
                if family is SHADOW_REFUSED_MUTATIONS and labels.pop("quota_type") != "controller_mutation":  # fmt: skip
                    continue
                value = each[place] / 1_000 if family is SHADOW_THROTTLE_SECONDS else each[place]  # fmt: skip
                metric.add_sample(family.name, labels, float(value))
            yield metric
        metric = Metric(SHADOW_LATE_REQUESTS.name.removesuffix("_total"), SHADOW_LATE_REQUESTS.help, "counter")  # fmt: skip
        metric.add_sample(SHADOW_LATE_REQUESTS.name, {}, float(late))
        yield metric
        if until_ms:
            metric = Metric(SHADOW_DECIDED.name, SHADOW_DECIDED.help, "gauge")
            metric.add_sample(SHADOW_DECIDED.name, {}, until_ms / 1_000)
            yield metric
