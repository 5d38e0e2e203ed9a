"""Lines of request logs for tests: of a real broker, and made after documentation."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

CAPTURE = Path(__file__).parent / "captures" / "kafka-4.3.1-request.log.gz"


def values(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()


@cache
def captured() -> tuple[bytes, ...]:
    return tuple(gzip.decompress(CAPTURE.read_bytes()).splitlines())


def line(
    *,
    time: str = "2026-11-21 09:02:00,655",
    request: Any = None,
    response: Any = None,
    header: dict[str, Any] | None = None,
    pattern: str = "[{time}] DEBUG Completed request:{json} (kafka.request.logger)",
    **changed: Any,
) -> bytes:
    """A line of one Heartbeat, with other fields where given; `leave_out` names some to leave out."""
    entry: dict[str, Any] = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": 12,
            "requestApiVersion": 4,
            "correlationId": 7,
            "clientId": "app",
            "requestApiKeyName": "HEARTBEAT",
            **(header or {}),
        },
        "request": {"groupId": "g"} if request is None else request,
        "response": {"throttleTimeMs": 0, "errorCode": 0} if response is None else response,
        "connection": "10.0.0.1:9092-10.0.0.9:40000-3-1",
        "totalTimeMs": 6.0,
        "requestQueueTimeMs": 1.0,
        "localTimeMs": 2.5,
        "remoteTimeMs": 10.0,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.25,
        "sendTimeMs": 1.5,
        "securityProtocol": "PLAINTEXT",
        "principal": "User:alice",
        "listener": "CLIENTS",
        "clientInformation": {"softwareName": "x", "softwareVersion": "1"},
    }
    for name in changed.pop("leave_out", ()):
        del entry[name]
    text = json.dumps({**entry, **changed}, separators=(",", ":"))
    return pattern.format(time=time, json=text).encode()


def mutation(  # noqa: PLR0913 - fields of a request
    api: str,
    topics: list[dict[str, Any]],
    *,
    time: str = "2026-11-21 09:02:00,655",
    version: int | None = None,
    answers: list[dict[str, Any]] | None = None,
    throttle_ms: int = 0,
    number: int = 7,
    **changed: Any,
) -> bytes:
    """A line of `create`, `delete` or `enlarge`; its answer has no error unless other answers are given."""
    key, newest, request_body, answered = {
        "create": (19, 7, "topics", "topics"),
        "delete": (20, 6, "topics", "responses"),
        "enlarge": (37, 3, "topics", "results"),
    }[api]
    answered_topics = answers or [{"name": topic["name"], "errorCode": 0} for topic in topics]
    request = {request_body: topics, **changed.pop("more", {})}
    header = {
        "requestApiKey": key,
        "requestApiVersion": newest if version is None else version,
        "correlationId": number,
    }
    response = {"throttleTimeMs": throttle_ms, answered: answered_topics}
    return line(time=time, request=request, response=response, header=header, **changed)


def topic(name: str, partitions: int = -1, assignments: int = 0) -> dict[str, Any]:
    placed = [{"partitionIndex": number, "brokerIds": [1]} for number in range(assignments)]
    return {"name": name, "numPartitions": partitions, "assignments": placed}
