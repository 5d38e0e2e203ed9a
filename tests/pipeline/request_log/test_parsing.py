"""Lines of a request log become requests, or go to quarantine with a reason and harm no other."""

import gzip
import json
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.requests import line, mutation, topic
from tests.pipeline.log_lines import CAPTURE, captured, values
from tests.pipeline.request_log.readings import AT, SOURCE, parsed, reason, request
from tests.strategies import HOSTILE

from quotascope.pipeline.request_log import parsing
from quotascope.pipeline.request_log.parsing import KEPT_TEXT, LONGEST, LogSource, parse_lines
from quotascope.pipeline.request_log.schema import PARSED_QUARANTINE, PARSED_REQUESTS

Json: TypeAlias = Any
NAMES = [*HOSTILE, 'a","principal":"User:root', "day=1/shard=2", "Completed request:{", '"requestApiKey":0,']


FIELDS = {
    "connection": "connection",
    "listener": "listener",
    "forwarded": "isForwarded",
    "broker_throttle_ms": "throttleTimeMs",
    "queue_time_ms": "requestQueueTimeMs",
    "thread_time_ms": "localTimeMs",
    "remote_time_ms": "remoteTimeMs",
    "response_queue_time_ms": "responseQueueTimeMs",
    "network_time_ms": "sendTimeMs",
}
HEADER = {
    "api_key": "requestApiKey",
    "api_version": "requestApiVersion",
    "correlation_id": "correlationId",
    "client_id": "clientId",
}


def _traffic_of(entry: Json) -> Json:
    """Bytes by topic of a Produce or Fetch, from Python's own JSON."""
    key = entry["requestHeader"]["requestApiKey"]
    if key not in (0, 1) or (key == 1 and entry["response"]["throttleTimeMs"]):
        return None
    topics = entry["request"]["topicData"] if key == 0 else entry["response"]["responses"]
    partitions = "partitionData" if key == 0 else "partitions"
    return [
        {
            "topic": topic.get("name", topic.get("topic")),
            "id": topic.get("topicId"),
            "bytes": sum(part["recordsSizeInBytes"] for part in topic[partitions]),
        }
        for topic in topics
    ]


@pytest.mark.parametrize(
    ("log", "count", "refused", "ids_known"),
    [("kafka-4.3.1", 5_403, 0, [1, 1]), ("kafka-4.3.1-second", 2_104, 1, [0, 0]), ("kafka-4.4.0", 2_243, 0, [1, 1])],
)
def test_real_logs(log: str, count: int, refused: int, ids_known: list[int]) -> None:
    """
    Every line is a request of one layout, with all times, the bytes by topic, and the ids that name topics.

    Every Fetch of the second log was throttled, and refused mutations are recognized by their error.
    """
    lines = gzip.decompress((CAPTURE.parent / f"{log}-request.log.gz").read_bytes()).splitlines()
    entries = [json.loads(text[text.index(b"{") : text.rindex(b"}") + 1]) for text in lines]
    whole = parsed(*lines)
    result = whole.requests
    assert (result.schema, whole.quarantine.schema) == (PARSED_REQUESTS, PARSED_QUARANTINE)
    assert (len(result), len(whole.quarantine)) == (count, 0)
    assert pc.count_distinct(result["identity"]).as_py() == count
    assert set(values(result, "layout")) == {"4.x"}
    assert sum(values(result.filter(pc.invert(result["forwarded"])), "refused")) == refused
    keys = values(result, "api_key")
    assert [size is not None for size in values(result, "produce_bytes")] == [key == 0 for key in keys]
    for column, field in FIELDS.items():
        assert values(result, column) == [entry[field] for entry in entries]
    for column, field in HEADER.items():
        assert values(result, column) == [entry["requestHeader"][field] for entry in entries]
    assert values(result, "user") == [entry["principal"].removeprefix("User:") for entry in entries]
    traffic = values(result, "traffic")
    assert traffic == [_traffic_of(entry) for entry in entries]
    ids = {pair["id"] for pairs in values(result, "topic_ids") for pair in pairs or ()}
    fetched = {topic["id"] for key, moved in zip(keys, traffic, strict=True) if key == 1 for topic in moved or ()}
    assert [len(fetched), len(fetched & ids)] == ids_known


ID = "Wk9NhLhFQ7usRy9J_K8TUA"
GIVEN = {"recordsSizeInBytes": 7}
SHARED: Json = GIVEN | {"errorMessage": None, "acknowledgeErrorMessage": None, "acquiredRecords": []}
NAME = 'a"},{"name":"x\n<b>Ünï 😀'
EMPTY = {"topics": [{"topic": NAME}]}
THROTTLED = {"responses": [], "throttleTimeMs": 40}
UNKNOWN = {"traffic": None, "throttle_ms": None, "produce_bytes": None, "fetch_bytes": None, "follower": False}


