"""One of two real brokers hangs: what the other one knows is read all the same."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node

from quotascope.clients import open_quota_admin
from quotascope.clients.security import Connection
from quotascope.exporter.limits.admin import AdminLimits

pytestmark = pytest.mark.real


@contextmanager
def hanging(node: Node) -> Iterator[None]:
    """The kernel goes on taking connections to a process that is stopped, which then never answers."""
    assert node.pid is not None
    os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node.pid, signal.SIGCONT)


async def test_a_broker_that_hangs_hides_only_its_own_settings(
    pair_kafka: Cluster,
) -> None:
    """Rules and the other broker's settings come with the first read, although the one that hangs is the first server to ask."""
    second = pair_kafka.brokers[1]
    with closing(open_quota_admin(pair_kafka.connection())) as admin:
        known = {
            node.node_id: f"{node.host}:{node.port}"
            for node in admin.describe_cluster().nodes
        }
    servers = known[second.node_id], known[pair_kafka.brokers[0].node_id]
    connection = Connection(bootstrap_servers=servers, timeout_seconds=10)
    source = AdminLimits(open_quota_admin(connection))
    try:
        with hanging(second):
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
