"""The sources against the agents of a real broker, and one broker through all agents and rules at the same time."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.cluster import provision
from tests.cluster.agents import CONFLUENT_RULES, JOLOKIA1_PASSWORD, JOLOKIA1_USER, RULES, Agents
from tests.cluster.cluster import Cluster
from tests.cluster.ports import free_port
from tests.cluster.provision import JMX_EXPORTERS
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.exporter.recorded import numbers
from tests.exporter.sources.settling import ATTEMPTS, anything, load, settle

from quotascope.clients.security import Tls
from quotascope.exporter.errors import SourceDenied, SourceError, SourceUnreachable, SourceUnreadable
from quotascope.exporter.mapping import Bean, BeanTable
from quotascope.exporter.rules import jmx_exporter_rules
from quotascope.exporter.sources.jolokia import JolokiaSource
from quotascope.exporter.sources.peer import HttpTarget
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
    """Return the table of a source, read twice: the second time nothing is parsed again."""
    try:
        first_table = await source.read()
        second = await source.read()
    finally:
        await source.close()
    second_columns = {column: column for column in second.layout.columns}
    assert all(second_columns[column] is column for column in first_table.layout.columns if column in second_columns)
    return second


async def failure(source: Source) -> SourceError:
    """Return the error of a source; assert that it shows no secret."""
    try:
        with pytest.raises(SourceError) as caught:
            await source.read()
    finally:
        await source.close()
    assert JOLOKIA1_PASSWORD not in str(caught.value)
    return caught.value


def named(bean_table: BeanTable, name: str, key: str = "name") -> dict[str, float]:
    return {attribute: value for (bean, attribute), value in numbers(bean_table).items() if bean.get(key) == name}


async def test_all_agents_report_what_a_node_says_of_itself(kafka: Cluster, secured: HttpTarget) -> None:
    """The node reports its id, its start and its lead, and how long its controller's events waited."""
    agents = kafka.nodes[1].agents
    unchecked = replace(secured, tls=Tls(verify=False).context())  # for a certificate that cannot be checked
    sources = (
        JolokiaSource("new", HttpTarget(url=agents.jolokia)),
        JolokiaSource("without its last slash", HttpTarget(url=agents.jolokia.rstrip("/"))),
        JolokiaSource("old", secured),
        JolokiaSource("unchecked", unchecked),
        PrometheusTextSource("text", HttpTarget(url=agents.jmx_exporter)),
    )
    tables = [await table(source) for source in sources]
    assert [bean_table.node_id for bean_table in tables] == ["1"] * len(sources)
    starts = [named(bean_table, "app-info", "type") for bean_table in tables]
    assert [*starts[0]] == ["StartTimeMs"]
    assert starts == starts[:1] * len(sources)
    for bean_table in tables:
        assert [*named(bean_table, "ActiveControllerCount").values()] == [1.0]
    waited = named(tables[0], "EventQueueTimeMs")
    assert waited.keys() == {"Mean", "Count"}
    assert waited["Count"] > 0


def plain(kafka: Cluster, **changes: Any) -> HttpTarget:
    return HttpTarget(**{"url": kafka.nodes[1].agents.jolokia, **changes})


@pytest.mark.parametrize(
    ("target_of", "expected", "text"),
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
        (
            lambda kafka, _: plain(kafka, url=plain(kafka).url.replace("/jolokia", "/nothing")),
            SourceUnreadable,
            "/jolokia",
        ),
        # another agent, and the broker's own port
        (lambda kafka, _: plain(kafka, url=kafka.nodes[1].agents.jmx_exporter), SourceUnreadable, ""),
        (
            lambda kafka, _: plain(kafka, url=f"http://{kafka.admin}/jolokia", timeout_seconds=0.5),
            (SourceUnreachable, SourceUnreadable),
            "",
        ),
        (lambda kafka, _: plain(kafka, max_bytes=100), SourceUnreadable, "longer than"),
    ],
    ids=[
        "wrong password",
        "no password",
        "unknown authority",
        "https to plain",
        "plain to https",
        "path",
        "other agent",
        "listener",
        "too long",
    ]
)  # fmt: skip
async def test_what_goes_wrong_says_what_to_look_at(
    kafka: Cluster,
    secured: HttpTarget,
    target_of: Callable[[Cluster, HttpTarget], HttpTarget],
    expected: type[SourceError] | tuple[type[SourceError], ...],
    text: str,
) -> None:
    """A failure leaves nothing behind: a source that is asked properly works."""
    error = await failure(JolokiaSource("a", target_of(kafka, secured)))
    assert isinstance(error, expected)
    assert text in str(error)
    assert (await table(JolokiaSource("a", plain(kafka)))).node_id == "1"


async def test_jolokia_is_no_prometheus_text(kafka: Cluster) -> None:
    """A url under the wrong dialect is reported as such."""
    assert isinstance(await failure(PrometheusTextSource("a", plain(kafka))), SourceUnreadable)


USER: Final = "carol"
CLIENT: Final = "dialects, client-id=x"
NO_RULES: Final = "lowercaseOutputLabelNames: true\n"
GENERIC: Final = """\
lowercaseOutputName: true
rules: [{pattern: "kafka.server<type=(.+)><>([a-z-]+)", name: kafka_server_$1_$2}]
"""
"""What the generic rules of jmx_exporter's KRaft example do to quota beans."""


