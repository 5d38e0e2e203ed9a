"""Three agents in one node say the same."""

from math import isnan

import pytest
from tests.exporter.recorded import numbers, table

from quotascope.exporter.beans import Bean

MOVING = {"byte-rate", "request-time", "mutation-rate", "exempt-request-time"}
"""Rates decay between one agent's answer and the next's."""


def assert_same(
    left: dict[tuple[Bean, str], float], right: dict[tuple[Bean, str], float]
) -> None:
    """The numbers that both have are the same; rates within the 0.2 s between two answers."""
    for key in left.keys() & right.keys():
        if key[1] in MOVING:
            assert right[key] == pytest.approx(left[key], rel=0.03), key
        elif key[1] != "Count":
            same = right[key] == left[key] or (isnan(right[key]) and isnan(left[key]))
            assert same, key


@pytest.mark.parametrize("node", ["1", "100"])
def test_jolokia_one_and_two_agree(node: str) -> None:
    """The same beans, and the same numbers."""
    new = table(f"split/idle.{node}.jolokia2.json")
    old = table(f"split/idle.{node}.jolokia1.json")
    assert new.node_id == old.node_id == node
    quotas = {key for key in numbers(new) if key[0].domain == "kafka.server"}
    assert quotas == {key for key in numbers(old) if key[0].domain == "kafka.server"}
    assert_same(numbers(new), numbers(old))


@pytest.mark.parametrize("node", ["1", "100"])
def test_jmx_exporter_agrees_with_jolokia(node: str) -> None:
    """Every entity with every attribute; what is missing concerns the node."""
    jolokia = numbers(table(f"split/idle.{node}.jolokia2.json"))
    text = table(f"split/idle.{node}.jmx_exporter.txt")
    assert text.node_id == node
    assert numbers(text).keys() <= jolokia.keys()
    entities = {
        key
        for key in jolokia
        if key[0].get("user") or key[0].get("client-id") or key[0].get("id")
    }
    assert entities == numbers(text).keys()
    assert_same(jolokia, numbers(text))


def test_the_complete_rules_give_the_same_entities_under_load() -> None:
    """With all rules of kafka-2_0_0.yml the text also says who leads."""
    jolokia = numbers(table("combined/throttled.jolokia1.json"))
    text = numbers(table("combined/throttled.jmx_exporter.txt"))
    extra = text.keys() - jolokia.keys()
    assert [bean.get("name") for bean, _ in extra] == ["ActiveControllerCount"]
    entities = {key for key in jolokia if key[0].get("user") or key[0].get("client-id")}
    assert entities <= text.keys()
