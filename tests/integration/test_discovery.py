"""Nodes of real clusters that the exporter finds by itself."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.commands import run
from tests.integration import web
from tests.integration.eventually import eventually, some
from tests.integration.exporter import Exporter, serving, settings_for, write_config
from tests.servers import Handler, served

from quotascope.clients import open_quota_admin
from quotascope.exporter.config import Config
from quotascope.exporter.discovery import ports
from quotascope.exporter.discovery.discovery import build_roster
from quotascope.exporter.limits.admin import connection_of

pytestmark = pytest.mark.real


@contextmanager
def gate(nodes: Mapping[int, Node]) -> Iterator[str]:
    """
    Yield one address for the agents of all nodes, as an ingress has: `/NODE_ID/…` is passed on.

    502 when the node does not answer.
    """

    class Passing(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the library's name
            _, node_id, path = self.path.split("/", 2)
            agent = nodes[int(node_id)].agents.jolokia
            try:
                answer = web.ask(f"{agent}{path.removeprefix('jolokia/')}", self.body())
            except AssertionError:
                self.send_error(502)
                return
            self.answer(answer.status, answer.body)

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Passing)) as server:
        yield f"127.0.0.1:{server.server_port}"


def template(address: str) -> str:
    """Return the URL of every node's agent behind a gate, to be filled in with its id."""
    return f"http://{address}/{{node_id}}/jolokia"


def found_by(cluster: Cluster, template: str) -> dict[str, Any]:
    """Return a configuration that names no node."""
    settings = settings_for([], cluster.admin, timeout_seconds=3)
    kafka = {"url": template, "refresh_interval_seconds": 0.2}
    return {**settings, "discovery": {"kafka": kafka}}


def sources(exporter: Exporter) -> Mapping[str, float]:
    """Return the sources, and whether they are up."""
    return {sample.labels["source"]: sample.value for sample in exporter.page().series("quotascope_source_up")}


@pytest.fixture(scope="module")
def split_gate(split_kafka: Cluster) -> Iterator[str]:
    """Yield one address for a broker and a controller."""
    with gate(split_kafka.nodes) as opened:
        yield opened


def test_broker_and_controller_are_found(split_kafka: Cluster, split_gate: str, tmp_path: Path) -> None:
    """
    DescribeCluster names the broker, DescribeQuorum the controller.

    Both are read, and the controller says that it leads.

    One look works without any source named, by flag and by file; the file's check connects to no one.
    """
    settings = found_by(split_kafka, template(split_gate))
    with serving(tmp_path / "serve", settings) as exporter:
        assert sources(exporter) == {f"{split_gate}/1/jolokia": 1.0, f"{split_gate}/100/jolokia": 1.0}
        page = exporter.page()
        assert page.value("quotascope_discovered_sources", discovery="kafka") == 2
        assert page.value("quotascope_discovery_errors_total", discovery="kafka") == 0
        assert page.labels("kafka_quota_controller_events_total")["broker"] == "100"
    process = run("status", "--bootstrap-servers", split_kafka.admin, "--discover", template(split_gate))
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"{split_gate}/100/jolokia" in process.stdout
    config = tmp_path / "quotascope.yaml"
    write_config(config, settings)
    assert "0 sources, and those that are found" in run("config", "check", config).stdout
    assert run("explain", "--config", config).returncode == 0


def test_broker_that_stops_stays_and_comes_back(pair_kafka: Cluster, tmp_path: Path) -> None:
    """A broker that is down is still registered: it is shown as down, not forgotten, and its source lives on."""
    second = pair_kafka.nodes[2]
    with gate(pair_kafka.nodes) as opened:
        settings = found_by(pair_kafka, template(opened))
        with serving(tmp_path / "serve", settings) as exporter:
            assert sources(exporter) == {f"{opened}/1/jolokia": 1, f"{opened}/2/jolokia": 1}
            second.stop()
            try:
                eventually(lambda: _fenced(pair_kafka, second))
                eventually(lambda: _equal(sources(exporter), {f"{opened}/1/jolokia": 1, f"{opened}/2/jolokia": 0}))
            finally:
                second.start()
                second.wait_until_ready()
            eventually(
                lambda: _equal(sources(exporter), {f"{opened}/1/jolokia": 1, f"{opened}/2/jolokia": 1}), seconds=60
            )
            assert not exporter.log("source is gone")
            assert len(exporter.log("source found")) == 2


