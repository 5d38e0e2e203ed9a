"""The series of a period, as real servers have them: which entity each is about, in every dialect."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import pytest
from tests.exporter.sources.prometheus_recording import PAGES
from tests.exporter.sources.recorded_prometheus import recorded

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import Meaning, attribute_of
from quotascope.exporter.sources.prometheus_api import QueryAnswer, Series
from quotascope.exporter.sources.prometheus_history import Inventory, inventory, shown_limits
from quotascope.exporter.sources.prometheus_nodes import NAME, Grouping
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.metrics.kafka.entities import QuotaType

AGENTS = [instance for instance in PAGES if instance.startswith("broker-")]
GROUPING = Grouping(replica_labels=("prometheus_replica",))


class Recorded:
    """The API of a recorded server: the names and series of its recorded scrapes."""

    def __init__(self, series: Sequence[dict[str, Any]]) -> None:
        self._series = series

    async def names(self, selector: str, start: float, end: float) -> list[str]:
        assert (selector, start < end) == ("", True)
        return sorted({one["metric"][NAME] for one in self._series})

    async def series(self, selector: str, start: float, end: float) -> list[Series]:
        assert selector.startswith("{__name__=~")
        assert start < end
        return [Series(labels=one["metric"], samples=()) for one in self._series]

    async def query(self, promql: str, at: float) -> QueryAnswer:
        assert at > 0
        names = promql.partition('"')[2].partition('"')[0].split("|")
        chosen = [one for one in self._series if one["metric"][NAME] in names]
        return QueryAnswer(series=[Series(labels=one["metric"], samples=[one["value"]]) for one in chosen])


def series_in(job: str = "kafka") -> list[dict[str, Any]]:
    series: list[dict[str, Any]] = recorded(job)["vector"]["result"]
    return series


async def inventory_of(series: Sequence[dict[str, Any]], *, by_exporter: bool | None = None) -> Inventory:
    api: Any = Recorded(series)
    return await inventory(api, GROUPING, "", (0.0, 3_600.0), by_exporter=by_exporter)


def entities_on_page(page: bytes) -> set[tuple[QuotaType, bool, str, str]]:
    """Return quota type, whether it is a throttle time, and tags of each entity on a page, as a source reads it."""
    found = set()
    for column in TextReader().read(page).layout.columns:
        attribute = attribute_of(column)
        if attribute is None or attribute.quota_type is None or "user" not in attribute.free or attribute.open:
            continue
        if attribute.meaning in {Meaning.USAGE, Meaning.THROTTLE_TIME}:
            is_throttle = attribute.meaning is Meaning.THROTTLE_TIME
            names = column.bean.get("user") or "", column.bean.get("client-id") or ""
            found.add((attribute.quota_type, is_throttle, *names))
    return found


@pytest.mark.parametrize("instance", AGENTS)
async def test_series_are_about_the_entities_of_the_agents_page(instance: str) -> None:
    """Each usage and throttle time that a source reads from the agent's page is found, whatever its spelling."""
    found = await inventory_of(series_in(), by_exporter=False)
    ours = [one for one in found.series if one.labels["instance"] == instance]
    theirs = entities_on_page(PAGES[instance])
    assert theirs
    counted = {(one.quota_type, one.is_throttle, one.client_id) for one in ours}
    assert counted == {(kind, is_throttle, client_id) for kind, is_throttle, _, client_id in theirs}
    replicas = {one.replica for one in ours}
    assert len(ours) == len(theirs) * len(replicas)
    assert any(one.user == "svc:team a" for one in ours)  # decoded


async def test_a_series_keeps_labels_that_tell_it_apart() -> None:
    """A sum by user and client-id stays apart by node, server, and quota type where that is a label."""
    found = await inventory_of(series_in(), by_exporter=False)
    (one, *_) = (one for one in found.series if one.name == "kafka_server_quota_byte_rate" and one.replica == "b")
    assert (one.user_label, one.client_label) in {("user", "clientId"), (None, "clientId"), ("user", None)}
    assert one.part_labels == ("instance", "prometheus_replica", "resource")
    assert set(found.beat.node_of.values()) == {one.node for one in found.series}


async def test_families_of_the_exporter_are_in_kafkas_unit() -> None:
    """Threads become percent, and the limits are those of the exporter, with their rules."""
    series = series_in()
    found = await inventory_of(series)
    assert found.by_exporter
    assert {one.factor for one in found.series if not one.is_throttle} == {1.0, 100.0}
    assert all(one.factor == 100.0 for one in found.series if one.name == "kafka_quota_request_threads")
    api: Any = Recorded(series)
    limits = await shown_limits(api, "", 1.0)
    usages = {(one.quota_type, one.user, one.client_id) for one in found.series if not one.is_throttle}
    assert limits
    assert limits.keys() <= usages
    assert all(limit.rule and not isnan(limit.limit) for limit in limits.values())


async def test_clusters_are_refused_by_name() -> None:
    """Series of another job are of another cluster."""
    with pytest.raises(SourceUnreadable, match=r"several clusters or jobs.*west"):
        await inventory_of(series_in("all"), by_exporter=False)


async def test_a_server_without_agents() -> None:
    """The message says what was looked for."""
    with pytest.raises(SourceUnreadable, match="no metric of Kafka"):
        await inventory_of([{"metric": {NAME: "up"}}])
    exporters = [one for one in series_in() if one["metric"]["instance"] == "quotascope:9749"]
    with pytest.raises(SourceUnreadable, match="exporter only"):
        await inventory_of(exporters, by_exporter=False)
    agents = [one for one in series_in() if one["metric"]["instance"] != "quotascope:9749"]
    with pytest.raises(SourceUnreadable, match="is the exporter scraped"):
        await inventory_of(agents, by_exporter=True)
