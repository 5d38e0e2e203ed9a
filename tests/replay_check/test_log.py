"""What a request log is taken apart into before it is replayed, and lines that hold what a replay cannot use."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.builders.requests import line
from tests.pipeline.log_lines import captured
from tools.replay_check import check, log_of, read_log, read_rules, rules_of_text
from tools.replay_check.broker import charges_of
from tools.replay_check.fetches import Appended, Available, FetchSizes, Sessions, Wanted, decided
from tools.replay_check.log import EmptyLog
from tools.replay_check.rules import changes_in, timed

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.pipeline.errors import PipelineError
from quotascope.quotas import InvalidQuotas

from .conftest import log_path

FAR = 1e18
ALICE = (QuotaType.PRODUCE, QuotaEntity("alice"))
HUNDRED = "quotas: [{user: alice, producer_byte_rate: 100}]"


def _produce(offset: int, size: int, **changed: Any) -> bytes:
    asked = {"name": "t", "partitionData": [{"index": 0, "recordsSizeInBytes": size}]}
    answered = {"name": "t", "partitionResponses": [{"index": 0, "errorCode": 0, "baseOffset": offset}]}
    return line(
        header={"requestApiKey": 0, "requestApiVersion": 10},
        request={"transactionalId": None, "acks": 1, "topicData": [asked]},
        response={"responses": [answered], "throttleTimeMs": 0},
        **changed,
    )


def _fetch(offset: int, throttle_ms: int, size: int | None = None, *, request: Any = None, **changed: Any) -> bytes:
    wanted = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 10_000}
    asked = {"maxBytes": 10_000, "minBytes": 1, "isolationLevel": 0, "sessionId": 0, "sessionEpoch": -1}
    answered = {"topic": "t", "partitions": [{"partitionIndex": 0, "recordsSizeInBytes": size}]}
    answer = {"throttleTimeMs": throttle_ms, "errorCode": 0, "sessionId": 0}
    return line(
        header={"requestApiKey": 1, "requestApiVersion": 11},
        request=asked | {"topics": [{"topic": "t", "partitions": [wanted]}]} if request is None else request,
        response=answer | {"responses": [] if size is None else [answered]},
        **changed,
    )


OVERHEAD = 4 + 4 + 6 + 4 + 3 + 4 + 38 + 4
"""Bytes of such an answer without its records; the aborted transactions' length among them."""


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        # the batches from its offset on are known from the producers' lines
        ([_produce(0, 700), _produce(5, 900), _fetch(5, 30)], {(3, FAR): 900}),
        # never more than all whole windows of its quota hold, but at least the first batch
        ([_produce(0, 700), _produce(5, 900), _fetch(0, 30)], {(3, 1000): 1000, (3, 10): 700}),
        # else the client asks for the same again; without another answer nothing is made up
        ([_fetch(0, 30), _fetch(0, 0, 400), _fetch(9, 30)], {(1, FAR): 400, (2, FAR): 400, (3, FAR): None}),
        # the log was switched on in the middle of the request
        ([_fetch(0, 0, 400, request="")], {(1, FAR): None}),
    ],
    ids=["from producers", "by quota", "from the next answer", "not logged"],
)
def test_a_throttled_fetch_weighs_what_it_would_have_read(
    lines: list[bytes], sizes: dict[tuple[int, float], int | None]
) -> None:
    """A throttled fetch, whose answer is empty, has the size that it would have read."""
    log = log_of(lines, "log")
    fetch_sizes = FetchSizes(log, decided(log))
    for (line_number, most), records in sizes.items():
        assert fetch_sizes.size(line_number, most) == (None if records is None else records + OVERHEAD)


def test_answered_fetches_of_a_real_log_could_have_been_rebuilt() -> None:
    """Sizes of answered fetches follow from appended records, except for those of the same millisecond."""
    log = read_log(log_path("kafka-4.3.1"))
    requests, sessions = decided(log), Sessions()
    appended = Appended(log, requests)
    same = total = 0
    for request in requests:
        if request.api_key == 1 and not request.throttle_ms:
            message = log.messages[request.line]
            partitions = (partition for topic in message.response.responses for partition in topic.partitions)
            read = sum(partition.records_size_in_bytes for partition in partitions)
            there = [appended.available(session, request.decided_ms) for session in sessions.wanted(message)]
            total += 1
            same += sum(fetchable.total for fetchable in there if fetchable) == read
    assert total > 700
    assert same / total > 0.5


