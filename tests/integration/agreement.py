"""Whether an exporter that reads a Prometheus has the numbers of one that reads the agents."""

from __future__ import annotations

from math import inf, nan

from .eventually import eventually
from .exporter import Exporter
from .page import Page
from .readings import OWN_PEAK

Series = tuple[str, tuple[tuple[str, str], ...]]


def assert_agree(of_agents: Exporter, of_prometheus: Exporter, nodes: int = 1) -> None:
    """
    Assert that all series of clients and nodes are there, and that each number was one of the agents' own.

    Agents are read before and after each scrape of Prometheus; a number that moves lies between the two.
    """
    open_series: set[Series] = set()

    def same_series() -> None:
        page = of_prometheus.page()
        up = [sample.value for sample in page.series("quotascope_source_up")]
        assert up == [1.0] * nodes, of_prometheus.child.lines()
        ours, theirs = numbers(page), numbers(of_agents.page())
        assert ours.keys() ^ theirs.keys() == set()
        open_series.update(ours)

    eventually(same_series, seconds=60)
    assert len(open_series) > nodes
    low: dict[Series, float] = {}
    high: dict[Series, float] = {}

    def between() -> None:
        theirs = numbers(of_agents.page())
        for series, value in theirs.items():
            low[series], high[series] = min(low.get(series, value), value), max(high.get(series, value), value)
        ours = numbers(of_prometheus.page())
        wrong = {
            series: (low.get(series), ours.get(series), high.get(series))
            for series in open_series
            # one that ended in both was of a client that the broker has forgotten
            if (series in ours or series in theirs)
            and not low.get(series, inf) <= ours.get(series, nan) <= high.get(series, -inf)
        }
        open_series.intersection_update(wrong)
        assert not wrong, wrong

    eventually(between, seconds=90)


def numbers(page: Page) -> dict[Series, float]:
    """Return all numbers of clients and nodes that two exporters have to agree about."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for sample in page.samples
        if sample.name.startswith("kafka_quota_") and sample.name != OWN_PEAK and sample.value == sample.value
    }
