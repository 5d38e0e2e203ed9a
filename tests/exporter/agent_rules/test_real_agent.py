"""The report of `quotascope rules check`, against the page that a real agent makes of a real broker."""

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest
from tests.cluster.agents import CONFLUENT_RULES, RULES
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.exporter.agent_rules.checked import CLIENT, KRAFT, TWO_RULES, TYPE, checked
from tests.exporter.recorded import numbers

from quotascope.exporter.agent_rules import Checked
from quotascope.exporter.agent_rules.beans import is_quota_fact
from quotascope.exporter.agent_rules.checking import named
from quotascope.exporter.coverage import EntityKind
from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import Attribute, Bean, BeanColumn, attribute_of
from quotascope.exporter.sources.jolokia import JolokiaSource
from quotascope.exporter.sources.peer import HttpTarget
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource
from quotascope.metrics.kafka.jmx import quote_tag_value
from quotascope.metrics.kafka.sanitizer import sanitize

pytestmark = pytest.mark.real

UNUSUAL: Final = "a, client-id=b"
ATTEMPTS: Final = 60
LOWERCASE: Final = "lowercaseOutputName: true\nlowercaseOutputLabelNames: true\nrules: [{pattern: '.*'}]"
FACTOR: Final = (
    "rules: [{pattern: 'kafka.server<type=(.+), user=(.+)><>throttle-time', "
    "name: kafka_server_quota_throttle_time_seconds, valueFactor: 0.001, labels: {type: $1, user: $2}}]"
)
NO_LABELS: Final = (
    "rules: [{pattern: 'kafka.server<type=(.+), user=(.+)><>([a-z-]+)', name: kafka_server_$1_$3, type: GAUGE}]"
)
STRIPPED: Final = (
    "rules: [{pattern: 'kafka.server<type=(\\w+), client-id=\"?(.+?)\"?><>([a-z-]+)', "
    "name: kafka_quota_$1_$3, type: COUNTER, labels: {client: $2}}]"
)
SETS: Final = {
    "own-additions": TWO_RULES,
    "two rules": TWO_RULES,
    "client": CLIENT,
    "type": TYPE,
    "kraft": KRAFT,
    "2_0_0": RULES.read_text(),
    "confluent": CONFLUENT_RULES.read_text(),
    "lowercase": LOWERCASE,
    "factor": FACTOR,
    "no labels": NO_LABELS,
    "without quotes": STRIPPED,
}


@pytest.fixture
def node(kafka: Cluster, quotas: Quotas, traffic: Traffic) -> Iterator[Cluster]:
    """Yield a node with entities of each kind, one of them with a name that Java quotes."""
    limits = {"producer_byte_rate": 20_000.0, "controller_mutation_rate": 5.0}
    quotas.set(({"user": "carol"}, limits))
    quotas.set(({"user": "carol", "client-id": UNUSUAL}, {"producer_byte_rate": 10_000.0}))
    quotas.set(
        ({"client-id": "bulk"}, {"producer_byte_rate": 1e6}), ({"client-id": UNUSUAL}, {"producer_byte_rate": 1e6})
    )
    topic = traffic.topic()
    for user, client_id in (("carol", "app"), ("carol", UNUSUAL), ("alice", "bulk"), ("alice", UNUSUAL)):
        traffic.produce(user, client_id, topic, seconds=0.5)
    yield kafka
    kafka.nodes[1].use_rules(CONFLUENT_RULES.read_text())


def predicted(report: Checked, bean: Bean, attribute: Attribute) -> bool | None:
    """
    Return whether the bean is shown, as the check says.

    None where that depends on how many there are, by a label that the agent adds, or on which characters are unusual.
    """
    user, client_id = bean.get("user") or "", bean.get("client-id") or ""
    kind = EntityKind.of(user, client_id) if "user" in attribute.free else None
    fact = next(fact for fact in report.facts if (fact.name, fact.kind) == (named(attribute), kind))
    if "one series of several beans" in fact.reason:
        return None
    quoted = sanitize(user) != user or quote_tag_value(client_id) != client_id
    if quoted and not fact.unusual and client_id != UNUSUAL:
        return None  # of clients of other tests: some unusual names are shown
    return not report.refused and fact.is_shown and (fact.unusual or client_id != UNUSUAL)


@pytest.mark.parametrize("name", SETS)
async def test_the_page_shows_what_the_check_says(node: Cluster, name: str) -> None:
    """Each bean that Jolokia has is on the page, or missing, as predicted; or the page is refused, as predicted."""
    rules = SETS[name]
    report = checked(rules)
    if name == "own-additions":
        rules = rules.replace("rules:\n", f"rules:\n{report.additions}")
        report = checked(rules)
        assert report.complete
    node.nodes[1].use_rules(rules)
    agents = node.nodes[1].agents
    jolokia = JolokiaSource("json", HttpTarget(url=agents.jolokia))
    text = PrometheusTextSource("text", HttpTarget(url=agents.other_rules, node_id="1"))
    wrong: object = None
    try:
        for _ in range(ATTEMPTS):
            beans = numbers(await jolokia.read())
            try:
                page_columns = numbers(await text.read()).keys()
            except SourceUnreadable as error:
                wrong = str(error)
                if report.refused:
                    return
                await asyncio.sleep(0.2)
                continue
            # the check leaves out a client without names: brokers look up no rule for it
            facts = {
                (bean, attribute): meant
                for bean, attribute in beans
                if (meant := attribute_of(BeanColumn(bean, attribute)))
                and is_quota_fact(meant)
                and ("user" not in meant.free or bean.get("user") or bean.get("client-id"))
            }
            kinds = {EntityKind.of(bean.get("user"), bean.get("client-id")) for bean, _ in facts}
            assert kinds >= {*EntityKind}
            expected = {key: predicted(report, key[0], meant) for key, meant in facts.items()}
            wrong = {key for key, is_shown in expected.items() if is_shown not in {None, key in page_columns}}
            if report.refused:
                # by an odd name of another test the rule makes a line that can be read, and with it the page
                alone = any(is_shown is None and key in page_columns for key, is_shown in expected.items())
                if alone and not any("user" in facts[key].free for key in wrong):
                    return
            elif not wrong:
                return
            await asyncio.sleep(0.2)
    finally:
        await jolokia.close()
        await text.close()
    raise AssertionError(wrong)
