"""The page of an agent with our own rules; ``tests/exporter/rules`` reads back what the rules write for any name."""

from math import isnan

import pytest
from tests.exporter.recorded import CAPTURES, numbers, table

from quotascope.exporter.sources.prometheus_text import TextReader

MOVING = {"byte-rate", "request-time", "mutation-rate", "exempt-request-time", "Mean", "Count", "queue-size"} | {
    "broker-connection-accept-rate", "connection-accept-rate", "tokens"
}  # fmt: skip
"""What changed between the two answers."""


def test_it_has_all_that_jolokia_has() -> None:
    """The same beans and attributes, and in Kafka's units the same numbers."""
    jolokia = numbers(table("rules/throttled.jolokia2.json"))
    page = table("rules/throttled.txt")
    assert page.node_id == "1"
    own = numbers(page)
    assert own.keys() == jolokia.keys()
    settled = {key for key in own if key[1] not in MOVING}
    throttles = {key for key in settled if own[key] > 0 and "throttle" in key[1]}
    assert len(throttles) >= 3
    for key in settled:
        same = isnan(own[key]) and isnan(jolokia[key])
        assert same or own[key] == pytest.approx(jolokia[key], rel=1e-12), key


def test_it_is_detected_and_stays_the_same_layout() -> None:
    """Numbers of a second page find their places."""
    page = (CAPTURES / "rules" / "throttled.txt").read_bytes()
    reader = TextReader()
    first = reader.read(page)
    assert reader.dialect == "quotascope_rules"
    again = reader.read(page)
    assert again.layout is first.layout
    assert list(map(str, again.values)) == list(map(str, first.values))


def test_our_own_exporter_is_no_agent() -> None:
    """Its page has the same families, but nothing in it is a broker's own word."""
    golden = CAPTURES.parent / "exposition" / "golden" / "split_throttled.txt"
    reader = TextReader()
    reader.read(golden.read_bytes())
    assert reader.dialect == "prometheus"
