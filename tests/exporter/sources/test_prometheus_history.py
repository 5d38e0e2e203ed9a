"""The series of a period, as real servers have them: which entity each is about, in every dialect."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

import pytest
from tests.exporter.sources.prometheus_recording import PAGES
from tests.exporter.sources.recorded_prometheus import recorded

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import Meaning, attribute_of
from quotascope.exporter.sources.prometheus_api import QueryAnswer, Series
from quotascope.exporter.sources.prometheus_history import Inventory, inventory
from quotascope.exporter.sources.prometheus_limits import ExporterLimits, limits_of_exporters
from quotascope.exporter.sources.prometheus_nodes import NAME, Grouping
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.prometheus import promql
from quotascope.pipeline.prometheus.past import Answer, Past, QueryTooLarge
from quotascope.pipeline.recommend.policy import RuleShape

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


async def limits_of(series: Sequence[dict[str, Any]]) -> ExporterLimits:
    api: Any = Recorded(series)
    return await limits_of_exporters(api, "", 1.0)


def entities_on_page(page: bytes) -> set[tuple[QuotaType, bool, str, str]]:
    """Return quota type, tags, and if it is a throttle time, of each entity on a page."""
    entities = set()
    for column in TextReader().read(page).layout.columns:
        attribute = attribute_of(column)
        if attribute is None or attribute.quota_type is None or "user" not in attribute.free or attribute.open:
            continue
        if attribute.meaning in {Meaning.USAGE, Meaning.THROTTLE_TIME}:
            is_throttle = attribute.meaning is Meaning.THROTTLE_TIME
            names = column.bean.get("user") or "", column.bean.get("client-id") or ""
            entities.add((attribute.quota_type, is_throttle, *names))
    return entities


@pytest.mark.parametrize("instance", AGENTS)
async def test_series_are_about_the_entities_of_the_agents_page(instance: str) -> None:
    """Each usage and throttle time of the agent's page is found in a Prometheus, whatever its spelling."""
    series_inventory = await inventory_of(series_in(), by_exporter=False)
    ours = [one for one in series_inventory.series if one.labels["instance"] == instance]
    theirs = entities_on_page(PAGES[instance])
    assert theirs
    counted = {(one.quota_type, one.is_throttle, one.client_id) for one in ours}
    assert counted == {(kind, is_throttle, client_id) for kind, is_throttle, _, client_id in theirs}
    replicas = {one.replica for one in ours}
    assert len(ours) == len(theirs) * len(replicas)
    assert any(one.user == "svc:team a" for one in ours)  # decoded


async def test_a_series_keeps_labels_that_tell_it_apart() -> None:
    """A sum by user and client-id stays apart by node, server, and quota type where that is a label."""
    series_inventory = await inventory_of(series_in(), by_exporter=False)
    (one, *_) = (
        one for one in series_inventory.series if one.name == "kafka_server_quota_byte_rate" and one.replica == "b"
    )
    assert (one.user_label, one.client_label) in {("user", "clientId"), (None, "clientId"), ("user", None)}
    assert one.part_labels == ("instance", "prometheus_replica", "resource")
    assert set(series_inventory.beat.node_of.values()) == {one.node for one in series_inventory.series}


async def test_families_of_the_exporter_are_in_kafkas_unit() -> None:
    """Our exporter's families are converted to Kafka's units, with limits and their rules."""
    series = series_in()
    series_inventory = await inventory_of(series)
    assert series_inventory.by_exporter
    assert {one.factor for one in series_inventory.series if not one.is_throttle} == {1.0, 100.0}
    assert all(one.factor == 100.0 for one in series_inventory.series if one.name == "kafka_quota_request_threads")
    limits = (await limits_of(series)).limits
    usages = {(one.quota_type, one.user, one.client_id) for one in series_inventory.series if not one.is_throttle}
    assert limits
    assert limits.keys() <= usages
    assert all(limit.rule and limit.limit is not None and not isnan(limit.limit) for limit in limits.values())


async def test_clusters_are_refused_by_name() -> None:
    """Series of another job are of another cluster."""
    with pytest.raises(SourceUnreadable, match=r"several clusters or jobs.*west"):
        await inventory_of(series_in("all"), by_exporter=False)


