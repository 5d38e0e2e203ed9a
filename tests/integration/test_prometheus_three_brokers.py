"""Three real brokers in the Prometheus servers of an HA pair, which write to one server, as to Thanos or Mimir."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic, in_background
from tests.integration import web
from tests.integration.agreement import assert_agree
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.prometheus import Prometheus

pytestmark = [pytest.mark.real, pytest.mark.slow]

SERVERS: Final = ("a", "b")
EVERY_S: Final = 10
_NODES: Final = {"broker-1:9404": 1}
NO_NAMES: Final = """\
rules:
  - {pattern: "kafka.server<type=(.+), user=(.+), client-id=(.+)><>([a-z-]+)", name: kafka_server_$1_$4, type: GAUGE}
  - {pattern: "kafka.server<type=(.+), (user|client-id)=(.+)><>([a-z-]+)", name: kafka_server_$1_$4, type: GAUGE}
"""
"""Rules that leave the names of clients out; jmx_exporter adds those of beans where series would be the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Brokers under load, the servers that scrape them, and the one that both write to."""

    kafka: Cluster
    servers: Mapping[str, Prometheus]
    both: Prometheus

    def source(self, server: str, job: str = "agents", **options: object) -> dict[str, Any]:
        """Return the source of a server."""
        prometheus = self.both if server == "both" else self.servers[server]
        return {"prometheus": {"url": f"http://{prometheus.address}", "selector": f'{{job="{job}"}}', **options}}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Yield three brokers, of which a client is throttled, in both servers."""
    folder = tmp_path_factory.mktemp("three")
    with ExitStack() as stack:
        kafka = stack.enter_context(running(Layout.TRIO, folder / "kafka"))
        quotas = stack.enter_context(closing(Quotas(kafka.connection())))
        quotas.set(({"user": "alice"}, {"producer_byte_rate": 10_000.0}), ({"user": None}, {"producer_byte_rate": 1e9}))
        kafka.nodes[1].use_rules(NO_NAMES)
        topic = Traffic(kafka).topic(partitions=3)
        stack.enter_context(
            in_background(
                lambda traffic: traffic.produce("alice", "app", topic, inf, pause=0.01),
                lambda traffic: traffic.produce("bob", "app", topic, inf, pause=0.1),
                cluster=kafka,
            )
        )
        for node in kafka.brokers:  # the first answer of an agent takes seconds, longer than a scrape may take
            for url in (node.agents.own_rules, node.agents.other_rules):
                assert web.ask(url).status == 200
        both = stack.enter_context(_started(folder / "both", {"global": {}}, "--web.enable-remote-write-receiver"))
        servers = {name: stack.enter_context(_started(folder / name, _config(kafka, name, both))) for name in SERVERS}
        eventually(lambda: _assert_written(both, servers), seconds=90)
        yield Scene(kafka=kafka, servers=servers, both=both)


@contextmanager
def _started(folder: Path, config: Mapping[str, Any], *flags: str) -> Iterator[Prometheus]:
    prometheus = Prometheus(folder, config, *flags)
    try:
        eventually(lambda: prometheus.query("vector(1)"))
        yield prometheus
    finally:
        prometheus.child.end()


def _config(kafka: Cluster, replica: str, both: Prometheus) -> dict[str, Any]:
    def target(url: str, node_id: int) -> dict[str, Any]:
        address = url.removeprefix("http://").removesuffix("/metrics")
        return {"targets": [address], "labels": {"instance": f"broker-{node_id}:9404"}}

    other_rules = target(kafka.brokers[0].agents.other_rules, 1)
    agents = [target(node.agents.own_rules, node.node_id) for node in kafka.brokers]
    without_names = [
        {"job_name": "object-names", "static_configs": [other_rules]},
        {
            "job_name": "no-names",
            "static_configs": [other_rules],
            "metric_relabel_configs": [{"action": "labeldrop", "regex": "_objectname"}],
        },
    ]
    return {
        "global": {
            "scrape_interval": f"{EVERY_S}s",
            "scrape_timeout": f"{EVERY_S}s",
            "external_labels": {"cluster": "eu", "replica": replica},
        },
        "remote_write": [{"url": f"http://{both.address}/api/v1/write"}],
        "scrape_configs": [
            {"job_name": "agents", "static_configs": agents},
            *(without_names if replica == "b" else ()),
        ],
    }


def _assert_written(both: Prometheus, servers: Mapping[str, Prometheus]) -> None:
    seen = {(labels["replica"], labels["instance"]) for labels, _ in both.query('up{job="agents"} == 1')}
    assert len(seen) == len(SERVERS) * 3, (seen, [server.targets() for server in servers.values()])