def moved(*, name: str | None = None, topic_id: str | None = None, size: int = 7) -> Json:
    return {"topic": name, "id": topic_id, "bytes": size}


def produce(*topics: Json, acks: int = -1) -> Json:
    return {"transactionalId": None, "topicData": topics, "acks": acks}


def fetched(*topics: Json) -> Json:
    return {"responses": topics, "throttleTimeMs": 0}


@pytest.mark.parametrize(
    ("key", "version", "asked", "response", "expected"),
    [
        (
            *(0, 9, produce({"name": NAME, "partitionData": [GIVEN, GIVEN]}, {"name": "t", "partitionData": []}), {}),
            {"traffic": [moved(name=NAME, size=14), moved(name="t", size=0)]},
        ),
        (0, 13, produce({"topicId": ID, "partitionData": [GIVEN]}), {}, {"traffic": [moved(topic_id=ID)]}),
        (
            *(1, 12, {}, fetched({"topic": NAME, "partitions": [GIVEN, {"records": None}]})),
            {"traffic": [moved(name=NAME)], "follower": False},
        ),
        (1, 13, {}, fetched({"topicId": ID, "partitions": [GIVEN]}), {"traffic": [moved(topic_id=ID)]}),
        # another broker's fetch is marked, in the old place of its id and the new one
        (
            *(1, 12, {"replicaId": 2}, fetched({"topic": "t", "partitions": [GIVEN]})),
            {"traffic": [moved(name="t")], "follower": True},
        ),
        (1, 16, {"replicaState": {"replicaId": 2}}, fetched(), {"follower": True}),
        (1, 16, {"replicaId": -1}, fetched(), {"follower": False}),
        (1, 12, EMPTY, fetched(), {"traffic": []}),
        # a throttled Fetch was answered empty: what it would have weighed is unknown, and not zero
        (1, 12, EMPTY, THROTTLED, {"traffic": None, "fetch_bytes": None, "throttle_ms": 40}),
        (78, 1, {}, THROTTLED, {"traffic": None, "fetch_bytes": None, "throttle_ms": 40}),
        (
            *(78, 1, {}, fetched({"topicId": ID, "partitions": [SHARED]})),
            {"traffic": [moved(topic_id=ID)], "fetch_bytes": 65},
        ),
        (12, 4, {}, {}, {"traffic": None}),
        # without an answer (acks=0), or when the log was switched on in the middle, what cannot be known is null
        *((key, 12, "", "", UNKNOWN | {"mutations_known": key != 19}) for key in (0, 1, 12, 19, 78)),
        # only with acks=-1 does a broker wait for others before it decides
        *((0, 9, produce(acks=acks), {}, {"timestamp": AT - waited}) for acks, waited in ((-1, 2), (0, 12), (1, 12))),
    ]
)  # fmt: skip
def test_what_a_request_moves(key: int, version: int, asked: Json, response: Json, expected: dict[str, Any]) -> None:
    """
    A request has its records' bytes by name or id, followers' bytes, and the time of the decision.

    What the line lacks is null.
    """
    row = request(line(header={"requestApiKey": key, "requestApiVersion": version}, request=asked, response=response))
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("key", [3, 75])
def test_ids_of_topics(name: str, key: int) -> None:
    """Pairs of a topic's name and id come from responses with both, without Kafka's zero id."""
    none = {"name": None, "topicId": ID}, {"name": name}, {"name": name, "topicId": "A" * 22}
    response = {"topics": [{"name": name, "topicId": ID}, *none], "throttleTimeMs": 3}
    row = request(line(header={"requestApiKey": key}, response=response))
    assert (row["topic_ids"], row["throttle_ms"]) == ([{"topic": name, "id": ID}], 3)
    response["topics"] = none
    assert request(line(header={"requestApiKey": key}, response=response))["topic_ids"] is None


@pytest.mark.parametrize("api", ["create", "delete"])
def test_ids_of_mutated_topics(api: str) -> None:
    """
    CreateTopics and DeleteTopics answer with ids, too.

    Their decision comes before the response's time, their charge before the wait.
    """
    row = request(mutation(api, [topic("t", 3)], answers=[{"name": "t", "topicId": ID, "errorCode": 0}]))
    assert row["topic_ids"] == [{"topic": "t", "id": ID}]
    assert [row[name] - AT for name in ("completed", "timestamp", "mutation_timestamp")] == [0, -2, -12]


