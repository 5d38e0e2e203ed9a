"""The agents of a cluster of which only the address is known."""

from __future__ import annotations

import pytest
from tests.exporter.examples import ScriptedSource, table
from tests.exporter.limits.scripted import ScriptedAdmin

from quotascope.clients.quota_admin import Node
from quotascope.exporter.config import AUTO, FoundSourceConfig, KafkaDiscoveryConfig, SourceConfig
from quotascope.exporter.discovery import ports
from quotascope.exporter.discovery.kafka import KafkaFinder
from quotascope.exporter.discovery.ports import PortSearch
from quotascope.exporter.discovery.target import FoundNodes, NodeTarget


def agent(*, values: bool = True) -> ScriptedSource:
    source = ScriptedSource()
    source.table = table("1", alice=1.0) if values else table("1")
    return source


def search(hosts: dict[str, ScriptedSource], requested: list[str]) -> PortSearch:
    """Looks for these agents by URL; all other addresses refuse."""

    def build(config: SourceConfig) -> ScriptedSource:
        requested.append(config.url)
        refusing = ScriptedSource()
        refusing.fail(f"no connection to {config.label} (refused): is it up?")
        return hosts.get(config.url, refusing)

    return PortSearch(FoundSourceConfig(), build)


def node(number: int, host: str) -> NodeTarget:
    return NodeTarget(url=f"http://{host}", name=host, node_id=number)


async def urls(port_search: PortSearch, *nodes: NodeTarget) -> tuple[list[str], str]:
    result = await port_search.locate(FoundNodes(targets=nodes))
    return [target.url for target in result.targets], result.problem or ""


@pytest.mark.parametrize(
    ("answering", "chosen"),
    [
        ({":7071/metrics": True}, ":7071/metrics"),
        ({":8778/jolokia": True, ":9404/metrics": True}, ":9404/metrics"),
        ({":9404/metrics": False, ":11001/metrics": True}, ":11001/metrics"),
        ({":5556/metrics": False}, ":5556/metrics"),
    ],
)
async def test_likeliest_address_with_values_is_the_agents(answering: dict[str, bool], chosen: str) -> None:
    """The likeliest address with values is the agent's; one without values is taken only if there is no better one."""
    hosts = {f"http://b{end}": agent(values=full) for end, full in answering.items()}
    requested: list[str] = []
    port_search = search(hosts, requested)
    assert await urls(port_search, node(1, "b")) == ([f"http://b{chosen}"], "")
    assert sorted(requested) == sorted(f"http://b{end}" for end in ports.USUAL_ENDINGS)
    # with values it is known for good, and not asked for again while the node is there
    await urls(port_search, node(1, "b"))
    again = 1 if any(answering.values()) else 2
    assert len(requested) == again * len(ports.USUAL_ENDINGS)
    assert await urls(port_search) == ([], "")
    await urls(port_search, node(1, "b"))
    assert len(requested) == (again + 1) * len(ports.USUAL_ENDINGS)


async def test_each_port_says_why_nothing_is_found() -> None:
    """The error lists each port's reason for the first node, and counts the other nodes; found ones are read."""
    hosts = {"http://c:8778/jolokia": agent()}
    nodes = [node(1, "b"), node(2, "c"), node(3, "d")]
    urls_of_nodes, problem = await urls(search(hosts, []), *nodes)
    assert urls_of_nodes == ["http://c:8778/jolokia"]
    assert problem.startswith(
        "the agent of node 1 at b is not found (:9404/metrics no connection to b:9404 (refused); "
    )
    assert all(end in problem for end in ports.USUAL_ENDINGS)
    assert problem.endswith(", nor those of 1 more nodes: set discovery.kafka.url to the address of the agents")


async def test_silent_port_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that a firewall drops is given up, and every source is closed."""
    monkeypatch.setattr(ports, "_TIMEOUT_SECONDS", 0.01)
    silent = agent()
    silent.answers.clear()
    _, problem = await urls(search({"http://b:9404/metrics": silent}, []), node(1, "b"))
    assert ":9404/metrics no answer within 0.01 s" in problem
    assert (silent.canceled, silent.closed) == (1, 1)


async def test_cluster_leads_to_the_agent() -> None:
    """Agents are found at the hosts that the cluster reports, and have the cluster's ids."""
    admin = ScriptedAdmin()
    admin.brokers, admin.voters = [], (Node(node_id=100, host="b", port=9093),)
    url = f"http://b{ports.USUAL_ENDINGS[1]}"
    requested: list[int | None] = []

    def build(config: SourceConfig) -> ScriptedSource:
        requested.append(config.node_id)
        return agent(values=config.url == url)

    finder = KafkaFinder(KafkaDiscoveryConfig(url=AUTO), admin, search=PortSearch(FoundSourceConfig(), build))
    nodes = await finder.find()
    assert set(requested) == {100}
    assert ([(target.url, target.node_id) for target in nodes.targets], nodes.problem) == ([(url, 100)], None)
