from __future__ import annotations

from array import array

import pytest
from tests.exporter.examples import health, limits
from tests.exporter.recorded import read, table

from quotascope.exporter.beans import BeanLayout, BeanTable
from quotascope.exporter.doctor import Verdict
from quotascope.exporter.doctor.agents import agents
from quotascope.exporter.snapshot import SourceRead
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType


def of(name: str, dialect: str) -> SourceRead:
    """A recorded answer."""
    recorded = table(name)
    return SourceRead(health=health("a", dialect=dialect), table=recorded)


def test_nothing_to_read_is_broken() -> None:
    """An exporter without sources shows nothing."""
    (result,) = agents([], None)
    assert result.verdict is Verdict.BROKEN
    assert "sources" in result.advice


def test_one_that_cannot_be_read_says_why() -> None:
    """The others are told as well."""
    down = SourceRead(health=health("b", up=False, error="no connection"), table=None)
    found = list(agents([read(table("combined/throttled.jolokia2.json")), down], None))
    assert [each.verdict for each in found] == [Verdict.FINE, Verdict.BROKEN]
    assert found[0].text.startswith("Node 1 speaks jolokia: ")
    assert found[1].text == "Cannot be read: no connection"


def test_a_policy_that_is_too_narrow() -> None:
    """Every node has the delay queue of each quota type; without them it takes longer to see the end of a throttle."""
    whole = table("combined/throttled.jolokia2.json")
    kept = [
        (column, value)
        for column, value in whole.items()
        if (column.bean.get("type"), column.attribute) != ("Fetch", "queue-size")
    ]
    narrow = BeanTable(
        node_id="1",
        layout=BeanLayout(tuple(column for column, _ in kept)),
        values=array("d", [value for _, value in kept]),
    )
    _, result = agents([SourceRead(health=health("a"), table=narrow)], None)
    assert result.verdict is Verdict.LOOK
    assert result.text == "Tells of no delay queue of fetch, which every node has."


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("dialects/jolokia2.json", "jolokia"),
        ("dialects/jmx_default.txt", "jmx_default"),
        ("dialects/strimzi.txt", "strimzi"),
        ("rules/throttled.txt", "quotascope_rules"),
    ],
)
def test_dialects_that_carry_everything(name: str, dialect: str) -> None:
    """Recorded on a real broker, none of them lacks anything."""
    assert [each.verdict for each in agents([of(name, dialect)], None)] == [
        Verdict.FINE
    ]


@pytest.mark.parametrize(
    ("mutations", "dialect", "verdict"),
    [
        (False, "confluent", Verdict.NOTE),
        (True, "confluent", Verdict.LOOK),
        (True, "kafka_2_0_0", Verdict.NOTE),
    ],
)
def test_dialects_that_do_not(mutations: bool, dialect: str, verdict: Verdict) -> None:  # noqa: FBT001 - a parameter
    """It is worth a look when a quota is configured that the dialect cannot tell of."""
    rule = QuotaRules({QuotaEntity("alice", None): 1.0})
    configured = {QuotaType.CONTROLLER_MUTATION: rule} if mutations else {}
    found = of(f"dialects/{dialect}.txt", dialect)
    _, result = agents([found], limits(rules=configured))
    assert result.verdict is verdict
    assert "delay queues" in result.text