def test_a_line_without_queue_time() -> None:
    """A damaged size is unknown in a line without queue time, and a size that no broker writes is refused."""
    assert request(line(leave_out=["requestQueueTimeMs"]))["queue_time_ms"] is None
    why = "Expected `float` >= 0.0 - at `$.requestQueueTimeMs`"
    assert reason(line(requestQueueTimeMs=-1.0)) == ("unknown shape", why)


def test_derived_columns_of_a_real_line() -> None:
    """The first Produce of a throttled client has its times, size, throttle and place."""
    (text,) = [line for line in captured() if b'"localTimeMs":49.557' in line]
    row = request(text)
    assert [AT - row[name] for name in ("completed", "timestamp")] == [0, 1]
    assert (row["broker"], row["file"], row["line"], row["position"]) == ("127.0.0.1", "/logs/a.log", 1, 1)
    assert (row["produce_bytes"], row["throttle_ms"], row["refused"], row["follower"]) == (13_220, 915, False, False)
    assert (row["mutation_timestamp"], row["level"], row["mutations_known"]) == (None, None, True)


def test_unknown_numbers() -> None:
    """Unknown numbers stay unknown, null is an empty line, and lines keep their order though the clock goes back."""
    result = parse_lines([line(), None, b"\xff\xfe"], [5, None, 7], SOURCE)
    assert result.requests["line"].to_pylist() == [5]
    assert result.quarantine["line"].to_pylist() == [None, 7]
    again = parse_lines([line()], [None], SOURCE)
    assert again.requests["line"].to_pylist() == [None]
    assert again.requests["identity"] == result.requests["identity"]
    back = parse_lines([line(), line(time="2000-01-01 00:00:00,000")], [1, 2], SOURCE)
    assert back.requests["line"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("changed", "given", "broker"),
    [
        ({}, None, "10.0.0.1"),
        ({}, "7", "7"),
        ({"connection": "0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:40000-0-0"}, None, "0:0:0:0:0:0:0:1"),
    ],
)
def test_broker_given_or_from_the_connection(changed: dict[str, Any], given: str | None, broker: str) -> None:
    """
    A broker has its given name, or else the host of its address, also in IPv6.

    Quotas are per broker, not per listener.
    """
    assert request(line(**changed), LogSource(file="f", broker=given))["broker"] == broker


@pytest.mark.parametrize(
    ("principal", "user"),
    [("User:bob", "bob"), ("User:a:b", "a:b"), ("Group:x", "x"), ("bare", "bare")]
    + [(f"User:{name}", name) for name in NAMES],
)
def test_untrusted_names(principal: str, user: str) -> None:
    """
    Hostile names are read unchanged and change nothing else.

    Quotas match the principal's name without its type, and no client id is null.
    """
    row = request(line(header={"clientId": user or None}, principal=principal, listener=user))
    assert (row["client_id"], row["user"], row["listener"]) == (user or None, user, user)
    assert (row["api_key"], row["connection"]) == (12, "10.0.0.1:9092-10.0.0.9:40000-3-1")
    assert request(line(header={"clientId": ""}))["client_id"] == ""


BERLIN = "Europe/Berlin"
BRACKETS = "[{time}] DEBUG Completed request:{json} (kafka.request.logger)"
SUMMER = AT - 123 * 86_400_000