@pytest.fixture
def agents(kafka: Cluster, quotas: Quotas, traffic: Traffic) -> Iterator[Agents]:
    """
    Yield the agents of a broker that has just throttled a client.

    Confluent's rules are in force again after the test.
    """
    limits = {"producer_byte_rate": 20_000.0, "controller_mutation_rate": 5.0}
    quotas.set(({"user": USER}, limits))
    quotas.set(({"user": USER, "client-id": CLIENT}, {"producer_byte_rate": 10_000.0}))
    traffic.produce(USER, CLIENT, traffic.topic(), seconds=1)
    traffic.mutate(USER, CLIENT, 1, validate_only=True)
    yield kafka.nodes[1].agents
    kafka.nodes[1].use_rules(CONFLUENT_RULES.read_text())


def text(url: str) -> PrometheusTextSource:
    return PrometheusTextSource("text", HttpTarget(url=url, node_id="1"))


def not_mutations(bean: Bean) -> bool:
    """Return whether Confluent's rules show the bean."""
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
    """Each dialect is detected and gives Jolokia's numbers, for a client-id that greedy rules cut wrongly, too."""
    jolokia = JolokiaSource("json", HttpTarget(url=agents.jolokia))
    other_source = text(getattr(agents, place))
    try:
        await settle(jolokia, other_source, concerns)
        assert other_source.dialect == dialect
        clients = {bean.get("client-id") for bean, _ in numbers(await other_source.read())}
        assert CLIENT in clients
    finally:
        await jolokia.close()
        await other_source.close()


OF_VERSIONS: Final = {
    "kafka_2_0_0": RULES.read_text(),
    "quotascope_rules": jmx_exporter_rules(),
    "jmx_default": NO_RULES,
}
"""Rules that an older jmx_exporter runs with, by the dialect that its page is in."""


@pytest.fixture(scope="module")
def older(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Return the pages of older versions of jmx_exporter on the same broker, by version and dialect."""
    folder, lines, urls = tmp_path_factory.mktemp("older"), [], {}
    for dialect, rules in OF_VERSIONS.items():
        file = folder / f"{dialect}.yml"
        file.write_text(rules)
        for version in JMX_EXPORTERS:
            address = f"127.0.0.1:{free_port()}"
            lines.append(f"{provision.jmx_exporter(version)}={address}:{file}")
            urls[version, dialect] = f"http://{address}/metrics"
    agents = folder / "agents"
    agents.write_text("\n".join(lines))
    kafka.nodes[1].attach(agents)
    return urls


@pytest.mark.parametrize("version", JMX_EXPORTERS)
@pytest.mark.parametrize("dialect", OF_VERSIONS)
async def test_older_agents_report_the_same(
    agents: Agents, older: dict[tuple[str, str], str], version: str, dialect: str
) -> None:
    """Older versions of jmx_exporter give the same entities and numbers as Jolokia."""
    jolokia, other_source = JolokiaSource("json", HttpTarget(url=agents.jolokia)), text(older[version, dialect])
    try:
        await settle(jolokia, other_source, anything)
        assert other_source.dialect == dialect
    finally:
        await jolokia.close()
        await other_source.close()


async def _said_of_names(source: PrometheusTextSource) -> str:
    """
    Return the message about names that rules made, with nothing else to read or beside it.

    The agent may answer once more by the rules of before.
    """
    for _ in range(ATTEMPTS):
        try:
            remark = (await source.read()).remark
        except SourceUnreadable as error:
            return str(error)
        if remark is not None:
            return remark
        await asyncio.sleep(0.1)
    pytest.fail("nothing is said")


async def test_an_agent_with_other_rules_is_followed(kafka: Cluster, agents: Agents) -> None:
    """An agent's rules may change to none, to bad ones and back, without a restart of the exporter."""
    source = text(agents.other_rules)
    jolokia = JolokiaSource("json", HttpTarget(url=agents.jolokia))
    try:
        await settle(jolokia, source, not_mutations)
        kafka.nodes[1].use_rules(NO_RULES)
        await settle(jolokia, source, anything)
        assert source.dialect == "jmx_default"
        kafka.nodes[1].use_rules(GENERIC)
        assert "cannot be recovered" in await _said_of_names(source)
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
    """Idle handlers and the wait of produce requests are those of Jolokia, as ratio or counter."""
    if rules:
        kafka.nodes[1].use_rules(rules)
    url = {"": agents.strimzi, None: agents.own_rules}.get(rules, agents.other_rules)
    jolokia, other_source = JolokiaSource("json", HttpTarget(url=agents.jolokia)), text(url)
    try:
        await settle(jolokia, other_source, anything, load)
        assert len(load(numbers(await other_source.read()))) == count
        assert len(load(numbers(await jolokia.read()))) == 9
    finally:
        await jolokia.close()
        await other_source.close()


@pytest.mark.parametrize("place", ["strimzi", "own_rules"])
async def test_the_node_reports_its_id(kafka: Cluster, place: str) -> None:
    """In the dialects that show a node's id, it need not be configured."""
    url = getattr(kafka.nodes[1].agents, place)
    source = PrometheusTextSource("text", HttpTarget(url=url))
    try:
        assert (await source.read()).node_id == "1"
    finally:
        await source.close()
