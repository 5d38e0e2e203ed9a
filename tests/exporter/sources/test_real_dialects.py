"""One real broker through every agent and set of rules, at the same time."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from tests.cluster.agents import CONFLUENT_RULES, Agents
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.exporter.recorded import numbers
from tests.integration.readings import between

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import Bean
from quotascope.exporter.sources.fetch import HttpTarget
from quotascope.exporter.sources.jolokia import JolokiaSource
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource
from quotascope.exporter.sources.source import Source

pytestmark = pytest.mark.real

Numbers = dict[tuple[Bean, str], float]
USER: Final = "carol"
CLIENT: Final = "dialects, client-id=x"
NO_RULES: Final = "lowercaseOutputLabelNames: true\n"
GENERIC: Final = """\
lowercaseOutputName: true
rules: [{pattern: "kafka.server<type=(.+)><>([a-z-]+)", name: kafka_server_$1_$2}]
"""
"""What the generic rules of jmx_exporter's KRaft example do to quota beans."""
ATTEMPTS: Final = 100
TYPES: Final = {"Produce", "Fetch", "Request", "ControllerMutation"}


@pytest.fixture
def agents(kafka: Cluster, quotas: Quotas, traffic: Traffic) -> Iterator[Agents]:
    """The agents of a broker that has just throttled a client; Confluent's rules are in force again after the test."""
    limits = {"producer_byte_rate": 20_000.0, "controller_mutation_rate": 5.0}
    quotas.set(({"user": USER}, limits))
    quotas.set(({"user": USER, "client-id": CLIENT}, {"producer_byte_rate": 10_000.0}))
    traffic.produce(USER, CLIENT, traffic.topic(), seconds=1)
    traffic.mutate(USER, CLIENT, 1, validate_only=True)
    yield kafka.nodes[1].agents
    kafka.nodes[1].use_rules(CONFLUENT_RULES.read_text())


def text(url: str) -> PrometheusTextSource:
    """A source that has to find out the dialect."""
    return PrometheusTextSource("text", HttpTarget(url=url, node_id="1"))


def entities(found: Numbers) -> Numbers:
    """What concerns entities of client quotas."""
    return {key: value for key, value in found.items() if key[0].get("type") in TYPES and len(key[0].properties) > 1}


def load(found: Numbers) -> Numbers:
    """What the agents' own requests move only upwards, or not at all: idle handlers, and percentiles of produce requests."""
    return {
        (bean, attribute): value
        for (bean, attribute), value in found.items()
        if bean.get("type") == "KafkaRequestHandlerPool"
        or (bean.get("name"), bean.get("request")) == ("RequestQueueTimeMs", "Produce")
    }


def or_zero(value: float | None) -> float | None:
    """NaN, which equals nothing, as the zero that it means."""
    return 0.0 if value is not None and value != value else value  # noqa: PLR0124


async def settle(
    jolokia: Source, other: Source, concerns: Callable[[Bean], bool], of: Callable[[Numbers], Numbers] = entities
) -> None:
    """Hold each number of a source against one of Jolokia before and one after it, until each has fitted once."""
    remaining: set[tuple[Bean, str]] | None = None
    for _ in range(ATTEMPTS):
        before, seen, after = [of(numbers(await source.read())) for source in (jolokia, other, jolokia)]
        expected = {key for key in before if concerns(key[0])}
        if of is load:  # test_dialects.py has what each dialect lacks
            expected &= seen.keys()
        if before.keys() == after.keys():
            assert seen.keys() == expected
            assert expected
            remaining = {
                key
                for key in (expected if remaining is None else remaining)
                if not between(*map(or_zero, (seen[key], before[key], after[key])))
            }
            if not remaining:
                return
        await asyncio.sleep(0.1)
    raise AssertionError(remaining)


def anything(_: Bean) -> bool:
    """Every entity."""
    return True


def not_mutations(bean: Bean) -> bool:
    """What Confluent's rules are about."""
    return bean.get("type") != "ControllerMutation"


@pytest.mark.parametrize(
    ("place", "dialect", "concerns"),
    [
        ("jmx_exporter", "kafka_2_0_0", anything),
        ("other_rules", "confluent", not_mutations),
        ("strimzi", "strimzi", anything),
    ],
)
async def test_the_same_entities_and_numbers_as_jolokia(
    agents: Agents, place: str, dialect: str, concerns: Callable[[Bean], bool]
) -> None:
    """In each dialect, which is found out, with a client-id that greedy rules cut in the wrong place."""
    jolokia = JolokiaSource("json", HttpTarget(url=agents.jolokia))
    other = text(getattr(agents, place))
    try:
        await settle(jolokia, other, concerns)
        assert other.dialect == dialect
        clients = {bean.get("client-id") for bean, _ in numbers(await other.read())}
        assert CLIENT in clients
    finally:
        await jolokia.close()
        await other.close()


async def test_an_agent_with_other_rules_is_followed(kafka: Cluster, agents: Agents) -> None:
    """From Confluent's rules to none, to rules that lose who it was, and back: without a restart of anyone."""
    source = text(agents.other_rules)
    jolokia = JolokiaSource("json", HttpTarget(url=agents.jolokia))
    try:
        await settle(jolokia, source, not_mutations)
        kafka.nodes[1].use_rules(NO_RULES)
        await settle(jolokia, source, anything)
        assert source.dialect == "jmx_default"
        kafka.nodes[1].use_rules(GENERIC)
        with pytest.raises(SourceUnreadable, match="cannot be recovered"):
            await source.read()
        kafka.nodes[1].use_rules(CONFLUENT_RULES.read_text())
        await settle(jolokia, source, not_mutations)
        assert source.dialect == "confluent"
    finally:
        await source.close()
        await jolokia.close()


@pytest.mark.parametrize(
    ("rules", "count"), [("", 6), (NO_RULES, 9), (None, 9)], ids=["strimzi", "default", "own"]
)  # fmt: skip
async def test_the_load_of_a_node_is_that_of_jolokia(
    kafka: Cluster, agents: Agents, rules: str | None, count: int
) -> None:
    """Idle handlers as a ratio where there is one, as a counter everywhere, and how long produce requests waited."""
    if rules:
        kafka.nodes[1].use_rules(rules)
    url = {"": agents.strimzi, None: agents.own_rules}.get(rules, agents.other_rules)
    jolokia, other = JolokiaSource("json", HttpTarget(url=agents.jolokia)), text(url)
    try:
        await settle(jolokia, other, anything, load)
        assert len(load(numbers(await other.read()))) == count
        assert len(load(numbers(await jolokia.read()))) == 9
    finally:
        await jolokia.close()
        await other.close()


@pytest.mark.parametrize("place", ["strimzi", "own_rules"])
async def test_the_node_reports_its_id(kafka: Cluster, place: str) -> None:
    """In the dialects that know it, no one has to configure it."""
    url = getattr(kafka.nodes[1].agents, place)
    source = PrometheusTextSource("text", HttpTarget(url=url))
    try:
        assert (await source.read()).node_id == "1"
    finally:
        await source.close()
