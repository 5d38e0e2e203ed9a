"""One of two real brokers hangs, or takes no more connections: what the other one knows is read all the same."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.configs import Configs
from tests.cluster.node import Node

from quotascope.clients import SecurityProtocol, open_quota_admin
from quotascope.clients.security import Connection
from quotascope.exporter.limits.admin import AdminLimits

pytestmark = pytest.mark.real


API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""Length, API 18 in version 0, correlation id 1, no client-id: what every listener answers before any login."""
LIMIT = "listener.name.sasl.max.connections"
Hanging = Callable[[Cluster, Node], AbstractContextManager[None]]


@contextmanager
def stopped(_: Cluster, node: Node) -> Iterator[None]:
    """The kernel goes on taking connections to a process that is stopped, which then never answers."""
    assert node.pid is not None
    os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node.pid, signal.SIGCONT)


@contextmanager
def full(cluster: Cluster, node: Node) -> Iterator[None]:
    """One connection is all that a listener takes, and it is taken: further ones are accepted by the kernel, but wait for ever."""
    with closing(Configs(cluster)) as configs, ExitStack() as taken:
        taken.enter_context(configs.with_broker(node.node_id, {LIMIT: "1"}))
        address = _known(cluster)[node.node_id].split(":")
        answered = True
        while answered:  # brokers follow a change of their settings a moment later
            one = socket.create_connection((address[0], int(address[1])), timeout=1)
            taken.enter_context(one)
            one.sendall(API_VERSIONS)
            try:
                answered = bool(one.recv(1))
            except TimeoutError:
                answered = False
        yield


def _connection(cluster: Cluster, *servers: str) -> Connection:
    """The SASL listeners' settings; that of the brokers themselves stays free of limits."""
    connection = cluster.connection(SecurityProtocol.SASL_PLAINTEXT)
    return replace(connection, bootstrap_servers=servers or connection.bootstrap_servers, timeout_seconds=10)


def _known(cluster: Cluster) -> dict[int, str]:
    """Where the brokers say they are, by node id."""
    with closing(open_quota_admin(_connection(cluster))) as admin:
        return {node.node_id: f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes}


@pytest.mark.parametrize("hanging", [stopped, full])
async def test_a_broker_that_hangs_hides_only_its_own_settings(pair_kafka: Cluster, hanging: Hanging) -> None:
    """Rules and the other broker's settings come with the first read, although the one that hangs is the first server to ask."""
    second = pair_kafka.brokers[1]
    known = _known(pair_kafka)
    servers = known[second.node_id], known[pair_kafka.brokers[0].node_id]
    source = AdminLimits(open_quota_admin(_connection(pair_kafka, *servers)))
    try:
        with hanging(pair_kafka, second):
            limits = await source.read()
        assert limits.active_controller == "1"
        assert set(limits.nodes) == {"1"}
        ((what, why),) = limits.missing.items()
        assert what == "settings of broker 2"
        assert why.startswith("DescribeConfigs: no answer within ")
        assert why.endswith(" s (unknown)")

        while set((await source.read()).nodes) != {"1", "2"}:  # noqa: ASYNC110 - until it has woken up
            await asyncio.sleep(0.2)
    finally:
        await source.close()
