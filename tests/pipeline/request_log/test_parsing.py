"""Lines of a request log become requests, or go to quarantine with a reason."""

import gzip
import json
from collections import Counter
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipeline.log_lines import CAPTURE, captured, line, mutation, topic, values
from tests.pipeline.request_log.lines import AT, SOURCE, parsed, reason, request

from quotascope.pipeline.request_log.parsing import LogSource, parse
from quotascope.pipeline.request_log.schema import QUARANTINE, REQUESTS

Json: TypeAlias = Any
HOSTILE = [
    'a","principal":"User:root',
    "new\nline\r\t",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "day=1/bucket=2",
    "x" * 10_000,
    "Ünï 😀 \u202e",
    "Completed request:{",
    '"requestApiKey":0,',
]


def test_real_log() -> None:
    """Every line of a real broker's log is a request, and the columns have what the lines say."""
    found = parsed(*captured())
    assert found.requests.schema == REQUESTS
    assert found.quarantine.schema == QUARANTINE
    assert (len(found.requests), len(found.quarantine)) == (len(captured()), 0)
    keys = Counter(found.requests["api_key"].to_pylist())
    assert (keys[0], keys[1], keys[19]) == (4424, 822, 11)
    assert pc.sum(found.requests["forwarded"]).as_py() == 8
    assert pc.unique(found.requests["layout"]).to_pylist() == ["4.x"]
    sizes = values(found.requests, "produce_bytes")
    assert sum(size is not None for size in sizes) == 4424
    assert pc.count_distinct(found.requests["identity"]).as_py() == len(captured())


@pytest.mark.parametrize(("log", "count", "refused"), [("kafka-4.3.1-second", 2_104, 1), ("kafka-4.4.0", 2_243, 0)])
def test_other_real_logs(log: str, count: int, refused: int) -> None:
    """Logs of two releases have one layout; what the mutation quota refused is recognized by their errors."""
    content = (CAPTURE.parent / f"{log}-request.log.gz").read_bytes()
    found = parsed(*gzip.decompress(content).splitlines())
    assert (len(found.requests), len(found.quarantine)) == (count, 0)
    assert set(values(found.requests, "layout")) == {"4.x"}
    clients = found.requests.filter(pc.invert(found.requests["forwarded"]))
    assert sum(values(clients, "refused")) == refused


TIMES = {
    "queue_time_ms": "requestQueueTimeMs",
    "thread_time_ms": "localTimeMs",
    "remote_time_ms": "remoteTimeMs",
    "response_queue_time_ms": "responseQueueTimeMs",
    "network_time_ms": "sendTimeMs",
}


def _traffic_of(entry: Json) -> Json:
    """Bytes by topic of a Produce or Fetch, from Python's own JSON."""
    key = entry["requestHeader"]["requestApiKey"]
    if key not in (0, 1) or (key == 1 and entry["response"]["throttleTimeMs"]):
        return None
    topics = entry["request"]["topicData"] if key == 0 else entry["response"]["responses"]
    return [
        {
            "topic": each.get("name", each.get("topic")),
            "id": each.get("topicId"),
            "bytes": sum(part["recordsSizeInBytes"] for part in each.get("partitionData", each.get("partitions"))),
        }
        for each in topics
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("log", "ids_known"), [("kafka-4.3.1", [1, 1]), ("kafka-4.3.1-second", [0, 0]), ("kafka-4.4.0", [1, 1])]
)
def test_times_and_traffic_of_real_logs(log: str, ids_known: list[int]) -> None:
    """Of every line all times, the bytes by topic, and the ids that name them; every Fetch of the second log was throttled."""
    lines = gzip.decompress((CAPTURE.parent / f"{log}-request.log.gz").read_bytes()).splitlines()
    entries = [json.loads(text[text.index(b"{") : text.rindex(b"}") + 1]) for text in lines]
    found = parsed(*lines).requests
    for column, field in TIMES.items():
        assert values(found, column) == [entry[field] for entry in entries]
    assert values(found, "traffic") == [_traffic_of(entry) for entry in entries]
    ids = {pair["id"]: pair["topic"] for pairs in values(found, "topic_ids") for pair in pairs or ()}
    fetched = {
        each["id"]
        for row in found.select(["api_key", "traffic"]).to_pylist()
        if row["api_key"] == 1
        for each in row["traffic"] or ()
    }
    assert [len(fetched), len(fetched & {*ids})] == ids_known


ID = "Wk9NhLhFQ7usRy9J_K8TUA"
GIVEN = {"recordsSizeInBytes": 7}
SHARED: Json = GIVEN | {"errorMessage": None, "acknowledgeErrorMessage": None, "acquiredRecords": []}


