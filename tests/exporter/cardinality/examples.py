"""Snapshots with many entities, and configurations of what keeps their series in bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.exporter.examples import NOW, snapshot
from tests.exporter.exposition.oracle import samples

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection.sampling import PeakKeeper
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Snapshot
from quotascope.metrics.catalog import OVERFLOW

Labels = tuple[tuple[str, str], ...]


def cardinality(*, maxima: bool = False, **config: Any) -> Cardinality:
    return Cardinality(CardinalityConfig(**config), maxima=maxima)


def taken(usages: Iterable[EntityUsage], after: float = 0.0, up: Iterable[str] | None = None) -> Snapshot:
    """A snapshot so many seconds after the first one; the nodes ``up`` have answered, by default those that have entities."""
    usages = tuple(usages)
    brokers = up or sorted({usage.entity.broker for usage in usages})
    nodes = tuple(NodeUsage(broker=broker) for broker in brokers)
    return snapshot(*usages, nodes=nodes, taken_at=NOW + after)


def users(shown: Snapshot) -> list[str]:
    return sorted({usage.entity.user for usage in shown.entities} - {OVERFLOW})


def fold(shown: Snapshot) -> EntityUsage:
    (usage,) = folds(shown)
    return usage


def folds(shown: Snapshot) -> list[EntityUsage]:
    """The entities that stand for others."""
    return [usage for usage in shown.entities if usage.entity.user == OVERFLOW]


def with_maxima(shown: Snapshot) -> Snapshot:
    """The snapshot when there is sampling, and it is the first one."""
    return replace(shown, peaks=PeakKeeper(60.0).update(shown, 0.0))


def page(shown: Snapshot) -> dict[tuple[str, Labels], float]:
    """All series but those about the exporter itself."""
    return {(name, labels): value for name, labels, value in samples(shown, NOW) if not name.startswith("quotascope_")}
