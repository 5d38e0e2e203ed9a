"""Mutation quotas where the controller is a process of its own: a broker, and three controllers of which one leads."""

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.commands import run
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
    """Yield an exporter that reads all four nodes."""
    nodes = list(failover_kafka.nodes.values())
    settings = settings_for(nodes, failover_kafka.admin, timeout_seconds=2)
    for source in settings["sources"]:
        source["timeout_seconds"] = 3  # of a node that is paused
    folder = tmp_path_factory.mktemp("controllers") / "serve"
    with serving(folder, settings) as exporter:
        yield exporter


@pytest.fixture
def limited(failover_kafka: Cluster) -> Iterator[Traffic]:
    """Clients of a cluster where bob may make one mutation per second."""
    with closing(Quotas(failover_kafka.connection())) as quotas:
        quotas.set(({"user": "bob"}, {"controller_mutation_rate": 1.0}))
        yield Traffic(failover_kafka)
        quotas.clear()


def leader(cluster: Cluster, *, among: list[Node] | None = None) -> Node:
    """Return the controller that says that it leads; AssertionError when there is not just one."""
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

    The exporter shows the controller's tokens below zero, more than the whole burst used, and the broker's throttle of
    that client with the cause `controller_mutation`; the client is under no request quota at all. On each surface the
    quota of controller mutations comes first, with that throttle time and its rule.
    """
    overdraw(limited, "split")
    active = leader(failover_kafka)
    eventually(lambda: _explained(everywhere.page(), str(active.node_id)), seconds=10)
    eventually(lambda: _first_everywhere(everywhere, active.node_id), seconds=10)
    readings = readings_of("controller_mutation", "bob", "")
    agree(active.agents.jolokia, everywhere.page, readings)


def _explained(page: Page, leads: str) -> None:
    debt = page.value(TOKENS, user="bob", broker=leads)
    assert debt < 0
    assert page.value(USED, user="bob") == pytest.approx(1 - debt / 11)
    assert page.value(USED, user="bob") > 1
    throttled = {"quota_type": "request", "client_id": "split", "broker": "1"}
    assert page.value("kafka_quota_throttle_time_seconds", **throttled) > 1
    cause = page.labels("kafka_quota_throttle_cause_info", **throttled)
    assert (cause["cause"], cause["by_broker"], cause["by_user"], cause["by_client_id"]) == (
        "controller_mutation", leads, "bob", ""
    )  # fmt: skip
    muted = {"quota_type": "request", "broker": "1"}
    assert page.value("kafka_quota_delay_queue_size", **muted) >= 1
    decides = {"quota_type": "controller_mutation", "user": "bob", "broker": leads}
    longest = max(sample.value for sample in page.series("kafka_quota_throttle_time_seconds", quota_type="request"))
    assert page.value("kafka_quota_throttle_time_seconds", **decides) == longest
    assert page.labels("kafka_quota_throttle_cause_info", **decides)["cause"] == "own"


def _first_everywhere(exporter: Exporter, leads: int) -> None:
    """Assert that the JSON API, the pages and the commands show the mutation throttle of bob first."""
    answer = json.loads(exporter.get("/api/v1/entities").text)["entities"]
    mutation, *others = answer
    assert (mutation["quota_type"], mutation["user"], mutation["broker"]) == ("controller_mutation", "bob", str(leads))
    assert mutation["rule"]["name"] == "3 user bob"
    assert mutation["throttle_time_seconds"] > 1
    request = next(row for row in others if row["quota_type"] == "request" and row["client_id"] == "split")
    assert request["decided_by"]["rule"]["name"] == "3 user bob"
    (rule,) = (
        candidate
        for candidate in json.loads(exporter.get("/api/v1/rules").text)["rules"]
        if candidate["rule"] == "3 user bob"
    )
    assert rule["throttled"] == 1
    episodes = json.loads(exporter.get("/api/v1/episodes?type=controller_mutation").text)["episodes"]
    assert any(episode["user"] == "bob" and episode["ongoing"] for episode in episodes)
    assert "controller mutations: 3 user bob" in exporter.get("/").text
    for command in (["top", "--sort", "delay"], ["status"]):
        output = run(*command, "--exporter", exporter.url).stdout
        row = next(line for line in output.splitlines() if "user bob" in line and ("mut/s" in line or " tok" in line))
        assert "3 user bob" in row


def test_refusals_are_counted_on_both_nodes(failover_kafka: Cluster, limited: Traffic, everywhere: Exporter) -> None:
    """Each refusal (error 89) counts once on the controller that decided and once on the broker that answered."""
    overdraw(limited, "counted")
    nodes = ("1", str(leader(failover_kafka).node_id))
    page_before = everywhere.page()
    assert limited.mutate("bob", "counted", 1).error == 89
    page_after = everywhere.page()
    for node in nodes:
        labels = {"broker": node, "request": "CreateTopics"}
        assert page_after.value(ERRORS, **labels) == page_before.value(ERRORS, **labels) + 1


def test_only_the_active_controller_is_believed(
    failover_kafka: Cluster, limited: Traffic, everywhere: Exporter
) -> None:
    """
    A former leader, which lives on after a failover, keeps its mutation beans; they are left out and counted as stale.

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
    numbers = agent.quota_numbers(former.agents.jolokia)
    assert ("ControllerMutation", "bob", "", "tokens") in numbers
    eventually(lambda: _believed(everywhere.page(), active, former), seconds=10)


def _believed(page: Page, active: Node, former: Node) -> None:
    assert page.value(TOKENS, user="bob") < 0
    for family in (TOKENS, RATE, USED):
        assert page.labels(family, user="bob")["broker"] == str(active.node_id)
    stale = {"quota_type": "controller_mutation", "broker": str(former.node_id)}
    assert page.value("kafka_quota_stale_entities", **stale) >= 1