def _fenced(cluster: Cluster, node: Node) -> None:
    with closing(open_quota_admin(cluster.connection())) as admin:
        registered = {broker.node_id for broker in admin.describe_brokers().nodes}
        up = {broker.node_id for broker in admin.describe_cluster().nodes}
    assert registered - up == {node.node_id}


def test_files_are_followed_while_running(kafka: Cluster, tmp_path: Path) -> None:
    """
    A file that is rewritten adds and removes nodes.

    One that breaks changes nothing, and is reported with its name.
    """
    agents = kafka.nodes[1].agents
    running_agent = f"127.0.0.1:{agents.jolokia2_port}"
    dead_agent = "127.0.0.1:1"
    targets = tmp_path / "targets.json"
    settings = settings_for([], kafka.admin)
    files = {"files": str(targets), "refresh_interval_seconds": 0.1}
    settings["discovery"] = {"file_sd": files}
    _write(targets, dead_agent)
    with serving(tmp_path / "serve", settings) as exporter:
        assert sources(exporter) == {dead_agent: 0.0}
        _write(targets, running_agent, dead_agent)
        eventually(lambda: _equal(sources(exporter), {running_agent: 1.0, dead_agent: 0.0}))
        targets.write_text('[{"targets": ["http://evil/"]}]')
        eventually(lambda: _reported(exporter))
        assert sources(exporter) == {running_agent: 1.0, dead_agent: 0.0}
        _write(targets, running_agent)
        eventually(lambda: _equal(sources(exporter), {running_agent: 1.0}))
        assert [line["source"] for line in exporter.log("source is gone")] == [dead_agent]


def _write(path: Path, *targets: str) -> None:
    written = path.with_suffix(".new")
    written.write_text(json.dumps([{"targets": targets, "labels": {"job": "kafka"}}]))
    written.replace(path)


def _equal(actual: Mapping[str, float], expected: Mapping[str, float]) -> None:
    assert actual == expected


def _reported(exporter: Exporter) -> None:
    line = some(exporter.log("not everything was found"))[-1]
    assert "targets.json: group 1: 'http://evil/'" in line["error"]


async def test_ports_that_agents_usually_have_are_tried(split_kafka: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two nodes on one host gets its own agent, and a program that is no agent is passed over."""
    ends = {id_: f":{node.agents.jolokia.rpartition(':')[2]}" for id_, node in split_kafka.nodes.items()}
    broker = split_kafka.admin.rpartition(":")[2]
    monkeypatch.setattr(ports, "USUAL_ENDINGS", (f":{broker}/metrics", *ends.values()))
    config = Config.model_validate(found_by(split_kafka, "auto"))
    roster, discovery = build_roster(config, lambda kafka: open_quota_admin(connection_of(kafka)))
    assert discovery is not None
    await discovery.refresh()
    (discovered,) = discovery.found_nodes.values()
    await discovery.close()
    await roster.close()
    assert len(ends) == 2
    assert {target.node_id: f":{target.url.rpartition(':')[2]}" for target in discovered.targets} == ends
    assert discovered.problem is None


def test_configured_and_found_twice_is_read_once(split_kafka: Cluster, split_gate: str, tmp_path: Path) -> None:
    """
    A node that is listed, in the cluster and in a file, each under another address, counts once.

    The others stand by and nothing is down.
    """
    broker = split_kafka.nodes[1]
    settings = found_by(split_kafka, template(split_gate))
    settings["sources"] = [{"name": "listed", "dialect": "jolokia", "url": broker.agents.jolokia}]
    targets = tmp_path / "targets.yml"
    targets.write_text(f"- targets: ['localhost:{broker.agents.jolokia2_port}']\n")
    settings["discovery"]["file_sd"] = {"files": str(targets)}
    with serving(tmp_path / "serve", settings) as exporter:
        duplicates = {f"{split_gate}/1/jolokia", f"localhost:{broker.agents.jolokia2_port}"}
        every = {"listed", f"{split_gate}/100/jolokia", *duplicates}
        for _ in range(2):
            assert sources(exporter) == dict.fromkeys(every, 1.0)
            page = exporter.page()
            standing = list(page.series("quotascope_source_stand_by", broker="1"))
            assert {sample.labels["source"] for sample in standing} == duplicates
