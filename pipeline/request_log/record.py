"""One line of a request log as one row of `REQUESTS`."""

from datetime import UTC, tzinfo
from hashlib import sha256
from typing import Any, Final, TypeAlias

from ..errors import PipelineError, UnknownVersion
from .bounds import check
from .content import content_of
from .entry import Entry, entry_of
from .layouts import layout_of
from .log_time import LogTime
from .reasons import Reason, Unreadable

Row: TypeAlias = tuple[Any, ...]

FIELDS: Final = (
    "timestamp", "completed", "broker", "listener", "connection", "correlation_id", "api_key", "api_version", "user", "client_id",
    "request_bytes", "response_bytes", "thread_time_ms", "network_time_ms", "mutation_timestamp", "topics", "throttle_ms",
    "broker_throttle_ms", "quota_violated", "forwarded", "follower", "layout", "identity",
)  # fmt: skip
"""The columns that a line tells by itself, in the order of a row."""

IDENTITY: Final = 16
"""Bytes of an identity: of the hash of the completion and of the line's JSON, which holds connection, correlation id and times in µs."""

_MARK: Final = b"Completed request:"
_USUAL: Final = b"] DEBUG Completed request:{"
_USUAL_AT: Final = slice(24, 24 + len(_USUAL))
_USUAL_START: Final = 24 + len(_USUAL) - 1
_WRONG_SHAPE: Final = (
    PipelineError, AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError,
)  # fmt: skip


class LineReader:
    """Reads lines of one broker's log, or of brokers whose clocks are in one zone."""

    __slots__ = ("_broker", "_time")

    def __init__(self, broker: str | None = None, zone: tzinfo = UTC) -> None:
        """`broker` None takes the address in `connection`."""
        self._broker = broker
        self._time = LogTime(zone)

    def row(self, line: bytes) -> Row:
        """The values of `FIELDS`. Raises `Unreadable`."""
        if line[_USUAL_AT] == _USUAL:
            completed, start = self._usual_time(line), _USUAL_START
        else:
            completed, start = self._unusual(line)
        text = line[start : line.rfind(b"}") + 1]
        entry = entry_of(text)
        try:
            return self._values(completed, entry, text)
        except UnknownVersion as error:
            raise Unreadable(Reason.UNKNOWN_VERSION, str(error)) from error
        except _WRONG_SHAPE as error:
            raise Unreadable(Reason.UNKNOWN_SHAPE, _told(error)) from error

    def _usual_time(self, line: bytes) -> int:
        try:
            return self._time.usual(line)
        except ValueError:
            return self._time.any(line[:_USUAL_START])

    def _unusual(self, line: bytes) -> tuple[int, int]:
        """Completion and where the JSON begins, under a pattern that is not Kafka's own."""
        mark = line.find(_MARK)
        if mark < 0:
            raise _no_request(line)
        start = mark + len(_MARK)
        start += len(line) - start - len(line[start:].lstrip(b" "))
        if line[start : start + 1] != b"{":
            raise _no_json(line[start : start + 32])
        return self._time.any(line[:mark]), start

    def _values(self, completed: int, entry: Entry[Any, Any], text: bytes) -> Row:
        header = entry.request_header
        key, version = header.request_api_key, header.request_api_version
        check(completed, entry)
        sent = entry.send_time_ms
        decided = completed - entry.response_queue_time_ms - sent
        content = content_of(entry)
        if not content.waited:
            decided -= entry.remote_time_ms
        connection = entry.connection
        return (
            int(decided),
            completed,
            self._broker or connection.partition("-")[0].rpartition(":")[0],
            entry.listener,
            connection,
            header.correlation_id,
            key,
            version,
            _name(entry.principal),
            header.client_id,
            content.request_bytes,
            content.response_bytes,
            entry.local_time_ms,
            sent,
            None if content.topics is None else int(decided - entry.remote_time_ms),
            content.topics,
            content.throttle_ms,
            entry.throttle_time_ms,
            content.refused,
            entry.is_forwarded,
            content.follower,
            layout_of(key, version, deprecated=header.request_api_version_deprecated),
            sha256(b"%d%b" % (completed, text)).digest()[:IDENTITY],
        )


def _name(principal: str) -> str:
    """The name in a principal, which quotas match without its type."""
    if principal.startswith("User:"):
        return principal[5:]
    kind, colon, name = principal.partition(":")
    return name if colon else kind


def _told(error: Exception) -> str:
    return f"there is no field {error}" if isinstance(error, KeyError) else str(error)


def _no_request(line: bytes) -> Unreadable:
    if not line.strip():
        return Unreadable(Reason.EMPTY, "nothing but white space")
    return Unreadable(Reason.NOT_A_REQUEST, "does not say `Completed request:`")


def _no_json(beginning: bytes) -> Unreadable:
    if beginning.startswith(b"RequestHeader("):
        return Unreadable(
            Reason.OLD_LAYOUT, "text as written by brokers before 2.8, not JSON"
        )
    if not beginning:
        return Unreadable(Reason.TRUNCATED, "ends before its JSON begins")
    return Unreadable(Reason.NOT_JSON, "no `{` after `Completed request:`")
