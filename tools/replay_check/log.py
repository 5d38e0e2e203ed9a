"""One process's request log, read whole: the rows that the pipeline makes of it, and the messages of a few APIs that tell more."""

import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
import pyarrow as pa

from quotascope.metrics import KafkaRelease
from quotascope.pipeline.errors import EmptyLog, PipelineError
from quotascope.pipeline.request_log.parsing import Parsed, Source, parse_lines
from quotascope.pipeline.request_log.releases import last_named

from .apis import (
    ALTER_CLIENT_QUOTAS,
    CREATE_TOPICS,
    FETCH,
    METADATA,
    PRODUCE,
)
from .shapes import readable

Json: TypeAlias = Any

_TELLING: Final = frozenset(
    {PRODUCE, FETCH, METADATA, CREATE_TOPICS, ALTER_CLIENT_QUOTAS}
)
_MARK: Final = b"Completed request:"
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLog:
    """What a log holds."""

    requests: pa.Table
    """`REQUESTS`, a forwarded request still twice where both its lines are here; `line` counts from 1."""
    messages: Mapping[int, Json]
    """The JSON of a line by its number: of Produce, Fetch, Metadata, CreateTopics and AlterClientQuotas."""
    release: KafkaRelease | None
    """Of the broker, where it answered a client's ApiVersions with the features that it supports."""
    unreadable: int
    """Lines that are not requests, not whole, or of another shape than Kafka's."""


def read_log(path: Path) -> RequestLog:
    """The log in a file, gzipped or not. Raises `EmptyLog` when no line of it is a request, `PipelineError` when it cannot be read."""
    try:
        content = path.read_bytes()
        text = gzip.decompress(content) if content.startswith(_GZIP) else content
    except (OSError, EOFError, zlib.error) as error:
        raise PipelineError(f"{path}: {error}") from error
    return log_of(text.splitlines(), str(path))


def log_of(lines: list[bytes], name: str) -> RequestLog:
    """The log in some lines; `name` is for messages. Raises `EmptyLog`."""
    source = Source(file=name, broker=name)
    parsed = parse_lines(lines, range(1, len(lines) + 1), source)
    read = dict(_messages(parsed.requests, lines))
    odd = {line for line, message in read.items() if message is None}
    requests = _without(parsed.requests, odd)
    if not len(requests):
        raise EmptyLog(
            f"{name}: no line is a request as kafka.request.logger writes it"
        )
    return RequestLog(
        requests=requests,
        messages={line: message for line, message in read.items() if message},
        release=_release(parsed),
        unreadable=len(lines) - len(requests),
    )


def rows(requests: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Values of some columns, row by row."""
    return zip(*(requests[name].to_pylist() for name in columns), strict=True)


def whole(message: Json) -> bool:
    """Whether a message has both its parts: a request is empty where the log was switched on in the middle of it, an answer where none was sent."""
    return bool(message and message["request"] and message["response"])


def _without(requests: pa.Table, odd: Collection[int]) -> pa.Table:
    return requests.filter(
        pa.array([line not in odd for (line,) in rows(requests, "line")], pa.bool_())
    )


def _release(parsed: Parsed) -> KafkaRelease | None:
    """The release that was named last, after a restart."""
    named = last_named(parsed.requests["timestamp"], parsed.levels)
    return max(named, key=lambda release: (named[release], release), default=None)


def _messages(requests: pa.Table, lines: list[bytes]) -> Iterator[tuple[int, Json]]:
    """The JSON of the lines that tell more, None where it cannot be read."""
    for number, key in rows(requests, "line", "api_key"):
        if key in _TELLING:
            yield number, _message(lines[number - 1])


def _message(line: bytes) -> Json:
    start = line.index(b"{", line.index(_MARK))
    try:
        message = orjson.loads(line[start : line.rindex(b"}") + 1])
    except orjson.JSONDecodeError:
        return None
    return message if readable(message) else None
