"""Lines that the pipeline reads, but that hold what a replay cannot use."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.pipeline.log_lines import captured, line
from tools.replay_check import check, log_of, rules_of_text

RULES = rules_of_text("quotas: [{user: alice, producer_byte_rate: 9, consumer_byte_rate: 9}]")
SANE = line()

Case = tuple[int, tuple[Any, ...], Any]
"""API key, where to change such a request, and to what."""


def _captured(api_key: int) -> Any:
    """The JSON of a real request that has both its parts."""
    mark = f'"requestApiKey":{api_key},'.encode()
    found = (json.loads(text[text.index(b"{") : text.rindex(b"}") + 1]) for text in captured() if mark in text)
    return next(each for each in found if each["request"] and each["response"])


def _line(entry: Any) -> bytes:
    text = json.dumps(entry, separators=(",", ":"))
    return f"[2026-11-21 09:02:00,655] DEBUG Completed request:{text} (kafka.request.logger)".encode()


def _set(entry: Any, path: Sequence[Any], value: Any) -> None:
    *parents, last = path
    for name in parents:
        entry = entry[name]
    entry[last] = value


TOPIC = ("request", "topics", 0)


@pytest.mark.parametrize(
    "case",
    [
        (0, ("request", "topicData", 0, "partitionData", 0, "index"), []),
        (0, ("request", "topicData", 0, "partitionData"), [{}]),
        (0, ("request", "topicData", 0, "name"), ""),
        (0, ("response", "responses"), 5),
        (0, ("response",), "refused"),
        (1, (*TOPIC, "partitions", 0, "fetchOffset"), None),
        (1, (*TOPIC, "partitions"), [{"partition": 0}]),
        (1, ("request", "minBytes"), "1"),
        (1, ("request", "sessionId"), {}),
        (1, ("request", "forgottenTopicsData"), None),
        (3, ("response", "topics"), None),
        (3, ("response",), "none"),
        (49, ("request",), {"entries": []}),
        (49, ("request", "entries", 0, "entity"), None),
        (49, ("request", "entries", 0, "ops", 0, "value"), "NaN"),
        (49, ("response", "entries"), [5]),
    ],
    ids=repr,
)
def test_a_line_of_another_shape_is_left_out(case: Case) -> None:
    """It is counted as unreadable, with its row, and the rest is replayed."""
    api_key, path, value = case
    entry = _captured(api_key)
    whole = log_of([_line(entry), SANE], "log")
    assert (len(whole.requests), whole.unreadable) == (2, 0)
    _set(entry, path, value)
    log = log_of([_line(entry), SANE], "log")
    assert check(log, RULES).unreadable == 1
    assert [request.line for request in log.requests] == [2]
    assert not log.messages


def test_a_fetch_of_an_old_version_has_no_session_and_no_limit() -> None:
    """Before version 3 it names no `maxBytes`, before version 7 no session."""
    entry = _captured(1)
    for name in ("maxBytes", "sessionId", "sessionEpoch", "forgottenTopicsData"):
        del entry["request"][name]
    entry["response"] |= {"throttleTimeMs": 20, "responses": []}
    log = log_of([_line(entry), SANE], "log")
    assert log.unreadable == 0
    assert check(log, RULES).comparisons