NAME = 'a"},{"name":"x\n<b>Ünï 😀'
EMPTY = {"topics": [{"topic": NAME}]}


@pytest.mark.parametrize(
    ("key", "version", "asked", "response", "traffic"),
    [
        pytest.param(0, 9, {"transactionalId": None, "topicData": [{"name": NAME, "partitionData": [GIVEN, GIVEN]}, {"name": "t", "partitionData": []}]}, {}, [(NAME, None, 14), ("t", None, 0)], id="produce"),
        pytest.param(0, 13, {"transactionalId": None, "topicData": [{"topicId": ID, "partitionData": [GIVEN]}]}, {}, [(None, ID, 7)], id="produce by id"),
        pytest.param(1, 12, {}, {"responses": [{"topic": NAME, "partitions": [GIVEN, {"recordsSizeInBytes": None}]}]}, [(NAME, None, 7)], id="fetch"),
        pytest.param(1, 13, {}, {"responses": [{"topicId": ID, "partitions": [GIVEN]}]}, [(None, ID, 7)], id="fetch by id"),
        pytest.param(1, 12, {"replicaId": 2}, {"responses": [{"topic": "t", "partitions": [GIVEN]}]}, [("t", None, 7)], id="follower"),
        pytest.param(1, 12, EMPTY, {"responses": []}, [], id="nothing to fetch"),
        pytest.param(1, 12, EMPTY, {"responses": [], "throttleTimeMs": 40}, None, id="throttled"),
        pytest.param(1, 12, "", "", None, id="not logged"),
        pytest.param(78, 1, {}, {"responses": [{"topicId": ID, "partitions": [SHARED]}]}, [(None, ID, 7)], id="share fetch"),
        pytest.param(12, 4, {}, {}, None, id="another API"),
    ]
)  # fmt: skip
def test_traffic(key: int, version: int, asked: Json, response: Json, traffic: Json) -> None:
    """Records' bytes by name or id; followers have them, too; a throttled Fetch's are unknown."""
    header = {"requestApiKey": key, "requestApiVersion": version}
    row = request(line(header=header, request=asked, response=response))
    found = row["traffic"]
    assert traffic == (found and [tuple(each.values()) for each in found])


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("key", [3, 75])
def test_ids_of_topics(name: str, key: int) -> None:
    """Pairs of a response with both name and id; a topic without one of them, and Kafka's zero id, are no pair."""
    none = {"name": None, "topicId": ID}, {"name": name}, {"name": name, "topicId": "A" * 22}
    response = {"topics": [{"name": name, "topicId": ID}, *none], "throttleTimeMs": 3}
    row = request(line(header={"requestApiKey": key}, response=response))
    assert (row["topic_ids"], row["throttle_ms"]) == ([{"topic": name, "id": ID}], 3)
    response["topics"] = none
    assert request(line(header={"requestApiKey": key}, response=response))["topic_ids"] is None


def test_ids_of_created_topics() -> None:
    """CreateTopics and DeleteTopics answer with ids, too."""
    for api in ("create", "delete"):
        row = request(mutation(api, [topic("t", 3)], answers=[{"name": "t", "topicId": ID, "errorCode": 0}]))
        assert row["topic_ids"] == [{"topic": "t", "id": ID}]


def test_a_line_without_queue_time() -> None:
    """It is unknown then; one that no broker writes is refused."""
    assert request(line(leave_out=["requestQueueTimeMs"]))["queue_time_ms"] is None
    assert reason(line(requestQueueTimeMs=-1.0)) == (
        "unknown shape",
        "Expected `float` >= 0.0 - at `$.requestQueueTimeMs`",
    )


def test_columns_of_a_real_line() -> None:
    """The first Produce of a throttled client, field by field."""
    (text,) = [each for each in captured() if b'"localTimeMs":49.557' in each]
    assert request(text) | {"identity": b""} == {
        "timestamp": AT - 1,
        "completed": AT,
        "broker": "127.0.0.1",
        "listener": "SASL",
        "connection": "127.0.0.1:29092-127.0.0.1:55514-1-4",
        "correlation_id": 4,
        "api_key": 0,
        "api_version": 10,
        "user": "alice",
        "client_id": "app1",
        "produce_bytes": 13_220,
        "fetch_bytes": None,
        "traffic": [{"topic": "t1", "id": None, "bytes": 13_184}],
        "queue_time_ms": 8.392,
        "thread_time_ms": 49.557,
        "remote_time_ms": 11.428,
        "response_queue_time_ms": 0.096,
        "network_time_ms": 0.175,
        "partitions_created": None,
        "partitions_added": None,
        "partitions_deleted": None,
        "mutations_charged": None,
        "mutations_known": True,
        "mutation_timestamp": None,
        "topics": None,
        "topic_ids": None,
        "throttle_ms": 915,
        "broker_throttle_ms": 915,
        "refused": False,
        "forwarded": False,
        "follower": False,
        "layout": "4.x",
        "identity": b"",
        "file": "/logs/a.log",
        "line": 1,
        "position": 1,
    }