@pytest.mark.parametrize(
    ("pattern", "time", "zone", "at"),
    [
        (BRACKETS, "2026-11-21 09:02:00,655", "UTC", AT),
        (BRACKETS, "2026-11-21 09:02:00,655", BERLIN, AT - 3_600_000),
        (BRACKETS, "2026-07-21 09:02:00,655", "UTC", SUMMER),
        (BRACKETS, "2026-07-21 09:02:00,655", BERLIN, SUMMER - 7_200_000),
        ("{time} DEBUG [data-plane-1] logger:42 - Completed request: {json}", "2026-11-21 09:02:00", "UTC", AT - 655),
        ("{time} Completed request:{json}\r", "2026-11-21T09:02:00.655123+0100", "UTC", AT - 3_600_000),
        ("{time} Completed request:{json}", "2026-11-21T09:02:00.6Z", BERLIN, AT - 55),
        ("{time} Completed request:{json}", "2026-11-21T09:02:00,655-05", BERLIN, AT + 18_000_000),
        ("{time}DEBUG Completed request:{json}", "2026-11-21T09:02:00,655+05:30", BERLIN, AT - 19_800_000),
        ("{time} -12345 Completed request:{json}", "2026-11-21T09:02:00,655", "UTC", AT),
        ("{time} -10.0.0.1 Completed request:{json}", "2026-11-21T09:02:00,655", "UTC", AT),
        # clocks show 02:00 to 03:00 twice on 2026-10-25, and never on 2026-03-29
        (BRACKETS, "2026-10-25 01:59:59,000", BERLIN, 1_792_886_399_000),
        (BRACKETS, "2026-10-25 03:00:00,000", BERLIN, 1_792_893_600_000),
        (BRACKETS, "2026-10-25 02:30:00,000+0100", BERLIN, 1_792_891_800_000),
        (BRACKETS, "2026-03-29 02:30:00,000", BERLIN, 1_774_747_800_000),
        ("[{time}] TRACE Completed request:{json} (x)", "2026-11-21 09:02:00,655", "UTC", AT),
        (BRACKETS, "2000-01-01 00:00:00,000", "UTC", 946_684_800_000),  # the first that is read
    ],
)
def test_times(pattern: str, time: str, zone: str, at: int) -> None:
    """Times in other patterns of log4j are read. An offset in the time wins over the zone, which has summer time."""
    source = LogSource(file="f", zone=ZoneInfo(zone))
    assert request(line(time=time, pattern=pattern), source)["completed"] == at


def test_a_time_that_clocks_show_twice_is_none() -> None:
    """A time in the hour in which summer time ends is refused: the line does not show which of the two it is."""
    source = LogSource(file="f", zone=ZoneInfo(BERLIN))
    result = parse_lines([line(time="2026-10-25 02:30:00,000")] * 2, [1, 2], source).quarantine.to_pylist()
    assert [loss["reason"] for loss in result] == ["ambiguous time"] * 2
    assert "Europe/Berlin" in result[0]["detail"]


def test_mixed_versions() -> None:
    """Lines of several releases in one file are each put down to their layout."""
    result = parsed(
        line(),
        line(header={"requestApiVersionDeprecated": True}),
        line(header={"requestApiKey": 6}),
        line(header={"requestApiKey": 9, "requestApiVersion": 0}),
        line(leave_out=["isForwarded"]),
    )
    assert result.requests["layout"].to_pylist() == ["4.x", "3.7", "3.x", "3.x", "4.x"]
    assert not any(values(result.requests, "forwarded"))


def test_identity_is_of_the_line() -> None:
    """
    A line has the same identity wherever it stands.

    Another time, connection, correlation id or duration gives it another one.
    """
    same_identity = request(line())["identity"]
    assert len(same_identity) == 16
    elsewhere = LogSource(file="b.log", broker="9")
    assert request(line(), source=elsewhere)["identity"] == same_identity
    other_lines = [
        line(time="2026-11-21 09:02:00,656"),
        line(connection="10.0.0.1:9092-10.0.0.9:40001-3-1"),
        line(header={"correlationId": 8}),
        line(sendTimeMs=1.501),
    ]
    identities = {request(other_line)["identity"] for other_line in other_lines}
    assert len(identities | {same_identity}) == 5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "empty"),
        (b" \t\r", "empty"),
        (b"\xff\xfe\x00binary\x00", "not a request"),
        (b"[2026-11-21 09:02:00,655] INFO Completed load of snapshot (x)", "not a request"),
        ((b"[2026-11-21 09:02:00,655] DEBUG Completed request:RequestHeader(apiKey=PRODUCE, "
            b"apiVersion=8)"), "layout before 2.8"),
        (b"Completed request:{}", "no time"),
        (b"[2026-13-41 09:02:00,655] DEBUG Completed request:{}", "no time"),
        (b"[2026-11-21 09:02:00,6x5] DEBUG Completed request:{}", "unknown shape"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:", "several lines"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:what", "not JSON"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:{nonsense}", "not JSON"),
        (b"[2026-11-21 09:02:00,655] DEBUG Completed request:[1]", "not JSON"),
        (line()[:300], "truncated"),
        (line()[:60], "truncated"),
        (line()[:400] + line(), "truncated"),
        (line(leave_out=["sendTimeMs"]), "unknown shape"),
        (line(sendTimeMs="1.5"), "unknown shape"),
        (line(requestHeader=None), "unknown shape"),
        (line(connection=5), "unknown shape"),
        (line(throttleTimeMs=1 << 40), "unknown shape"),
        (line(header={"requestApiKey": 40_000}), "unknown shape"),
        (line(responseQueueTimeMs=5e17), "unknown shape"),
        (line(sendTimeMs=86_400_001), "unknown shape"),
        (line(localTimeMs=-1), "unknown shape"),
        (line(remoteTimeMs=1e15), "unknown shape"),
        (line(time="1999-12-31 23:59:59,999"), "unknown shape"),
        (line(time="2200-01-01 00:00:00,000"), "unknown shape"),
        (line(header={"requestApiKey": 0, "requestApiVersion": 99}, request={"topicData": []}), "unknown version"),
        (line(header={"requestApiKey": 0, "requestApiVersion": 9}, request={"topics": []}), "unknown shape"),
        (
            line(
                header={"requestApiKey": 0, "requestApiVersion": 9},
                request={"topicData": [{"partitionData": [{"recordsSizeInBytes": -1}]}]},
            ),
            "unknown shape",
        ),
        (line(header={"requestApiKey": 19, "requestApiVersion": 7}, request={"no": "topics"}), "unknown shape"),
        (
            line(
                header={"requestApiKey": 19, "requestApiVersion": 7},
                request={"topics": [{"name": "t", "numPartitions": "3", "assignments": []}]},
            ),
            "unknown shape",
        ),
        (line(request="[" * 5_000).replace(b'"' + b"[" * 5_000 + b'"', b"[" * 5_000 + b"]" * 5_000), "not JSON"),
    ]
)  # fmt: skip
def test_quarantine(text: bytes, why: str) -> None:
    """Lines that are no requests go to quarantine, with a reason of a few words and one sentence."""
    short, detail = reason(text)
    assert short == why
    assert detail


