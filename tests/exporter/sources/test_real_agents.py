"""The sources against the agents of a real broker, and one broker through every agent and set of rules at the same time."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.cluster.agents import CONFLUENT_RULES, JOLOKIA1_PASSWORD, JOLOKIA1_USER, Agents
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.exporter.recorded import numbers
from tests.integration.readings import between

from quotascope.clients.security import Tls
from quotascope.exporter.errors import SourceDenied, SourceError, SourceUnreachable, SourceUnreadable
from quotascope.exporter.mapping import Bean, BeanTable
from quotascope.exporter.sources.fetch import HttpTarget
from quotascope.exporter.sources.jolokia import JolokiaSource
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource
from quotascope.exporter.sources.source import Source

pytestmark = pytest.mark.real


@pytest.fixture
def secured(kafka: Cluster) -> HttpTarget:
    return HttpTarget(
        url=kafka.nodes[1].agents.jolokia1,
        username=JOLOKIA1_USER,
        password=JOLOKIA1_PASSWORD,
        tls=Tls(ca_file=kafka.certificates.ca).context(),
    )


async def table(source: Source) -> BeanTable:
    """What a source reads, twice: the second time nothing is parsed again."""
    try:
        first = await source.read()
        second = await source.read()
    finally:
        await source.close()
    shared = set(first.layout.columns) & set(second.layout.columns)
    again = {column: column for column in second.layout.columns}
    assert all(again[column] is column for column in first.layout.columns if column in shared)
    return second


async def failure(source: Source) -> SourceError:
    """The error of a source; it shows no secret."""
    try:
        with pytest.raises(SourceError) as caught:
            await source.read()
    finally:
        await source.close()
    assert JOLOKIA1_PASSWORD not in str(caught.value)
    return caught.value


def named(found: BeanTable, name: str, key: str = "name") -> dict[str, float]:
    return {attribute: value for (bean, attribute), value in numbers(found).items() if bean.get(key) == name}


async def test_all_agents_report_what_a_node_says_of_itself(kafka: Cluster, secured: HttpTarget) -> None:
    """Its id and start, that it leads, and how long its controller's events waited, by which a mutation quota is chosen."""
    agents = kafka.nodes[1].agents
    unchecked = replace(secured, tls=Tls(verify=False).context())  # for a certificate that cannot be checked
    sources = (
        JolokiaSource("new", HttpTarget(url=agents.jolokia)),
        JolokiaSource("without its last slash", HttpTarget(url=agents.jolokia.rstrip("/"))),
        JolokiaSource("old", secured),
        JolokiaSource("unchecked", unchecked),
        PrometheusTextSource("text", HttpTarget(url=agents.jmx_exporter)),
    )
    found = [await table(source) for source in sources]
    assert [each.node_id for each in found] == ["1"] * len(sources)
    starts = [named(each, "app-info", "type") for each in found]
    assert [*starts[0]] == ["StartTimeMs"]
    assert starts == starts[:1] * len(sources)
    for each in found:
        assert [*named(each, "ActiveControllerCount").values()] == [1.0]
    waited = named(found[0], "EventQueueTimeMs")
    assert waited.keys() == {"Mean", "Count"}
    assert waited["Count"] > 0


def plain(kafka: Cluster, **changes: Any) -> HttpTarget:
    return HttpTarget(**{"url": kafka.nodes[1].agents.jolokia, **changes})


@pytest.mark.parametrize(
    ("of", "expected", "text"),
    [
        # Jolokia answers 401
        (lambda _, secured: replace(secured, password="wrong"), SourceDenied, "basic_auth"),
        (lambda _, secured: replace(secured, password=""), SourceDenied, "basic_auth"),
        # the message says which setting makes the certificate trusted
        (lambda _, secured: replace(secured, tls=None), SourceDenied, "tls.ca_file"),
        # Java waits for a request for ever
        (
            lambda kafka, _: plain(kafka, url=plain(kafka).url.replace("http:", "https:"), timeout_seconds=0.3),
            SourceUnreachable,
            "does not speak https",
        ),
        # Java hangs up without a word
        (lambda _, secured: HttpTarget(url=secured.url.replace("https:", "http:")), SourceError, "https"),
        # Jolokia is not at the root
        (lambda kafka, _: plain(kafka, url=plain(kafka).url.replace("/jolokia", "/nothing")), SourceUnreadable, "/jolokia"),
        # another agent, and the broker's own port
        (lambda kafka, _: plain(kafka, url=kafka.nodes[1].agents.jmx_exporter), SourceUnreadable, ""),
        (lambda kafka, _: plain(kafka, url=f"http://{kafka.admin}/jolokia", timeout_seconds=0.5), (SourceUnreachable, SourceUnreadable), ""),
        (lambda kafka, _: plain(kafka, max_bytes=100), SourceUnreadable, "longer than"),
    ],
    ids=["wrong password", "no password", "unknown authority", "https to plain", "plain to https", "path", "other agent", "listener", "too long"]
)  # fmt: skip
async def test_what_goes_wrong_says_what_to_look_at(
    kafka: Cluster,
    secured: HttpTarget,
    of: Callable[[Cluster, HttpTarget], HttpTarget],
    expected: type[SourceError] | tuple[type[SourceError], ...],
    text: str,
) -> None:
    """And leaves nothing behind: a source that is asked properly works."""
    error = await failure(JolokiaSource("a", of(kafka, secured)))
    assert isinstance(error, expected)
    assert text in str(error)
    assert (await table(JolokiaSource("a", plain(kafka)))).node_id == "1"


async def test_jolokia_is_no_prometheus_text(kafka: Cluster) -> None:
    """A url under the wrong dialect is reported as such."""
    assert isinstance(await failure(PrometheusTextSource("a", plain(kafka))), SourceUnreadable)


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
