"""Mutation quotas where the controller is a process of its own: a broker, and three controllers of which one leads."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.page import Page
from tests.integration.readings import agree, readings_of

pytestmark = pytest.mark.real

TOKENS = "kafka_quota_controller_mutation_tokens"
RATE = "kafka_quota_controller_mutations_per_second"
USED = "kafka_quota_controller_mutation_burst_used_ratio"
ERRORS = "kafka_quota_throttling_errors_total"


@pytest.fixture(scope="module")
def everywhere(failover_kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """An exporter that reads all four nodes."""
    nodes = list(failover_kafka.nodes.values())
    settings = settings_for(nodes, failover_kafka.admin, timeout_seconds=2)
    for source in settings["sources"]:
        source["timeout_seconds"] = 3  # of a node that is paused
    folder = tmp_path_factory.mktemp("controllers") / "serve"
    with serving(folder, settings) as exporter:
        yield exporter


@pytest.fixture
def limited(failover_kafka: Cluster) -> Iterator[Traffic]:
    """Clients of a cluster where bob may make two mutations per second."""
    with closing(Quotas(failover_kafka.connection())) as quotas:
        quotas.set(({"user": "bob"}, {"controller_mutation_rate": 2.0}))
        yield Traffic(failover_kafka)
        quotas.clear()


def leader(cluster: Cluster, *, among: list[Node] | None = None) -> Node:
    """The controller that says that it leads; AssertionError when there is not just one."""
    leading = [node for node in among or cluster.controllers if agent.leads(node.agents.jolokia)]
    assert len(leading) == 1
    return leading[0]


def overdraw(traffic: Traffic, client_id: str) -> None:
    """Create topics as bob until one is refused for more than two seconds: the bucket is in debt then, and stays so."""

    def refused() -> None:
        answer = traffic.mutate("bob", client_id, 30)
        assert (answer.error, answer.throttle_ms > 2000) == (89, True)

    eventually(refused, seconds=60)


def test_mutation_throttle_is_found_behind_the_request_throttle(
    failover_kafka: Cluster, limited: Traffic, everywhere: Exporter
) -> None:
    """
    A refused CreateTopics waits in the broker's group Request, and its reason is on the controller.

    The exporter shows the controller's tokens below zero, more than the whole burst used, and the broker's throttle of that
    client with the cause `controller_mutation`; the client is under no request quota at all.
    """
    overdraw(limited, "split")
    active = leader(failover_kafka)
    eventually(lambda: _explained(everywhere.page(), str(active.node_id)), seconds=10)
    readings = readings_of("controller_mutation", "bob", "")
    agree(active.agents.jolokia, everywhere.page, readings)


def _explained(page: Page, leads: str) -> None:
    debt = page.value(TOKENS, user="bob", broker=leads)
    assert debt < 0
    assert page.value(USED, user="bob") == pytest.approx(1 - debt / 22)
    assert page.value(USED, user="bob") > 1
    throttled = {"quota_type": "request", "client_id": "split", "broker": "1"}
    assert page.value("kafka_quota_throttle_time_seconds", **throttled) > 1
    cause = page.labels("kafka_quota_throttle_cause_info", **throttled)
    assert cause["cause"] == "controller_mutation"
    muted = {"quota_type": "request", "broker": "1"}
    assert page.value("kafka_quota_delay_queue_size", **muted) >= 1
    never = {"quota_type": "controller_mutation", "user": "bob"}
    assert page.get("kafka_quota_throttle_time_seconds", **never) is None


def test_refusals_are_counted_on_both_nodes(failover_kafka: Cluster, limited: Traffic, everywhere: Exporter) -> None:
    """Each refusal (error 89) counts once on the controller that decided and once on the broker that answered."""
    overdraw(limited, "counted")
    nodes = ("1", str(leader(failover_kafka).node_id))
    before = everywhere.page()
    assert limited.mutate("bob", "counted", 1).error == 89
    after = everywhere.page()
    for node in nodes:
        labels = {"broker": node, "request": "CreateTopics"}
        assert after.value(ERRORS, **labels) == before.value(ERRORS, **labels) + 1


def test_only_the_active_controller_is_believed(
    failover_kafka: Cluster, limited: Traffic, everywhere: Exporter
) -> None:
    """
    After a failover the former leader, which lives on, keeps its mutation beans; they are left out and counted as stale.

    The leader's process is stopped until another one leads, and goes on then. Every scrape is answered meanwhile.
    """
    overdraw(limited, "before")
    former = leader(failover_kafka)
    others = [node for node in failover_kafka.controllers if node is not former]
    with former.paused():
        successor = eventually(lambda: leader(failover_kafka, among=others))
        page = everywhere.page()
        assert page.value("quotascope_source_up", source=f"node-{former.node_id}") == 0
        assert page.value("quotascope_source_up", source=f"node-{successor.node_id}") == 1
        assert not list(page.series(RATE, broker=str(former.node_id)))
    eventually(lambda: leader(failover_kafka))
    overdraw(limited, "after")
    active = leader(failover_kafka)
    assert active is not former
    kept = agent.quota_numbers(former.agents.jolokia)
    assert ("ControllerMutation", "bob", "", "tokens") in kept
    eventually(lambda: _believed(everywhere.page(), active, former), seconds=10)


def _believed(page: Page, active: Node, former: Node) -> None:
    assert page.value(TOKENS, user="bob") < 0
    for family in (TOKENS, RATE, USED):
        assert page.labels(family, user="bob")["broker"] == str(active.node_id)
    stale = {"quota_type": "controller_mutation", "broker": str(former.node_id)}
    assert page.value("kafka_quota_stale_entities", **stale) >= 1