def test_decision_and_mutation_times() -> None:
    """The decision comes before the response's time in queue and on the wire, the controller's charge before the wait for it."""
    row = request(mutation("create", [topic("t", 3)]))
    assert row["completed"] == AT
    assert row["timestamp"] == AT - 2
    assert row["mutation_timestamp"] == AT - 12


@pytest.mark.parametrize(("acks", "waited"), [(-1, True), (0, False), (1, False)])
def test_decision_on_produce(acks: int, waited: bool) -> None:  # noqa: FBT001 - of the table above
    """Only with acks=-1 does a broker wait for others before it decides."""
    header = {"requestApiKey": 0, "requestApiVersion": 9}
    asked = {"acks": acks, "topicData": [], "transactionalId": None}
    row = request(line(header=header, request=asked))
    assert row["timestamp"] == (AT - 2 if waited else AT - 12)


def test_arrow_in_arrow_out() -> None:
    """Strings and bytes of Arrow are read alike; null is an empty line, and unknown numbers stay unknown."""
    texts = [line(), None, b"\xff\xfe"]
    found = parse(pa.array(texts, pa.binary()), pa.array([5, None, 7]), SOURCE)
    assert found.requests["line"].to_pylist() == [5]
    assert found.quarantine["line"].to_pylist() == [None, 7]
    again = parse(pa.array([line().decode()]), pa.array([None]), SOURCE)
    assert again.requests["line"].to_pylist() == [None]
    assert again.requests["identity"] == found.requests["identity"]


def test_broker_given_or_from_the_connection() -> None:
    """A broker has the name that is given, else the host of its address, IPv6 too: quotas are per broker, not per listener."""
    assert request(line())["broker"] == "10.0.0.1"
    assert request(line(), source=LogSource(file="f", broker="7"))["broker"] == "7"
    over_ipv6 = line(connection="0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:40000-0-0")
    assert request(over_ipv6)["broker"] == "0:0:0:0:0:0:0:1"


@pytest.mark.parametrize(
    ("principal", "user"), [("User:bob", "bob"), ("User:a:b", "a:b"), ("Group:x", "x"), ("bare", "bare")]
)
def test_user(principal: str, user: str) -> None:
    """Quotas match the principal's name without its type."""
    assert request(line(principal=principal))["user"] == user


@pytest.mark.parametrize("name", ["", *HOSTILE])
def test_hostile_names(name: str) -> None:
    """Untrusted names come through unchanged and change nothing else."""
    text = line(header={"clientId": name}, principal=f"User:{name}", listener=name)
    row = request(text)
    assert (row["client_id"], row["user"], row["listener"]) == (name, name, name)
    assert (row["api_key"], row["connection"]) == (12, "10.0.0.1:9092-10.0.0.9:40000-3-1")


def test_client_without_an_id() -> None:
    """No client id is null, not empty."""
    assert request(line(header={"clientId": None}))["client_id"] is None


def test_follower() -> None:
    """Another broker's fetch is marked, in the old place of its id and the new one."""
    fetch = {"requestApiKey": 1, "requestApiVersion": 16}
    response = {"throttleTimeMs": 0, "responses": []}
    for asked, follower in (
        ({"replicaId": 2}, True),
        ({"replicaState": {"replicaId": 2}}, True),
        ({"replicaId": -1}, False),
        ({"topics": []}, False),
        ("", False),
    ):
        row = request(line(header=fetch, request=asked, response=response))
        assert row["follower"] is follower


@pytest.mark.parametrize(("key", "version"), [(1, 16), (78, 1)])
def test_throttled_fetch_has_no_size(key: int, version: int) -> None:
    """A throttled Fetch was answered empty: what it would have weighed is unknown, and not zero."""
    fetch = {"requestApiKey": key, "requestApiVersion": version}
    response = {"throttleTimeMs": 40, "responses": []}
    row = request(line(header=fetch, response=response, throttleTimeMs=40))
    assert (row["fetch_bytes"], row["throttle_ms"]) == (None, 40)