def test_longest_durations() -> None:
    """A request may be worked on for a day, and wait for others as long as the protocol's longest timeout."""
    longest = (1 << 31) - 1
    row = request(line(localTimeMs=86_400_000, remoteTimeMs=longest))
    assert row["thread_time_ms"] == 86_400_000
    assert row["completed"] == AT


def test_gigantic_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is too long is quarantined with its beginning and its length; one that fits is read."""
    text = line(principal="User:" + "x" * 10_000)
    monkeypatch.setattr(parsing, "LONGEST", len(text))
    result = parsed(text, text + b" ")
    assert len(result.requests) == 1
    (row,) = result.quarantine.to_pylist()
    assert row["reason"] == "too long"
    assert (row["text"], row["length"]) == (text[:KEPT_TEXT], len(text) + 1)
    assert LONGEST == 16 << 20


def test_a_bad_line_harms_no_other() -> None:
    """Lines with values that no column can hold are found one by one among good lines."""
    good = [line(header={"correlationId": number}) for number in range(50)]
    bad = [line(throttleTimeMs=1 << 40), line(header={"correlationId": 1 << 31})]
    result = parsed(*good[:20], bad[0], *good[20:], bad[1])
    assert result.requests["correlation_id"].to_pylist() == list(range(50))
    assert result.requests["line"].to_pylist() == [*range(1, 21), *range(22, 52)]
    assert result.quarantine["line"].to_pylist() == [21, 52]


def test_identity_of_quarantined_lines() -> None:
    """A quarantined line has the same identity wherever it stands, so that a renamed file adds nothing."""
    identities_here = [*values(parsed(b"x", b"y").quarantine, "identity"), *values(parsed(b"x").quarantine, "identity")]
    identities_there = parsed(b"x", source=LogSource(file="b")).quarantine["identity"].to_pylist()
    assert identities_here[0] == identities_here[2]
    assert identities_there == identities_here[:1]
    assert len(set(identities_here)) == 2


@given(st.lists(st.binary(max_size=200) | st.sampled_from(captured()[:40]), max_size=20))
def test_each_line_once(lines: list[bytes]) -> None:
    """Each line is in one of the two tables, unless the same text is in the quarantine already."""
    result = parsed(*lines)
    numbers = values(result.requests, "line") + values(result.quarantine, "line")
    numbers_left = [number for number in range(1, len(lines) + 1) if number not in numbers]
    first_lines = {lines.index(text) + 1 for text in (lines[number - 1] for number in numbers_left)}
    assert len(numbers_left) == sum(values(result.quarantine, "lines")) - len(result.quarantine)
    assert len(numbers) == len(set(numbers)) == len(lines) - len(numbers_left)
    assert first_lines <= set(values(result.quarantine, "line"))


@given(st.sampled_from(captured()[:200]), st.integers(0, 3_000), st.binary(max_size=4))
def test_damaged_lines(text: bytes, at: int, damage: bytes) -> None:
    """A line that was overwritten anywhere is read or quarantined, and never stops the rest."""
    result = parsed(text[:at] + damage + text[at + len(damage) :], line())
    assert len(result.requests) + len(result.quarantine) == 2
