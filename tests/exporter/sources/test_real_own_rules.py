"""The rules of `quotascope rules jmx-exporter` in a real agent on a real broker."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Final

import pytest
from tests.cluster.agents import Agents
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.exporter.recorded import numbers
from tests.exporter.sources.settling import anything, settle
from tests.integration import agent, web
from tests.integration.eventually import eventually

from quotascope.exporter.names import known_as
from quotascope.exporter.sources.jolokia import JolokiaSource
from quotascope.exporter.sources.peer import HttpTarget
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource

pytestmark = pytest.mark.real

USER: Final = "svc:team a"
HOSTILE: Final = (
    "own, client-id=x",
    "my app/1=x,*?",
    'q"uo"te\\',
    '"',
    "line\nend",
    "x><>byte-rate: 1",
    "$1 {} <b>",
    "日本",
    "x" * 10_000 + "=",
    "*" * 100,
)
"""Client ids that JMX quotes, that look like a part of what the rules match, or that are long."""


@pytest.fixture(scope="module")
def agents(kafka: Cluster, traffic: Traffic) -> Iterator[Agents]:
    """Yield the agents of a node that has seen hostile client ids and a refused mutation."""
    topic = traffic.topic()
    with closing(Quotas(kafka.connection())) as quotas:
        quotas.set(
            ({"user": USER, "client-id": None}, {"producer_byte_rate": 50_000.0}),
            ({"user": "bob"}, {"controller_mutation_rate": 2.0}),
            ({"user": "carol"}, {"request_percentage": 50.0}),
        )
        eventually(lambda: _all_measured(kafka, traffic, topic), seconds=60)
        for _ in range(3):
            traffic.mutate("bob", "own-admin", 30, validate_only=True)
        yield kafka.nodes[1].agents
        quotas.clear()


def _all_measured(kafka: Cluster, traffic: Traffic, topic: str) -> None:
    """Let clients produce that the node has not seen yet; on a busy machine a connection takes its time."""
    for client_id in HOSTILE:
        key = ("Produce", USER, client_id, "byte-rate")
        if key not in agent.quota_numbers(kafka.nodes[1].agents.jolokia):
            traffic.produce(USER, client_id, topic, seconds=0.3)
    measured = agent.quota_numbers(kafka.nodes[1].agents.jolokia)
    assert set(HOSTILE) <= {client_id for _, _, client_id, _ in measured}


@pytest.fixture
async def sources(agents: Agents) -> AsyncIterator[tuple[JolokiaSource, PrometheusTextSource]]:
    jolokia = JolokiaSource("json", HttpTarget(url=agents.jolokia))
    own_source = PrometheusTextSource("own", HttpTarget(url=agents.own_rules))
    yield jolokia, own_source
    await jolokia.close()
    await own_source.close()


async def test_every_number_of_jolokia_is_there(sources: tuple[JolokiaSource, PrometheusTextSource]) -> None:
    """Our rules give Jolokia's columns for any client names, and each number lies between two readings of Jolokia."""
    jolokia, own_source = sources
    await settle(jolokia, own_source, anything, dict)
    assert own_source.dialect == "quotascope_rules"
    assert set(map(known_as, HOSTILE)) <= {bean.get("client-id") for bean, _ in numbers(await own_source.read())}


def test_promtool_has_no_complaint(agents: Agents) -> None:
    """The page passes promtool: names, types and units follow Prometheus's conventions."""
    page = web.ask(agents.own_rules).body
    assert b"kafka_quota_produce_bytes_per_second{" in page
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