@pytest.mark.parametrize("key", [0, 1, 12, 19, 78])
def test_no_answer_and_no_request(key: int) -> None:
    """Without an answer (acks=0), or when the log was switched on in the middle, what cannot be known is null."""
    row = request(line(header={"requestApiKey": key}, request="", response=""))
    assert row["throttle_ms"] is None
    assert (row["produce_bytes"], row["fetch_bytes"]) == (None, None)
    assert row["mutations_known"] is (key != 19)


def test_share_fetch_is_charged_like_a_fetch() -> None:
    """A share group's fetch has the size that the consumer quota is charged."""
    row = request(
        line(
            header={"requestApiKey": 78, "requestApiVersion": 1},
            response={"throttleTimeMs": 0, "errorCode": 0, "responses": [], "nodeEndpoints": []}
        )
    )  # fmt: skip
    assert row["fetch_bytes"] > 4


@pytest.mark.parametrize(
    ("pattern", "time", "at"),
    [
        ("[{time}] DEBUG Completed request:{json} (kafka.request.logger)", "2026-11-21 09:02:00,655", AT),
        ("{time} DEBUG [data-plane-1] logger:42 - Completed request: {json}", "2026-11-21 09:02:00", AT - 655),
        ("{time} Completed request:{json}\r", "2026-11-21T09:02:00.655123+0100", AT - 3_600_000),
        ("{time} Completed request:{json}", "2026-11-21T09:02:00.6Z", AT - 55),
        ("[{time}] TRACE Completed request:{json} (x)", "2026-11-21 09:02:00,655", AT),
    ]
)  # fmt: skip
def test_patterns(pattern: str, time: str, at: int) -> None:
    """Other patterns of log4j are read, too, as long as they report the time; an offset in it wins over the zone."""
    assert request(line(time=time, pattern=pattern))["completed"] == at


def test_zone() -> None:
    """Times without an offset are of the zone that is given, summer time included."""
    berlin = LogSource(file="f", zone=ZoneInfo("Europe/Berlin"))
    assert request(line(), source=berlin)["completed"] == AT - 3_600_000
    summer = line(time="2026-07-21 09:02:00,655")
    utc = request(summer)["completed"]
    assert request(summer, source=berlin)["completed"] == utc - 7_200_000


def test_clock_steps() -> None:
    """When the clock goes back, lines keep their times and their order; nothing is dropped or moved."""
    times = ["09:02:01,000", "09:02:02,000", "09:01:59,500", "2000-01-01 00:00:00,000"]
    full = [time if "-" in time else f"2026-11-21 {time}" for time in times]
    found = parsed(*(line(time=time) for time in full))
    completed = found.requests["completed"].to_pylist()
    assert completed == [AT + 345, AT + 1_345, AT - 1_155, 946_684_800_000]
    assert found.requests["line"].to_pylist() == [1, 2, 3, 4]


def test_mixed_versions() -> None:
    """Lines of several releases in one file are each put down to their layout."""
    found = parsed(
        line(),
        line(header={"requestApiVersionDeprecated": True}),
        line(header={"requestApiKey": 6}),
        line(header={"requestApiKey": 9, "requestApiVersion": 0}),
        line(leave_out=["isForwarded"]),
    )
    documented = ["3.8 (documented)", *["2.8 (documented)"] * 2]
    assert found.requests["layout"].to_pylist() == ["4.x", *documented, "4.x"]


def test_identity_is_of_the_line() -> None:
    """The same line is the same wherever it stands; another time, connection, correlation id or duration makes it another."""
    same = request(line())["identity"]
    assert len(same) == 16
    elsewhere = LogSource(file="b.log", broker="9")
    assert request(line(), source=elsewhere)["identity"] == same
    others = [
        line(time="2026-11-21 09:02:00,656"),
        line(connection="10.0.0.1:9092-10.0.0.9:40001-3-1"),
        line(header={"correlationId": 8}),
        line(sendTimeMs=1.501),
    ]
    identities = {request(other)["identity"] for other in others}
    assert len(identities | {same}) == 5


def test_nothing() -> None:
    """No lines make empty tables."""
    found = parsed()
    assert (found.requests.schema, len(found.requests)) == (REQUESTS, 0)
    assert (found.quarantine.schema, len(found.quarantine)) == (QUARANTINE, 0)


def test_columns_are_described() -> None:
    """Each column of both tables says what it means; times and durations say their unit."""
    for column in (*REQUESTS, *QUARANTINE):
        description = (column.metadata or {})[b"description"]
        assert description, column.name
        if column.name.endswith(("_ms", "timestamp", "completed")):
            assert description.startswith(b"ms"), column.name