async def test_a_server_without_agents() -> None:
    """A server without series of agents is an error that names the families."""
    with pytest.raises(SourceUnreadable, match="no metric of Kafka"):
        await inventory_of([{"metric": {NAME: "up"}}])
    exporters = [one for one in series_in() if one["metric"]["instance"] == "quotascope:9749"]
    with pytest.raises(SourceUnreadable, match="exporter only"):
        await inventory_of(exporters, by_exporter=False)
    agents = [one for one in series_in() if one["metric"]["instance"] != "quotascope:9749"]
    with pytest.raises(SourceUnreadable, match="is the exporter scraped"):
        await inventory_of(agents, by_exporter=True)


def other_exporter(series: Sequence[dict[str, Any]], change: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """Return the series of a second exporter, each of which a function may change."""
    copies = copy.deepcopy([one for one in series if one["metric"]["instance"] == "quotascope:9749"])
    for one in copies:
        one["metric"]["instance"] = "standby:9749"
        change(one)
    return copies


def halved_for_alice(one: dict[str, Any]) -> None:
    metric, (at, value) = one["metric"], one["value"]
    if metric[NAME] == "kafka_quota_produce_limit_bytes_per_second" and metric.get("user") == "alice":
        one["value"] = (at, str(float(value) / 2))


def other_rule_for_carol(one: dict[str, Any]) -> None:
    if one["metric"][NAME] == "kafka_quota_rule_info" and one["metric"].get("user") == "carol":
        one["metric"]["rule"] = "3 user carol"


@pytest.mark.parametrize("newest_first", [False, True])
async def test_limits_on_which_exporters_disagree_are_unknown(*, newest_first: bool) -> None:
    """A limit on which two exporters disagree is unknown, in any order of series; the agreed ones stay."""
    series = series_in()
    alone = await limits_of(series)
    both = [*series, *other_exporter(series, halved_for_alice)]
    limits = await limits_of(both[::-1] if newest_first else both)
    differing = {entity for entity in alone.limits if limits.limits[entity] != alone.limits[entity]}
    assert differing == {(QuotaType.PRODUCE, "alice", ""), (QuotaType.PRODUCE, "alice", "app1")}
    assert {(limits.limits[entity].limit, limits.limits[entity].rule) for entity in differing} == {(None, None)}
    (caveat,) = limits.caveats
    assert all(
        text in caveat for text in ("quotascope:9749", "standby:9749", "limits of", "alice", "app1", "(produce)")
    )
    assert alone.caveats == ()


async def test_a_limit_that_one_exporter_shows_as_unlimited_is_unknown() -> None:
    """An exporter that shows the rule of an entity and no limit disagrees with one that shows a limit."""
    series = series_in()
    limit = "kafka_quota_request_limit_threads"
    second = [one for one in other_exporter(series, lambda _: None) if one["metric"][NAME] != limit]
    limits = await limits_of([*series, *second])
    of_carol = limits.limits[QuotaType.REQUEST, "carol", ""]
    assert (of_carol.limit, of_carol.rule) == (None, None)
    assert "limits of" in limits.caveats[0]


async def test_a_rule_on_which_exporters_disagree_is_unknown() -> None:
    """A rule on which two exporters disagree is unknown, and the limit that both show stays."""
    series = series_in()
    limits = await limits_of([*series, *other_exporter(series, other_rule_for_carol)])
    of_carol = limits.limits[QuotaType.REQUEST, "carol", ""]
    assert (of_carol.limit, of_carol.rule) == (2.0, None)
    (caveat,) = limits.caveats
    assert all(text in caveat for text in ("quotascope:9749", "standby:9749", "rules of", "carol", "(request)"))
    same = await limits_of([*series, *other_exporter(series, lambda _: None)])
    assert same == await limits_of(series)


def reused_address(series: Sequence[dict[str, Any]], instance: str, **labels: str) -> list[dict[str, Any]]:
    """Return the series of a later node with the address of another one, with labels of its own target."""
    copies = copy.deepcopy([one for one in series if one["metric"]["instance"] == instance])
    for one in copies:
        one["metric"] |= labels
        for label in ("id", "broker"):
            if one["metric"].get(label, "").isdigit():
                one["metric"][label] = "7"
    known = [one["metric"] for one in series]
    return [one for one in copies if one["metric"] not in known]


@pytest.mark.parametrize("labels", [{"pod": "kafka-7"}, {}])
@pytest.mark.parametrize("configured", [False, True])
async def test_an_address_of_two_nodes_is_refused(labels: dict[str, str], *, configured: bool) -> None:
    """Usage of two nodes is not added up as one's, whether their pods differ in a label or one is configured."""
    series = series_in()
    instance, own_id = reporting(series)
    api: Any = Recorded([*series, *reused_address(series, instance, **labels)])
    ids = {instance: own_id} if configured else None
    with pytest.raises(SourceUnreadable, match=rf"{re.escape(instance)} was the address of several nodes.*{own_id}, 7"):
        await inventory(api, GROUPING, "", (0.0, 3_600.0), node_ids=ids, by_exporter=False)


def reporting(series: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Return the instance and the id of a node whose agent reports it."""
    return next(
        (one["metric"]["instance"], one["metric"]["id"])
        for one in series
        if one["metric"].get("id", "").isdigit() and one["metric"]["instance"] in AGENTS
    )


@pytest.mark.parametrize("by_label", [False, True])
async def test_an_id_that_the_agent_contradicts_is_refused(*, by_label: bool) -> None:
    """Neither an entry of `nodes` nor a label of the target may give a node the id of another one."""
    series = copy.deepcopy(series_in())
    instance, own_id = reporting(series)
    other_id = str(int(own_id) + 6)
    for one in series if by_label else ():
        if one["metric"]["instance"] == instance:
            one["metric"]["node_id"] = other_id
    api: Any = Recorded(series)
    ids = None if by_label else {instance: other_id}
    where = "the label node_id of its target" if by_label else "`nodes` of this source"
    expected = rf"agent of {re.escape(instance)} says that it is node {own_id}, but {where} says {other_id}: correct it"
    with pytest.raises(SourceUnreadable, match=expected):
        await inventory(api, GROUPING, "", (0.0, 3_600.0), node_ids=ids, by_exporter=False)


@pytest.mark.parametrize("by_label", [False, True])
async def test_a_node_has_the_id_that_its_agent_does_not_report(*, by_label: bool) -> None:
    """A node whose agent reports no id has that of `nodes` or of a label; an entry without a series is named."""
    series = copy.deepcopy(series_in())
    plain = await inventory_of(series, by_exporter=False)
    instance = next(one.node for one in plain.series if one.node == one.labels["instance"])
    for one in series if by_label else ():
        if one["metric"]["instance"] == instance:
            one["metric"]["node_id"] = "77"
    api: Any = Recorded(series)
    ids = None if by_label else {instance: "77", "elsewhere:9404": "78"}
    series_inventory = await inventory(api, GROUPING, "", (0.0, 3_600.0), node_ids=ids, by_exporter=False)
    assert {one.node for one in series_inventory.series if one.labels["instance"] == instance} == {"77"}
    named = [caveat for caveat in series_inventory.caveats if "elsewhere:9404, of which there is no series" in caveat]
    assert len(named) == (0 if by_label else 1)


class Unlimited:
    """A server that gives up queries about more than one node, and notes the others."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        assert at > 0
        if "broker=" not in promql:
            raise QueryTooLarge("too many samples")
        self.asked.append(promql)
        return ()


@pytest.mark.parametrize("shape", [None, RuleShape.USER])
async def test_families_of_an_exporter_are_divided_by_node(shape: RuleShape | None) -> None:
    """Series of an exporter are requested node by node where an hour of all nodes is too much."""
    own = [one for one in series_in() if one["metric"]["instance"] == "quotascope:9749"]
    second = copy.deepcopy(own)
    for one in second:
        if "broker" in one["metric"]:
            one["metric"]["broker"] = "2"
    series_inventory = await inventory_of([*own, *second], by_exporter=True)
    server = Unlimited()
    past = Past(
        server=server, address="", selector="", begin=0.0, end=3_600.0, series=series_inventory.series, nodes={}
    )
    groups = past.groups(throttles=False, shape=shape)
    assert list(past.ask(groups, {"seen_s": promql.seen})) == []
    for node in ("1", "2"):
        assert sum(f'broker="{node}"' in query for query in server.asked) == len(groups)
