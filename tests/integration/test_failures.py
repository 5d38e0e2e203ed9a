"""Exporters and commands report why there is nothing to show, a broker that dies, and brokers that hang."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.configs import Configs
from tests.cluster.node import Node
from tests.cluster.ports import free_port
from tests.cluster.quotas import Quotas
from tests.commands import run
from tests.integration.eventually import again_and_again, eventually
from tests.integration.exporter import Exporter, serving, settings_for

from quotascope.clients import SecurityProtocol, open_quota_admin
from quotascope.clients.security import Connection
from quotascope.exporter.limits.admin import AdminLimits

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a broker that one of these tests kills, and that no client uses."""
    with running(Layout.COMBINED, tmp_path_factory.mktemp("own")) as cluster:
        yield cluster


def said_at_start(exporter: Exporter, text: str) -> None:
    """Assert that the log has the text before it says that the exporter is ready."""

    def said() -> None:
        messages = [line["msg"] for line in exporter.log()]
        assert "ready" in messages
        assert any(text in message for message in messages[: messages.index("ready")])

    eventually(said)


def said_on_demand(exporter: Exporter, text: str, *, code: int) -> None:
    """Assert that the landing page and `status` have the text, and that `status` ends with a code."""
    assert text in exporter.get("/").text
    process = run("status", "--config", exporter.config)
    assert text in " ".join(process.stdout.split())
    assert process.returncode == code


def test_no_rule_is_configured_or_no_client_has_met_it(own_kafka: Cluster, tmp_path: Path) -> None:
    """A cluster without any quota is measured for no client; a rule that no client has met yet is shown as such."""
    settings = settings_for(own_kafka.brokers, own_kafka.admin)
    with closing(Quotas(own_kafka.connection())) as quotas:
        for number, text in enumerate(("No client quota is configured", "No traffic yet")):
            with serving(tmp_path / f"serve-{number}", settings) as exporter:
                page = exporter.page()
                assert page.value("quotascope_entities", state="exported") == 0
                rules = list(page.series("kafka_quota_rule_produce_limit_bytes_per_second"))
                assert [(sample.labels["rule_user"], sample.value) for sample in rules] == [("alice", 1024)] * number
                said_at_start(exporter, text)
                said_on_demand(exporter, text, code=0)
            quotas.set(({"user": "alice"}, {"producer_byte_rate": 1024.0}))
        quotas.clear()


def test_agent_is_unreachable(own_kafka: Cluster, tmp_path: Path) -> None:
    """An agent that does not answer is named with its reason; the rules are shown all the same."""
    settings = settings_for(own_kafka.brokers, own_kafka.admin)
    settings["sources"][0]["url"] = f"http://127.0.0.1:{free_port()}/jolokia"
    with serving(tmp_path / "serve", settings) as exporter:
        page = exporter.page()
        assert page.value("quotascope_source_up", source="node-1") == 0
        assert page.value("kafka_quota_rules", quota_key="producer_byte_rate") >= 0
        (line,) = exporter.log("source is down")
        assert "Connection refused" in line["error"]
        said_on_demand(exporter, "Connection refused", code=1)


def test_kafka_is_unreachable(own_kafka: Cluster, tmp_path: Path) -> None:
    """An Admin API that does not answer is named with its reason; usage is shown all the same."""
    settings = settings_for(own_kafka.brokers, f"127.0.0.1:{free_port()}")
    with serving(tmp_path / "serve", settings) as exporter:
        page = exporter.page()
        assert page.value("quotascope_source_up", source="node-1") == 1
        assert not list(page.series("kafka_quota_rules"))
        (line,) = exporter.log("limits cannot be read")
        assert "connection refused" in line["error"]
        said_on_demand(exporter, "The Admin API cannot be reached", code=1)


def test_broker_dies_and_comes_back_while_it_is_scraped(own_kafka: Cluster, tmp_path: Path) -> None:
    """Every scrape is answered with 200; the source goes down and up again, with one log line for each."""
    node = own_kafka.brokers[0]
    settings = settings_for(own_kafka.brokers, own_kafka.admin, timeout_seconds=2)
    with serving(tmp_path / "serve", settings) as exporter, scraped(exporter) as ups:
        eventually(lambda: _last(ups, 1))
        node.kill()
        eventually(lambda: _last(ups, 0))
        eventually(lambda: _limits_fail(exporter))
        node.start()
        node.wait_until_ready()
        eventually(lambda: _last(ups, 1))
        eventually(lambda: _limits_are_back(exporter))
        states = [line for line in exporter.log() if line.get("source") == "node-1"]
        assert [line["msg"] for line in states] == ["source is up", "source is down", "source is up again"]
        assert len(exporter.log("limits cannot be read")) == 1
    assert exporter.child.end() == 0


