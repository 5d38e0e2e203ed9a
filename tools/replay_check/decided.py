"""
When the broker decided on a throttle.

A request waits for others between the end of its handler's work and its answer (`remoteTimeMs`), or it does not, and then what the log
counts as waiting comes after the decision. Produce waits for followers only with acks=-1, and Fetch only when there is less to read than
it asked for. While a JVM is young the difference is tens of ms, and each ms of it is a ms of every throttle that is measured from there.
"""

from dataclasses import replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .apis import FETCH, PRODUCE
from .appended import Appended
from .log import RequestLog, rows, whole
from .sessions import Sessions, Wanted

Json: TypeAlias = Any

_ALL_REPLICAS: Final = -1


def with_decisions(log: RequestLog) -> RequestLog:
    """The log with `timestamp` corrected for Produce and Fetch."""
    produced = _moved(log, _produced(log))
    return _moved(produced, _fetched(produced))


def _produced(log: RequestLog) -> dict[int, int]:
    """Moments of Produce requests that waited for nobody, by line."""
    followed = pc.any(log.requests["follower"]).as_py()
    return {
        line: _without_remote(completed_ms, log.messages[line])
        for line, completed_ms, key in rows(
            log.requests, "line", "completed", "api_key"
        )
        if key == PRODUCE and not (followed and _wants_all(log.messages[line]))
    }


def _wants_all(message: Json) -> bool:
    request = message["request"]
    return bool(request) and request["acks"] == _ALL_REPLICAS


def _fetched(log: RequestLog) -> dict[int, int]:
    """Moments of Fetch requests that found what they asked for, by line."""
    appended, sessions = Appended(log), Sessions()
    found = {}
    columns = rows(log.requests, "line", "completed", "api_key", "follower")
    for line, completed_ms, key, follower in columns:
        message: Json = log.messages.get(line)
        if key != FETCH or follower or not whole(message):
            continue
        decided_ms = _without_remote(completed_ms, message)
        began_ms = decided_ms - message["localTimeMs"]
        wanted = sessions.wanted(message)
        if _there(appended, wanted, began_ms, message["request"]["minBytes"]):
            found[line] = decided_ms
    return found


def _there(
    appended: Appended, wanted: tuple[Wanted, ...], at_ms: float, least: int
) -> bool:
    """Whether so many bytes could be read; what the log does not show was there before it began."""
    total = 0
    for want in wanted:
        there = appended.available(want.topic, want.partition, want.offset, at_ms)
        if there is None:
            return True
        total += there.total
    return total >= least


def _without_remote(completed_ms: int, message: Json) -> int:
    after = ("responseQueueTimeMs", "sendTimeMs", "remoteTimeMs")
    return int(completed_ms - sum(message[name] for name in after))


def _moved(log: RequestLog, moments: dict[int, int]) -> RequestLog:
    times = [
        moments.get(line, timestamp)
        for line, timestamp in rows(log.requests, "line", "timestamp")
    ]
    place = log.requests.schema.get_field_index("timestamp")
    field = log.requests.schema.field(place)
    column = pa.array(times, pa.int64())
    return replace(log, requests=log.requests.set_column(place, field, column))
