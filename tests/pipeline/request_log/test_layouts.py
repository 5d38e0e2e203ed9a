"""
Lines that brokers of several releases wrote.

Each layout of `releases.LAYOUTS` is one that a real broker was seen to write.
"""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.builders.requests import line
from tests.pipeline.log_lines import values

from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.pipeline.releases import BEFORE_4_0, CURRENT, FIRST, LAYOUTS, layout_of
from quotascope.pipeline.request_log.line import LineReader
from quotascope.pipeline.request_log.parsing import LogSource, Parsed, parse_lines
from quotascope.pipeline.request_log.schema import Unreadable

CAPTURES = Path(__file__).parents[1] / "captures"
LOGS = ("2.8.2-zookeeper", "3.7.2", "3.9.1-zookeeper", "4.1.2", "4.3.1", "4.4.0")


@cache
def lines_of(log: str) -> tuple[bytes, ...]:
    return tuple(gzip.decompress((CAPTURES / f"kafka-{log}-request.log.gz").read_bytes()).splitlines())


@cache
def read(log: str) -> Parsed:
    lines = lines_of(log)
    return parse_lines(list(lines), list(range(len(lines))), LogSource(file=log))


@pytest.mark.parametrize("log", LOGS)
def test_all_lines_of_a_release_are_read(log: str) -> None:
    """No line of a release is quarantined, and each answered Produce and Fetch without a throttle has its bytes."""
    requests_found = read(log)
    assert requests_found.quarantine.num_rows == 0
    assert requests_found.requests.num_rows == len(lines_of(log))
    for row in requests_found.requests.select(["api_key", "produce_bytes", "fetch_bytes", "throttle_ms"]).to_pylist():
        if row["api_key"] == ApiKey.PRODUCE:
            assert row["produce_bytes"] > 0
        elif row["api_key"] == ApiKey.FETCH:
            assert (row["fetch_bytes"] is None) is (row["throttle_ms"] > 0)


def test_bytes_of_2_8() -> None:
    """Sizes in a Fetch response of Kafka 2.8 are under other names; no answered Fetch is empty in that log."""
    rows = read("2.8.2-zookeeper").requests.to_pylist()
    fetches = [row for row in rows if row["api_key"] == ApiKey.FETCH and row["fetch_bytes"] is not None]
    assert len(fetches) > 10
    sizes = []
    for text in lines_of("2.8.2-zookeeper"):
        logged = json.loads(text[text.find(b"{") : text.rfind(b"}") + 1])
        if logged["requestHeader"]["requestApiKey"] == ApiKey.FETCH and not logged["response"]["throttleTimeMs"]:
            partitions = [
                partitionresponse
                for topic in logged["response"]["responses"]
                for partitionresponse in topic["partitionResponses"]
            ]
            sizes.append(sum(partition["recordSetSizeInBytes"] for partition in partitions))
    assert sum(sizes) > 1_000_000
    held = [sum(topic["bytes"] for topic in row["traffic"]) for row in fetches]
    assert held == sizes
    assert all(40 < row["fetch_bytes"] - size < 200 for row, size in zip(fetches, sizes, strict=True))


def test_layouts_that_real_brokers_write() -> None:
    """2.8's Fetch with data shows its release; LeaderAndIsr shows one before 4.0; all others are as in 4.x."""
    requests_found = {log: Counter(values(read(log).requests, "layout")) for log in LOGS}
    assert set(requests_found["2.8.2-zookeeper"]) == {FIRST.name, BEFORE_4_0.name, CURRENT.name}
    assert set(requests_found["3.9.1-zookeeper"]) == {BEFORE_4_0.name, CURRENT.name}
    for log in ("3.7.2", "4.1.2", "4.3.1", "4.4.0"):
        assert set(requests_found[log]) == {CURRENT.name}, log


@cache
def every_version() -> Parsed:
    lines = gzip.decompress((CAPTURES / "lines-of-releases.log.gz").read_bytes()).splitlines()
    return parse_lines(lines, list(range(len(lines))), LogSource(file="lines"))


