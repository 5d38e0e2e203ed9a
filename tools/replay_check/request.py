"""What the replay needs to know of an answered request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics import Principal
from quotascope.pipeline.history.charges import EXEMPT_APIS, EXEMPT_ON_CONTROLLERS

from .apis import PRODUCE
from .log import rows

NS_PER_MS: Final = 1e6
_COLUMNS: Final = (
    "timestamp", "completed", "line", "connection", "correlation_id", "api_key", "api_version", "user", "client_id", "request_bytes",
    "thread_time_ms", "network_time_ms", "throttle_ms", "broker_throttle_ms", "forwarded", "follower", "topics",
    "mutation_timestamp",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One line of the log."""

    line: int
    decided_ms: int
    """Epoch ms at which the broker decided on the throttle."""
    completed_ms: int
    """Epoch ms at which the answer had left."""
    principal: Principal
    client_id: str
    connection: str
    correlation_id: int
    api_key: int
    api_version: int
    produced: int | None
    """Bytes that the Produce quota is charged; None for other requests."""
    thread_ns: int
    """Ns of a handler thread."""
    send_ms: float
    """Ms from the moment a network thread took the answer until it had left."""
    told_ms: int
    """The throttle in the answer."""
    own_ms: int
    """The throttle that this process found itself; the answer to a forwarded request holds the controller's as well."""
    forwarded: bool
    """Whether it came from a broker, in the name of its client."""
    exempt: bool
    """Whether the request quota leaves its thread time out."""
    charged_ms: int | None
    """Epoch ms at which the controller charged its mutations; None when it makes none."""
    topics: tuple[Mapping[str, Any], ...]
    """What it creates, enlarges or deletes (`quotascope.pipeline.request_log.schema.TOPIC`)."""

    @property
    def identity(self) -> tuple[str, str, int, int]:
        """What both lines of a forwarded request have in common."""
        return self.principal.name, self.client_id, self.correlation_id, self.api_key


def requests_of(requests: pa.Table) -> Iterator[Request]:
    """The rows of a table of requests."""
    principals: dict[str, Principal] = {}
    for values in rows(requests, *_COLUMNS):
        row = dict(zip(_COLUMNS, values, strict=True))
        user = row["user"]
        principal = principals.setdefault(user, Principal(user))
        yield _request(row, principal)


def _request(row: Mapping[str, Any], principal: Principal) -> Request:
    own_ms, told_ms = row["broker_throttle_ms"], row["throttle_ms"]
    return Request(
        line=row["line"],
        decided_ms=row["timestamp"],
        completed_ms=row["completed"],
        principal=principal,
        client_id=row["client_id"] or "",
        connection=row["connection"],
        correlation_id=row["correlation_id"],
        api_key=row["api_key"],
        api_version=row["api_version"],
        produced=row["request_bytes"],
        thread_ns=round(row["thread_time_ms"] * NS_PER_MS),
        send_ms=row["network_time_ms"],
        told_ms=own_ms if told_ms is None else told_ms,
        own_ms=own_ms,
        forwarded=row["forwarded"],
        exempt=_exempt(row),
        charged_ms=row["mutation_timestamp"],
        topics=tuple(row["topics"] or ()),
    )


def _exempt(row: Mapping[str, Any]) -> bool:
    """Whether Kafka books the time as exempt: what brokers do among themselves, and Produce without an answer."""
    key = row["api_key"]
    unanswered = key == PRODUCE and row["throttle_ms"] is None
    among_brokers = row["follower"] or key in EXEMPT_APIS
    on_controller = row["forwarded"] and key in EXEMPT_ON_CONTROLLERS
    return bool(unanswered or among_brokers or on_controller)
