"""The collector of prometheus_client, with which the exposition is compared."""

from benchmarks.collector import exposition
from tests.exporter.recorded import SPLIT_RULES, TAKEN_AT, split

from quotascope.exporter.exposition import Renderer


def test_both_write_the_same_text() -> None:
    """prometheus_client and the renderer write the same text, without which their times do not compare."""
    throttled = split("throttled", SPLIT_RULES)
    assert Renderer().render(throttled, TAKEN_AT + 1) == exposition(throttled, TAKEN_AT + 1)
