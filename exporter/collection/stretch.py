"""The greatest values in a stretch of time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TypeVar

from quotascope.metrics import QuotaType

from ..snapshot import NodeUsage, Snapshot

_Key = TypeVar("_Key")


@dataclass(slots=True)
class Stretch:
    """What was greatest between two moments."""

    number: int
    """Later stretches have greater ones."""
    utilization: dict[int, float] = field(default_factory=dict)
    """By slot of the entity."""
    burst_used: dict[int, float] = field(default_factory=dict)
    """By slot of the entity."""
    delay_queue_size: dict[tuple[str, QuotaType], float] = field(default_factory=dict)
    """By broker and quota type."""

    def add(self, snapshot: Snapshot, slots: Sequence[int]) -> None:
        """Take the values of a snapshot in; ``slots`` are those of its entities."""
        known = self.utilization
        for slot, usage in zip(slots, snapshot.entities, strict=True):
            used, limit = usage.usage, usage.entity.limit
            # EntityUsage.utilization written out: a call for each of 100,000 would double the time
            if used is None or limit is None or limit <= 0 or not usage.detailed:
                continue
            value = used / limit
            if value > known.get(slot, -inf) and value < inf:
                known[slot] = value
        for slot, usage in zip(slots, snapshot.entities, strict=True):
            if usage.tokens is not None and usage.detailed:
                _raise_to(self.burst_used, slot, usage.burst_used)
        for node in snapshot.nodes:
            self._add_queues(node)

    def absorb(self, other: Stretch) -> None:
        """Become the stretch that holds both."""
        _merge(self.utilization, other.utilization)
        _merge(self.burst_used, other.burst_used)
        _merge(self.delay_queue_size, other.delay_queue_size)

    def keep_only(self, slots: Container[int]) -> None:
        """Forget all other entities."""
        for values in (self.utilization, self.burst_used):
            for slot in [slot for slot in values if slot not in slots]:
                del values[slot]

    def _add_queues(self, node: NodeUsage) -> None:
        for kind, size in node.delay_queue_size.items():
            _raise_to(self.delay_queue_size, (node.broker, kind), size)


def _raise_to(values: dict[_Key, float], key: _Key, value: float | None) -> None:
    if value is None:
        return
    known = values.get(key)
    if (known is None or value > known) and isfinite(value):
        values[key] = value


def _merge(values: dict[_Key, float], others: Mapping[_Key, float]) -> None:
    if not values:
        values.update(others)
        return
    for key, value in others.items():
        known = values.get(key)
        if known is None or value > known:
            values[key] = value