def scraped(exporter: Exporter) -> AbstractContextManager[list[float]]:
    """
    Return the states of the source that one scrape after another sees.

    Each must get a complete answer and HTTP 200.
    """
    return again_and_again(lambda: exporter.page().value("quotascope_source_up", source="node-1"), 0.02)


def _last(ups: list[float], value: float) -> None:
    assert ups
    assert ups[-1] == value


def _limits_fail(exporter: Exporter) -> None:
    assert exporter.page().value("quotascope_limits_refresh_errors_total") > 0


def _limits_are_back(exporter: Exporter) -> None:
    assert len(exporter.log("limits can be read")) == 2


API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""Length, API 18 in version 0, correlation id 1, no client-id: what every listener answers before any login."""
LIMIT = "listener.name.sasl.max.connections"
Hanging = Callable[[Cluster, Node], AbstractContextManager[None]]


def stopped(_: Cluster, node: Node) -> AbstractContextManager[None]:
    """Stop a process within the block: the kernel still takes connections to it, which then never get an answer."""
    return node.paused()


@contextmanager
def full(cluster: Cluster, node: Node) -> Iterator[None]:
    """
    Take the one connection that a listener allows within the block.

    Further ones are accepted by the kernel, but wait for ever.
    """
    with closing(Configs(cluster)) as configs, ExitStack() as connections:
        connections.enter_context(configs.with_broker(node.node_id, {LIMIT: "1"}))
        address = _known(cluster)[node.node_id].split(":")
        answered = True
        while answered:  # brokers follow a change of their settings a moment later
            connection = socket.create_connection((address[0], int(address[1])), timeout=1)
            connections.enter_context(connection)
            connection.sendall(API_VERSIONS)
            try:
                answered = bool(connection.recv(1))
            except TimeoutError:
                answered = False
        yield


def _connection(cluster: Cluster, *servers: str) -> Connection:
    """Return the SASL listeners' settings; the brokers' own listener stays free of limits."""
    connection = cluster.connection(SecurityProtocol.SASL_PLAINTEXT)
    return replace(connection, bootstrap_servers=servers or connection.bootstrap_servers, timeout_seconds=10)


def _known(cluster: Cluster) -> dict[int, str]:
    """Return the addresses that the brokers report, by node id."""
    with closing(open_quota_admin(_connection(cluster))) as admin:
        return {node.node_id: f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes}


async def test_a_broker_that_was_restarted_gives_its_settings_with_the_next_read(pair_kafka: Cluster) -> None:
    """The library forgets a broker that is down when it looks, and looks again after five minutes only."""
    admin: Any = open_quota_admin(_connection(pair_kafka))
    source = AdminLimits(admin)
    try:
        await source.read()
        manager = admin._admin._manager
        manager.close(2)
        del manager.cluster._brokers[2]
        assert not (await source.read()).missing
    finally:
        await source.close()


@pytest.mark.parametrize("hanging", [stopped, full])
async def test_a_broker_that_hangs_hides_only_its_own_settings(pair_kafka: Cluster, hanging: Hanging) -> None:
    """
    Rules and the other broker's settings come with the first read.

    The broker that hangs is the first server to ask.
    """
    second = pair_kafka.brokers[1]
    addresses = _known(pair_kafka)
    servers = addresses[second.node_id], addresses[pair_kafka.brokers[0].node_id]
    source = AdminLimits(open_quota_admin(_connection(pair_kafka, *servers)))
    try:
        with hanging(pair_kafka, second):
            limits = await source.read()
        assert limits.active_controller == "1"
        assert set(limits.nodes) == {"1"}
        assert set(limits.missing) == {"settings of broker 2", "the release of broker 2"}
        why = limits.missing["settings of broker 2"]
        assert why.startswith("DescribeConfigs: no answer within ")
        assert why.endswith(" s (unknown)")

        while set((await source.read()).nodes) != {"1", "2"}:  # noqa: ASYNC110 - until it has woken up
            await asyncio.sleep(0.2)
    finally:
        await source.close()
