"""Export by prometheus-client, served or pushed."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotascope.metrics.catalog import Family, FamilyType

from ..accounting import ThrottleAccount
from .rows import READINGS


class ThrottleCollector(Collector):
    """
    Collector of an account for a registry: `REGISTRY.register(ThrottleCollector(account))`.

    Nothing is copied or remembered: each scrape reads the account.
    """

    def __init__(self, account: ThrottleAccount) -> None:
        self._account = account

    def describe(self) -> Iterator[Metric]:
        """Yield the families without series."""
        for reading in READINGS:
            yield _metric(reading.family)

    def collect(self) -> Iterator[Metric]:
        """Yield the families with their current values."""
        for reading in READINGS:
            metric = _metric(reading.family)
            for labels, value in reading.rows(self._account):
                metric.add_metric(labels, value)
            yield metric


def _metric(family: Family) -> CounterMetricFamily | GaugeMetricFamily:
    if family.type is FamilyType.COUNTER:
        return CounterMetricFamily(family.name, family.help, labels=family.labels, unit=family.declared_unit)
    return GaugeMetricFamily(family.name, family.help, labels=family.labels, unit=family.declared_unit)
