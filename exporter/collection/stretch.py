"""The greatest values in a stretch of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final

from quotascope.metrics import QuotaType

from ..snapshot import NodeUsage, Snapshot

NEVER: Final = -inf
"""Stands for no value yet."""


@dataclass(slots=True)
class Stretch:
    """What was greatest between two moments."""

    number: int
    """Later stretches have greater ones."""
    utilization: list[float] = field(default_factory=list)
    """By slot of the entity."""
    burst_used: list[float] = field(default_factory=list)
    """By slot of the entity."""
    delay_queue_size: dict[tuple[str, QuotaType], float] = field(default_factory=dict)
    """By broker and quota type."""

    def add(self, snapshot: Snapshot, slots: Sequence[int]) -> None:
        """Take the values of a snapshot in; ``slots`` are those of its entities."""
        self._reach(max(slots, default=-1) + 1)
        utilization, burst_used = self.utilization, self.burst_used
        for slot, usage in zip(slots, snapshot.entities, strict=True):
            if not usage.detailed:
                continue
            used, limit = usage.usage, usage.entity.limit
            # EntityUsage.utilization written out: a call for each of 100,000 would double the time
            if used is not None and limit is not None and limit > 0:
                value = used / limit
                if utilization[slot] < value < inf:
                    utilization[slot] = value
            if usage.tokens is not None:
                part = usage.burst_used
                if part is not None and burst_used[slot] < part < inf:
                    burst_used[slot] = part
        for node in snapshot.nodes:
            self._add_queues(node)

    def absorb(self, other: Stretch) -> None:
        """Become the stretch that holds both."""
        self.utilization = _greater(self.utilization, other.utilization)
        self.burst_used = _greater(self.burst_used, other.burst_used)
        for key, size in other.delay_queue_size.items():
            self._raise_queue(key, size)

    def renumber(self, old: Sequence[int]) -> None:
        """Keep these slots, in this order, and no others."""
        self._reach(max(old, default=-1) + 1)
        self.utilization = [self.utilization[slot] for slot in old]
        self.burst_used = [self.burst_used[slot] for slot in old]

    def _reach(self, count: int) -> None:
        for values in (self.utilization, self.burst_used):
            values.extend([NEVER] * (count - len(values)))

    def _add_queues(self, node: NodeUsage) -> None:
        for kind, size in node.delay_queue_size.items():
            if isfinite(size):
                self._raise_queue((node.broker, kind), size)

    def _raise_queue(self, key: tuple[str, QuotaType], size: float) -> None:
        self.delay_queue_size[key] = max(size, self.delay_queue_size.get(key, NEVER))


def _greater(some: list[float], others: list[float]) -> list[float]:
    """The greater of each two; what one side has more is taken as it is."""
    if not some or not others:
        return some or list(others)
    both = min(len(some), len(others))
    greater = list(map(max, some, others))
    return greater + some[both:] + others[both:]
