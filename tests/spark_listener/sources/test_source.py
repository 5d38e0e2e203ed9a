import math
from typing import Any

import pytest

from quotascope.spark_listener.sources.source import event_of, lateness

NOW = 1_000.0


@pytest.mark.parametrize(
    "event",
    [
        {"Event": "SparkListenerTaskEnd", "Task Info": {"Finish Time": 997_500}},
        {
            "Event": "SparkListenerStageCompleted",
            "Stage Info": {"Completion Time": 997_500},
        },
        {"Event": "SparkListenerJobStart", "Submission Time": 997_500},
        {"Event": "SparkListenerExecutorRemoved", "Timestamp": 997_500},
    ],
)
def test_lateness_is_since_the_event_was_posted(event: dict[str, Any]) -> None:
    """In seconds, by the time that each kind of event has in a place of its own."""
    assert lateness(event, NOW) == 2.5


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"Event": "SparkListenerTaskStart", "Task Info": {"Launch Time": 1}},
        {"Event": "SparkListenerTaskEnd"},
        {"Event": "SparkListenerTaskEnd", "Task Info": None},
        {"Event": "SparkListenerTaskEnd", "Task Info": {"Finish Time": 0}},
        {"Event": "SparkListenerTaskEnd", "Task Info": {"Finish Time": "x"}},
        {"Event": "SparkListenerJobEnd", "Completion Time": 1_000_500},
    ],
)
def test_lateness_is_0_where_it_is_not_known(event: dict[str, Any]) -> None:
    """An event that says nothing of its time, or comes from a clock that is ahead, is not late."""
    assert lateness(event, NOW) == 0.0


def test_numbers_that_are_none_are_read() -> None:
    """Spark writes NaN, which JSON does not know."""
    found = event_of('{"value": NaN}')
    assert found is not None
    assert math.isnan(found["value"])


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", "\x00", '{"a":' + "[" * 100_000])
def test_what_is_no_event_is_none(text: str) -> None:
    """It raises nothing."""
    assert event_of(text) is None
