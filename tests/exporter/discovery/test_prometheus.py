"""Nodes found in a recorded Prometheus: which there are, which ids they have, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.exporter.limits.scripted import DENIED, ScriptedAdmin
from tests.exporter.sources.recorded_prometheus import Answers, answering, recorded, series_of, without

from quotascope.clients.quota_admin import Node, RegisteredBrokers
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import Config, PrometheusConfig, PrometheusSourceConfig
from quotascope.exporter.diagnosis.findings import diagnose
from quotascope.exporter.discovery.discovery import build_roster
from quotascope.exporter.discovery.prometheus import PrometheusFinder, PrometheusNode
from quotascope.exporter.errors import DiscoveryError, SourceUnreadable
from quotascope.exporter.limits.refresh import LimitsRefresh

ALL = {"broker-3:9404": 3}


class HostsAdmin(ScriptedAdmin):
    """A cluster of brokers with hosts of the test's choice."""

    nodes: tuple[Node, ...] = ()

    def describe_brokers(self) -> RegisteredBrokers:
        super().describe_brokers()
        return RegisteredBrokers(nodes=self.nodes, with_fenced=True)


@asynccontextmanager
async def finding(
    change: Callable[[Answers], object] = lambda _: None,
    admin: ScriptedAdmin | None = None,
    answers: Answers | None = None,
    **settings: Any,
) -> AsyncIterator[PrometheusFinder]:
    """Yield a finder that asks the recording, with these settings of its configuration."""
    async with answering(answers, change) as (_, config):
        finder = PrometheusFinder(config.model_copy(update=settings), None if admin is None else lambda: admin)
        try:
            yield finder
        finally:
            await finder.close()


async def ids(finder: PrometheusFinder) -> tuple[dict[str, str | None], str | None]:
    """Return the id that each found node gets from elsewhere than its page, and the problem."""
    discovered = await finder.find()
    nodes = {source.instance: source.node_id for source in discovered.sources if isinstance(source, PrometheusNode)}
    return nodes, discovered.problem


async def test_each_instance_is_a_source() -> None:
    """Each instance is a source with the id that it reports, or with that of the configuration."""
    async with finding(nodes=ALL) as finder:
        id_by_host, problem = await ids(finder)
        tables = [await source.open().read() for source in (await finder.find()).sources]
    assert id_by_host == {"broker-1:9404": None, "broker-2:9404": None, "broker-3:9404": "3"}
    assert problem is None
    assert [table.node_id for table in tables] == ["1", "2", "3"]


async def test_a_node_without_an_id_is_named() -> None:
    """A node without an id is named with the settings that mend it, and the other nodes are read."""
    async with finding() as finder:
        id_by_host, problem = await ids(finder)
    assert id_by_host.keys() == {"broker-1:9404", "broker-2:9404"}
    assert problem is not None
    assert problem.startswith("the node id of broker-3:9404 is unknown: their agents do not report it; give it under")


async def test_a_label_of_the_target_has_the_id() -> None:
    """The id may be in a label of the target, the same one as in files of targets."""

    def change(answers: Answers) -> None:
        for series in series_of(answers, "vector", "broker-3:9404"):
            series["metric"]["node_id"] = "3"

    async with finding(change) as finder:
        assert (await ids(finder))[0]["broker-3:9404"] == "3"


async def test_the_admin_api_has_the_id_of_a_host() -> None:
    """A broker's id is found by its host, unless two share it; without the Admin API, that is reported."""
    admin = HostsAdmin()
    admin.nodes = Node(node_id=3, host="Broker-3", port=9092), Node(node_id=9, host="broker-1", port=9092)
    async with finding(admin=admin) as finder:
        id_by_host, problem = await ids(finder)
        # its page says 1, which overrules a guess
        assert (id_by_host["broker-3:9404"], id_by_host["broker-1:9404"], problem) == ("3", None, None)
    admin.nodes = tuple(Node(node_id=node_id, host="broker-3", port=9092) for node_id in (3, 4))
    async with finding(admin=admin) as finder:
        assert "broker-3:9404" not in (await ids(finder))[0]
    admin.errors["brokers"] = DENIED
    async with finding(admin=admin) as finder:
        assert f"the Admin API cannot say whose hosts they are: {DENIED}; the node id of" in (
            (await ids(finder))[1] or ""
        )