def test_a_session_remembers_what_a_fetch_does_not_name() -> None:
    """A fetch session has the partitions that an incremental request does not name (KIP-227)."""

    def message(epoch: int, offset: int | None, forgotten: int | None = None) -> Any:
        partitions = [{"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 9}]
        full = [*partitions, {"partition": 1, "fetchOffset": 7, "partitionMaxBytes": 9}]
        named = full if epoch == 0 else partitions * (offset is not None)
        request = {
            "minBytes": 1,
            "sessionId": 0 if epoch == 0 else 44,
            "sessionEpoch": epoch,
            "topics": [{"topic": "t", "partitions": named}],
            "forgottenTopicsData": [] if forgotten is None else [{"topic": "t", "partitions": [forgotten]}],
        }
        header = {"requestApiKey": 1, "requestApiVersion": 11}
        response = {"sessionId": 44, "throttleTimeMs": 0, "responses": []}
        return log_of([line(header=header, request=request, response=response)], "log").messages[1]

    sessions = Sessions()
    other = Wanted("t", 1, 7, 9)
    assert sessions.wanted(message(0, 3)) == (Wanted("t", 0, 3, 9), other)
    assert sessions.wanted(message(1, 5)) == (Wanted("t", 0, 5, 9), other)
    assert sessions.wanted(message(2, None)) == (Wanted("t", 0, 5, 9), other)
    assert sessions.wanted(message(3, None, forgotten=0)) == (other,)


def test_a_request_that_waited_for_no_one_was_decided_before() -> None:
    """A request with remote time that waited for nothing was decided before it: acks=1, or a fetch with records."""
    wait = {"remoteTimeMs": 10.0, "responseQueueTimeMs": 0.0, "sendTimeMs": 0.0}
    log = log_of(
        [
            _produce(0, 700, time="2026-11-21 09:00:00,000", **wait),
            _fetch(0, 0, 700, time="2026-11-21 09:00:01,000", **wait),
            _fetch(9, 0, 1, time="2026-11-21 09:00:02,000", **wait),
        ],
        "log",
    )
    requests = decided(log)
    assert [request.completed_ms - request.decided_ms for request in requests] == [10, 10, 10]
    available = Appended(log, requests).available(Wanted("t", 0, 9, 1), FAR)
    assert available == Available(700, 700)


def _altered(value: float | None, second: int) -> bytes:
    operation = {"key": "producer_byte_rate", "value": value or 0.0, "remove": value is None}
    entry = {"entity": [{"entityType": "user", "entityName": "alice"}], "ops": [operation]}
    return line(
        header={"requestApiKey": 49, "requestApiVersion": 1},
        request={"entries": [entry], "validateOnly": False},
        response={"throttleTimeMs": 0, "entries": [{"errorCode": 0}]},
        time=f"2026-11-21 09:00:0{second},000",
    )


@pytest.mark.parametrize(
    ("logged", "text", "start", "changes"),
    [
        # a quota that the log shows being set to the file's value was not there before
        ([100.0, None], HUNDRED, {}, [100.0, None]),
        # a log that sets another value does not change the file's, and nothing is added to it
        ([300.0], HUNDRED, {ALICE: 100.0}, []),
        ([300.0], "quotas: []", {}, []),
        # a quota that the log sets and removes, and that the file does not have, was never in force
        ([100.0, None], "quotas: []", {}, []),
    ],
)
def test_the_file_says_which_rules_were_in_force(
    logged: list[float | None], text: str, start: dict[Any, float], changes: list[float | None]
) -> None:
    """The file has the rules that were in force, and the log says since when."""
    log = log_of([_altered(value, second) for second, value in enumerate(logged)], "log")
    first_rules, changed = timed(rules_of_text(text), changes_in(log))
    assert (first_rules, [(change.key, change.value) for change in changed]) == (
        start,
        [(ALICE, value) for value in changes],
    )


def test_mutations_are_charged_topic_by_topic() -> None:
    """Deleted topics count the partitions that they had; a request with two lines is charged on the controller's."""
    log = read_log(log_path("kafka-4.3.1"))
    charges = charges_of(log.requests)
    assert sorted(charges.values()) == [(1,), (3,), *[(10,)] * 4, (10, 10, 25, 10), (15,)]


def test_rules_are_a_file_of_quotas(tmp_path: Path) -> None:
    """Rules are read from a file of quotas, without those of addresses; a rule that no cluster accepts is refused."""
    path = tmp_path / "quotas.yaml"
    path.write_text(
        "quotas: [{user: <default>, client-id: a, request_percentage: 2}, {ip: 127.0.0.1, connection_creation_rate: 5}]"
    )
    rules = read_rules(path)
    assert rules.quotas == {(QuotaType.REQUEST, QuotaEntity(DEFAULT, "a")): 2.0}
    path.write_text("quotas: [{user: a, x: 1}]")
    with pytest.raises(InvalidQuotas, match=r"quotas\.yaml"):
        read_rules(path)


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    """A file without requests to compare, or one that cannot be read, is an error."""
    path = tmp_path / "some.log"
    with pytest.raises(PipelineError, match="No such file"):
        read_log(path)
    path.write_bytes(b"\x1f\x8b cut off")
    with pytest.raises(PipelineError, match=r"some\.log"):
        read_log(path)
    path.write_bytes(b"hello\n")
    with pytest.raises(EmptyLog, match="no line is a request"):
        read_log(path)


RULES = rules_of_text("quotas: [{user: alice, producer_byte_rate: 9, consumer_byte_rate: 9}]")
SANE = line()

Case = tuple[int, tuple[Any, ...], Any]
"""API key, where to change such a request, and to what."""


def _captured(api_key: int) -> Any:
    """Return the JSON of a real request that has both its parts."""
    mark = f'"requestApiKey":{api_key},'.encode()
    messages = (json.loads(text[text.index(b"{") : text.rindex(b"}") + 1]) for text in captured() if mark in text)
    return next(message for message in messages if message["request"] and message["response"])


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
    """A line of another shape is counted as unreadable, with its row, and the rest is replayed."""
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
    """A fetch has no `maxBytes` before version 3, and no session before version 7."""
    entry = _captured(1)
    for name in ("maxBytes", "sessionId", "sessionEpoch", "forgottenTopicsData"):
        del entry["request"][name]
    entry["response"] |= {"throttleTimeMs": 20, "responses": []}
    log = log_of([_line(entry), SANE], "log")
    assert log.unreadable == 0
    assert check(log, RULES).comparisons