def test_each_version_that_a_release_answers() -> None:
    """Requests in all versions that 2.8.2 and 3.9.1 answer, and the fetches of a follower, are read and sized."""
    requests_found = every_version()
    assert requests_found.quarantine.to_pylist() == []
    rows = requests_found.requests.to_pylist()
    versions = {(row["api_key"], row["api_version"]) for row in rows}
    assert versions >= {(ApiKey.PRODUCE, number) for number in range(3, 12)}
    assert versions >= {(ApiKey.FETCH, number) for number in range(4, 18)}
    assert versions >= {(ApiKey.CREATE_TOPICS, number) for number in range(2, 8)}
    assert versions >= {(ApiKey.DELETE_TOPICS, number) for number in range(1, 7)}
    assert versions >= {(ApiKey.CREATE_PARTITIONS, number) for number in range(4)}
    assert {row["follower"] for row in rows if row["api_key"] == ApiKey.FETCH} == {True, False}
    for row in rows:
        held = sum(topic["bytes"] for topic in row["traffic"] or ())
        if row["client_id"] == "every-version" and row["api_key"] == ApiKey.PRODUCE:
            assert held < row["produce_bytes"] < held + 200
        elif row["client_id"] == "every-version" and row["api_key"] == ApiKey.FETCH:
            assert 0 < held < row["fetch_bytes"] < held + 200
        elif row["api_key"] in {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS}:
            assert row["topics"][0]["name"].startswith("every-") or row["topics"][0]["name"] == "none"


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_each_layout_has_a_line_of_a_real_broker(layout: Any) -> None:
    """A layout that documentation promises was read from a log, not made after documentation."""
    requests_found = every_version()
    assert layout.name in values(requests_found.requests, "layout")


PARTITION = {"partition": 0, "errorCode": 0, "highWatermark": 9, "abortedTransactions": []}
NEWER = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 9, "abortedTransactions": []}


def fetch(version: int, *topics: dict[str, Any]) -> bytes:
    response = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": list(topics)}
    header = {"requestApiKey": 1, "requestApiVersion": version}
    return line(header=header, request={"replicaId": -1}, response=response)


@pytest.mark.parametrize("version", range(13))
@pytest.mark.parametrize("size", [0, 1, 127, 1 << 20])
def test_old_names_weigh_as_much_as_new_ones(version: int, size: int) -> None:
    """A message has the same size under 2.8's field names as under today's, which are the log's alone."""
    old = fetch(version, {"topic": "t", "partitionResponses": [{**PARTITION, "recordSetSizeInBytes": size}] * 2})
    new = fetch(version, {"topic": "t", "partitions": [{**NEWER, "recordsSizeInBytes": size}] * 2})
    requests_found = parse_lines([old, new], [1, 2], LogSource(file="f")).requests.to_pylist()
    assert requests_found[0]["fetch_bytes"] == requests_found[1]["fetch_bytes"] > 2 * size
    assert requests_found[0]["traffic"] == requests_found[1]["traffic"]
    assert [row["layout"] for row in requests_found] == [FIRST.name, layout_of(1, version, deprecated=False)]


def test_null_records_are_no_bytes() -> None:
    """Kafka logs null instead of a size where a partition has no records."""
    old = fetch(12, {"topic": "t", "partitionResponses": [{**PARTITION, "recordSet": None}]})
    new = fetch(12, {"topic": "t", "partitions": [{**NEWER, "records": None}]})
    requests_found = parse_lines([old, new], [1, 2], LogSource(file="f")).requests.to_pylist()
    assert [[topic["bytes"] for topic in row["traffic"]] for row in requests_found] == [[0], [0]]


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ({"topic": "t"}, "no list of partitions"),
        ({"topic": "t", "answers": []}, "no list of partitions"),
        ({"topic": "t", "partitions": [], "partitionResponses": []}, "two lists of partitions"),
        ({"topic": "t", "partitions": [NEWER]}, "no size of its records"),
        ({"topic": "t", "partitions": [{**NEWER, "recordSetSizeInBytes": 5}]}, "no size of its records"),
        ({"topic": "t", "partitionResponses": [{**PARTITION, "recordsSizeInBytes": 5}]}, "no size of its records"),
    ],
)
def test_what_is_not_understood_is_not_zero(topic: dict[str, Any], why: str) -> None:
    """A Fetch with missing or repeated partitions or sizes is quarantined, and not read as zero bytes."""
    with pytest.raises(Unreadable, match=why):
        LineReader().row(fetch(12, topic))