@contextmanager
def _reading(scene: Scene, folder: Path, source: Mapping[str, Any]) -> Iterator[Exporter]:
    settings = settings_for(scene.kafka.brokers, scene.kafka.admin)
    with serving(folder, {**settings, "sources": [source]}) as exporter:
        yield exporter


@pytest.fixture(scope="module")
def of_agents(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """Yield an exporter that reads the agents themselves."""
    settings = settings_for(scene.kafka.brokers, scene.kafka.admin)
    sources = [{"url": node.agents.own_rules, "node_id": node.node_id} for node in scene.kafka.brokers]
    with serving(tmp_path_factory.mktemp("agents") / "serve", {**settings, "sources": sources}) as exporter:
        yield exporter


@pytest.mark.parametrize("server", ["a", "both"])
def test_three_brokers_have_the_numbers_of_their_agents(
    scene: Scene, of_agents: Exporter, server: str, tmp_path: Path
) -> None:
    """No number is wrong, of one server as of a pair in one: what both scraped is one."""
    with _reading(scene, tmp_path / "serve", scene.source(server)) as exporter:
        assert_agree(of_agents, exporter, nodes=3)


def test_of_a_pair_the_server_that_scrapes_is_read(scene: Scene, of_agents: Exporter, tmp_path: Path) -> None:
    """While one server stands still, its last scrapes are still there, and those of the other are newer."""
    with _reading(scene, tmp_path / "serve", scene.source("both")) as exporter:
        scene.servers["a"].child.signal(signal.SIGSTOP)
        try:
            eventually(lambda: _assert_behind(scene.both), seconds=60)
            assert_agree(of_agents, exporter, nodes=3)
        finally:
            scene.servers["a"].child.signal(signal.SIGCONT)


def _assert_behind(both: Prometheus) -> None:
    """Assert that the samples of one server are some scrapes older than those of the other."""
    times = {
        labels["replica"]: value
        for labels, value in both.query('max by (replica) (timestamp(up{job="agents",instance="broker-1:9404"}))')
    }
    assert times["b"] - times["a"] > 3 * EVERY_S, times


def test_a_pair_whose_label_is_not_named_is_refused(scene: Scene, tmp_path: Path) -> None:
    """A node that a pair of servers scraped is refused by name, unless the pair's label is configured."""
    source = scene.source("both", replica_labels=["prometheus_replica"])
    with _reading(scene, tmp_path / "serve", source) as exporter:
        eventually(lambda: _assert_refused(exporter, "broker-1:9404"), seconds=60)


def test_a_broker_that_restarts(scene: Scene, of_agents: Exporter, tmp_path: Path) -> None:
    """The source of a restarting broker is down at once while the others are read, and has numbers again afterwards."""
    node = scene.kafka.nodes[3]
    with _reading(scene, tmp_path / "serve", scene.source("a")) as exporter:

        def states() -> dict[str, float]:
            samples = exporter.page().series("quotascope_source_up")
            return {sample.labels["source"].rpartition("/")[2]: sample.value for sample in samples}

        def down() -> None:
            assert states() == {"broker-1:9404": 1, "broker-2:9404": 1, "broker-3:9404": 0}

        node.stop()
        try:
            eventually(down, seconds=30)
        finally:
            node.start()
            node.wait_until_ready()
        assert_agree(of_agents, exporter, nodes=3)


def test_rules_that_drop_the_names_of_clients_are_refused(scene: Scene, tmp_path: Path) -> None:
    """Numbers of an agent whose rules drop client names are not shown as a client's, and the reason is reported."""
    with _reading(scene, tmp_path / "serve", scene.source("b", job="no-names", nodes=_NODES)) as exporter:
        eventually(lambda: _assert_refused(exporter, "broker-1:9404"), seconds=60)


def test_names_are_those_of_the_beans_where_rules_drop_them(scene: Scene, tmp_path: Path) -> None:
    """The label that jmx_exporter adds has the names."""
    with _reading(scene, tmp_path / "serve", scene.source("b", job="object-names", nodes=_NODES)) as exporter:

        def named() -> None:
            samples = exporter.page().series("kafka_quota_produce_bytes_per_second")
            assert {sample.labels["user"] for sample in samples} == {"alice", "bob"}

        eventually(named, seconds=60)


def _assert_refused(exporter: Exporter, text: str) -> None:
    page = exporter.page()
    assert not list(page.series("kafka_quota_produce_bytes_per_second")), page
    said = [str(line.get("error", line)) for line in exporter.log()]
    assert any(text in line for line in said), said[-5:]
