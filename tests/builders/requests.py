"""One request of a client, as a line of a log, as a row of requests, and as a row of usage history."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

PRODUCE, FETCH, METADATA, CREATE_TOPICS = 0, 1, 3, 19
START_MS = 1_700_000_000_000
"""A whole second."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose fields tests vary; each form also takes changes of its own fields."""

    after_ms: int = 0
    """Time since the request before, where a test places several one after another."""
    user: str = "alice"
    client_id: str = "app"
    broker: str = "1"
    connection: int = 1
    api_key: int = METADATA
    api_version: int = 7
    cost: int = 0
    """Bytes or partitions that its quota charges."""
    request_us: int | None = None
    network_us: int | None = None
    network_after_ms: int = 1
    """Time from the decision to the completion."""
    throttle_ms: int = 0
    withheld: bool = False
    """Whether the log shows it answered empty, or refused."""
    granted: int = 0
    """Of a mutation that was refused: partitions that were granted before."""
    wait_ms: int = 0
    """Time from the charge of a mutation to the decision."""
    at_ms: int = START_MS
    """Time of the decision: ms since 1970, UTC."""

    def history(self, **columns: Any) -> dict[str, Any]:
        """Return a row of `HISTORY` with these changes."""
        return {**self._columns(), "connection": self.connection, "mutations": self._partitions(), **columns}

    def row(self, **columns: Any) -> dict[str, Any]:
        """Return a row of `REQUESTS` with these changes."""
        return {
            **self._columns(),
            "listener": "CLIENTS",
            "connection": self._address(),
            "correlation_id": 7,
            "partitions_created": self._partitions(),
            "mutations_known": True,
            "broker_throttle_ms": self.throttle_ms,
            "forwarded": False,
            "follower": False,
            **columns,
        }

    def line(
        self,
        *,
        time: str = "",
        request: Any = None,
        response: Any = None,
        header: dict[str, Any] | None = None,
        pattern: str = "[{time}] DEBUG Completed request:{json} (kafka.request.logger)",
        **fields: Any,
    ) -> bytes:
        """
        Return a line of a log with these changes of its JSON.

        `header` adds to the usual fields of a header, and `leave_out` names fields that the line lacks.
        """
        entry: dict[str, Any] = {
            "isForwarded": False,
            "requestHeader": {
                "requestApiKey": self.api_key,
                "requestApiVersion": self.api_version,
                "correlationId": 7,
                "clientId": self.client_id,
                "requestApiKeyName": "HEARTBEAT",
                **(header or {}),
            },
            "request": {"groupId": "g"} if request is None else request,
            "response": {"throttleTimeMs": self.throttle_ms, "errorCode": 0} if response is None else response,
            "connection": self._address(),
            "totalTimeMs": 6.0,
            "requestQueueTimeMs": 1.0,
            "localTimeMs": (self.request_us or 0) / 1e3,
            "remoteTimeMs": 10.0,
            "throttleTimeMs": self.throttle_ms,
            "responseQueueTimeMs": 0.25,
            "sendTimeMs": (self.network_us or 0) / 1e3,
            "securityProtocol": "PLAINTEXT",
            "principal": f"User:{self.user}",
            "listener": "CLIENTS",
            "clientInformation": {"softwareName": "x", "softwareVersion": "1"},
        }
        for name in fields.pop("leave_out", ()):
            del entry[name]
        text = json.dumps({**entry, **fields}, separators=(",", ":"))
        return pattern.format(time=time or self._completed_text(), json=text).encode()

    def _columns(self) -> dict[str, Any]:
        """Return what both tables have."""
        mutates = self.api_key == CREATE_TOPICS
        fetches = self.api_key == FETCH and not self.withheld
        return {
            "user": self.user,
            "client_id": self.client_id,
            "broker": self.broker,
            "timestamp": self.at_ms,
            "completed": self.at_ms + self.network_after_ms,
            "api_key": self.api_key,
            "api_version": self.api_version,
            "produce_bytes": self.cost if self.api_key == PRODUCE else None,
            "fetch_bytes": self.cost if fetches else None,
            "thread_time_ms": None if self.request_us is None else self.request_us / 1e3,
            "network_time_ms": None if self.network_us is None else self.network_us / 1e3,
            "mutations_charged": (self.granted if self.withheld else self.cost) if mutates else None,
            "mutation_timestamp": self.at_ms - self.wait_ms if mutates else None,
            "refused": mutates and self.withheld,
            "throttle_ms": self.throttle_ms,
        }

    def _partitions(self) -> int | None:
        return self.cost if self.api_key == CREATE_TOPICS else None

    def _address(self) -> str:
        return f"10.0.0.1:9092-10.0.0.9:40000-3-{self.connection}"

    def _completed_text(self) -> str:
        """Return the time of the line as Kafka's own pattern writes it."""
        moment = datetime.fromtimestamp((self.at_ms + self.network_after_ms) / 1e3, UTC)
        return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1_000:03d}"


HEARTBEAT = Request(
    api_key=12, api_version=4, request_us=2_500, network_us=1_500, network_after_ms=12, at_ms=1_795_251_720_643
)
"""Usual line: a Heartbeat that was completed at 2026-11-21 09:02:00,655."""


def line(**changed: Any) -> bytes:
    """Return the line of a Heartbeat with these changes, as `Request.line` takes them."""
    return HEARTBEAT.line(**changed)


def mutation(
    api: str,
    topics: list[dict[str, Any]],
    *,
    version: int | None = None,
    answers: list[dict[str, Any]] | None = None,
    throttle_ms: int = 0,
    number: int = 7,
    **changed: Any,
) -> bytes:
    """Return a line of `create`, `delete` or `enlarge`; its answer has no error unless other answers are given."""
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
    return line(request=request, response=response, header=header, **changed)


def topic(name: str, partitions: int = -1, assignments: int = 0) -> dict[str, Any]:
    """Return a topic in the request of a `mutation`."""
    placed = [{"partitionIndex": number, "brokerIds": [1]} for number in range(assignments)]
    return {"name": name, "numPartitions": partitions, "assignments": placed}