@pytest.mark.parametrize("label", ["replica", "prometheus_replica"])
async def test_a_server_of_a_pair_without_its_label_is_named(label: str) -> None:
    """A node that two servers scraped is left out, with the label that tells them apart; named, it is read."""

    def change(answers: Answers) -> None:
        for series in series_of(answers, "vector", "broker-1:9404"):
            server = series["metric"].pop("prometheus_replica", "a")
            other = {**series, "metric": {**series["metric"], label: f"not {server}"}}
            series["metric"][label] = server
            answers["vector"]["result"].append(other)

    async with finding(change, nodes=ALL, replica_labels=()) as finder:
        id_by_host, problem = await ids(finder)
    assert id_by_host.keys() == {"broker-2:9404", "broker-3:9404"}
    assert f"broker-1:9404 has each series twice, with other values of {label}: " in (problem or "")
    assert "`replica_labels`" in (problem or "")
    assert "is unknown" not in (problem or "")
    async with finding(change, replica_labels=(label,)) as finder:
        assert "broker-1:9404" in (await ids(finder))[0]


async def test_two_ids_of_one_node_are_refused() -> None:
    """A node whose page has another id than the configuration is refused."""
    async with finding(nodes={**ALL, "broker-1:9404": 7}) as finder:
        sources = {source.label.rpartition("/")[2]: source for source in (await finder.find()).sources}
        with pytest.raises(SourceUnreadable, match="says that it is node 1, but this source should be node 7"):
            await sources["broker-1:9404"].open().read()


async def test_an_instance_that_is_not_there_is_named() -> None:
    """A name in `nodes` that no series has is likely misspelled."""
    async with finding(nodes={**ALL, "broker-4:9404": 4}) as finder:
        assert (await ids(finder))[1] == "`nodes` names broker-4:9404, of which there is no series"


async def test_two_clusters_are_refused() -> None:
    """Two jobs without a selector are refused, as are two nodes with one id where the selector names both."""
    async with finding(answers=recorded("all"), selector="", nodes=ALL) as finder:
        with pytest.raises(DiscoveryError, match="several clusters or jobs: broker-1:9404 has job='kafka'"):
            await finder.find()
    async with finding(answers=recorded("all"), selector='job=~"kafka|west"', nodes=ALL) as finder:
        with pytest.raises(
            DiscoveryError,
            match=r"broker-1:9404 and west-1:9404 are both node 1: are they of two clusters\? Name one of them in "
            "selector: they differ in job",
        ):
            await finder.find()


async def test_a_server_that_does_not_answer_is_a_problem_of_the_discovery() -> None:
    """The nodes found before stay, as with every discovery."""
    finder = PrometheusFinder(PrometheusConfig(url="http://127.0.0.1:1"))
    with pytest.raises(DiscoveryError, match=r"no connection to 127\.0\.0\.1:1"):
        await finder.find()
    await finder.close()


async def test_a_collection_reads_the_nodes() -> None:
    """A node of Prometheus is a source with an age: stale ones have a warning, and one without samples is down."""
    async with answering() as (prometheus, server):
        named = server.model_copy(update={"nodes": ALL, "name": "prom"})
        config = Config(sources=(PrometheusSourceConfig(prometheus=named),))
        roster, discovery = build_roster(config, lambda _: ScriptedAdmin())
        assert discovery is not None
        await discovery.refresh()
        collection = Collection(roster, LimitsRefresh(), 0)
        snapshot = await collection.snapshot(60)
        assert {source.name: source.up for source in snapshot.sources} == {
            f"prom/{instance}": True for instance in ("broker-1:9404", "broker-2:9404", "broker-3:9404")
        }
        ages = [snapshot.taken_at - source.read_at for source in snapshot.sources if source.read_at]
        assert len(ages) == 3
        assert all(0 <= age < 100 for age in ages)

        answers = prometheus.answers
        evaluated_at = answers["vector"]["result"][0]["value"][0]
        for series in series_of(answers, "beats", "broker-2:9404"):
            series["values"] = [[evaluated_at - 50, "1"], [evaluated_at - 40, "1"]]
        without(answers, "broker-3:9404")
        snapshot = await collection.snapshot(60)
        states = {source.name: (source.up, source.stale) for source in snapshot.sources}
        assert states == {
            "prom/broker-1:9404": (True, False),
            "prom/broker-2:9404": (True, True),
            "prom/broker-3:9404": (False, False),
        }
        codes = {finding.code for finding in diagnose(snapshot)}
        assert {"source_stale", "source_unreadable"} <= codes
        await collection.close()
        await discovery.close()
    assert len(snapshot.measured) > 0
