"""
Requests in lines that are not Kafka's own pattern.

They are wrapped into JSON by a log agent or by a layout of log4j2, quoted, or text of old brokers.

A wrapped message is read where exactly one field holds a request. Where several do, or one line holds several requests,
the fields are named instead of chosen from. Names of the broker are taken only from what the broker or its pod writes,
never from what a client sends.
"""

import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from .schema import Reason, Unreadable
from .times import Clock, Moment, of_value

Json: TypeAlias = Any
MARK: Final = b"Completed request:"
_MARK_TEXT: Final = MARK.decode()
_DEEPEST: Final = 4
"""Greatest number of layers of JSON around a message: an agent of an agent of a layout."""
_BYTES: Final = range(256)
_TIMES: Final = (
    "instant", "timeMillis", "@timestamp", "timestamp", "time", "ts", "date", "eventTime", "_SOURCE_REALTIME_TIMESTAMP",
    "__REALTIME_TIMESTAMP", "_time",
)  # fmt: skip
"""
Fields with the time of a message, the event's own before an agent's.

The time of arrival is never one of them (`ingestionTime`, `receiveTimestamp`).
"""
_PODS: Final = ("pod_name", "pod", "kubernetes_pod_name")
_THREADS: Final = frozenset(("thread", "thread_name", "threadName", "_threadName", "process.thread.name"))
_NODE: Final = re.compile(r"kafka-network-thread-(\d{1,10})-ListenerName\(")
"""The thread that logs a request (`SocketServer.Processor`) has the number of its node."""
_NODE_BYTES: Final = re.compile(_NODE.pattern.encode())
_OLD_TEXTS: Final = (
    (b"RequestHeader(", "1.0 to 2.7"),
    (b"{api_key=", "0.9 to 0.11"),
    (b"{api_key:", "0.9 to 0.11"),
    (b"Name:", "0.8 to 0.10"),
)
"""
Beginnings of texts of brokers before KIP-673, and the releases of Kafka that write them.

Kafka writes them by `RequestHeader.toString`, `Struct.toString` and `RequestOrResponse.describe`.
"""
_API_KEY: Final = re.compile(rb'requestApiKey\\{0,8}":\s{0,4}(\d{1,5})')
_CLIENT_ID: Final = re.compile(rb'"clientId\\{0,8}":\s{0,4}\\{0,8}"((?:[^"\\]|\\[^"])*)')
_PRINCIPAL: Final = re.compile(rb'"principal\\{0,8}":\s{0,4}\\{0,8}"User:((?:[^"\\]|\\[^"])*)')
_MOST_API_KEY: Final = (1 << 15) - 1
_DECODER: Final = JSONDecoder()
_NULL_MESSAGE: Final = re.compile(rb'"MESSAGE"\s*:\s*null')
_BLOB: Final = re.compile(rb"\[\d[\d.]*[BKMG]? blob data\]\s*$")
_WIDE_MARK: Final = b"\0".join(b"Completed"[index : index + 1] for index in range(9))
_NAMES_OF_REQUEST: Final = (b"requestHeader", b"requestApiKey", b"principal", b"connection")
"""Fields that the JSON of each request has."""


class Wrapped(NamedTuple):
    """A request and what its line says besides."""

    prefix: bytes
    """The text in front of `Completed request:`."""
    json: bytes
    """From `{` to the end."""
    moment: Moment | None
    """The time in a field beside the message."""
    broker: str | None
    """The node or pod that wrote it; None where the line names none."""


def unwrapped(line: bytes, clock: Clock) -> Wrapped:
    """Find the request of a line. Raises `Unreadable`."""
    line = line.removeprefix(b"\xef\xbb\xbf")
    if not line.strip(b" \t\r\n\v\f\0"):
        raise Unreadable(Reason.EMPTY, "nothing but white space")
    return _unwrapped(line, clock, None, None, 0)


def _unwrapped(line: bytes, clock: Clock, moment: Moment | None, broker: str | None, depth: int) -> Wrapped:
    """
    Find the request of a line that may be JSON of an agent, whose fields are searched in turn. Raises `Unreadable`.

    `moment` and `broker` are those of the layers of JSON around the line, of which there are `depth`.
    """
    mark = line.find(MARK)
    brace = line.find(b"{", 0, mark if mark >= 0 else None)
    if brace >= 0 and depth < _DEEPEST and (mark >= 0 or b"MESSAGE" in line):
        outer = _json_at(line, brace)
        if outer is not None:
            return _of_fields(outer, line[:brace], clock, (moment, broker), depth, line)
    if mark < 0:
        raise _without_mark(line)
    prefix, json = line[:mark], line[mark + len(MARK) :].lstrip(b" ")
    if node := _NODE_BYTES.search(prefix):
        broker = node[1].decode()
    return Wrapped(prefix, _object(json), moment, broker)


def _object(json: bytes) -> bytes:
    """Return the JSON object in the text after the mark, unquoted if it is in a quoted field. Raises `Unreadable`."""
    for begin, releases in _OLD_TEXTS:
        if json.startswith(begin):
            raise Unreadable(Reason.OLD_LAYOUT, f"text as Kafka {releases} writes it, not JSON")
    if not json:
        raise Unreadable(
            Reason.SEVERAL_LINES,
            (
                "the line ends before its JSON begins: it is cut, or the JSON is in the next lines; write each request "
                "on one line"
            ),
        )
    if not json.startswith(b"{"):
        raise Unreadable(Reason.NOT_JSON, "no `{` after `Completed request:`")
    text = json[: json.rfind(b"}") + 1]
    if json.strip() in (b"{", b"{\\n"):
        raise Unreadable(
            Reason.SEVERAL_LINES,
            "the JSON goes on in the next lines: write each request on one line, such as with `jq -c`",
        )
    if json.startswith(b'{\\"'):  # in a quoted value, such as of logfmt, or in JSON over several lines
        with_quotes = b'"' + text + b'"'
        try:
            return msgspec.json.decode(with_quotes, type=str).encode("utf-8", "surrogatepass")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreadable(Reason.TRUNCATED, f"a quoted text that ends in the middle: {error}") from error
    if json.startswith(b'{""'):  # in CSV
        return text.replace(b'""', b'"')
    return text


def object_of(text: bytes) -> bytes:
    """
    Return the JSON object at the begin of a text, without the text after it; the whole text if there is no object.

    A log pattern may print other text after the object (`%X`, the fields of logfmt).
    """
    whole = text.decode("utf-8", "surrogateescape")
    try:
        _, end = _DECODER.raw_decode(whole)
    except (ValueError, RecursionError):
        return text
    return whole[:end].encode("utf-8", "surrogateescape")


def requests_of(line: bytes) -> list[bytes]:
    """
    Split a line with several requests, and return each with the text in front of it.

    A request ends with its JSON object, so that no text of a client within the object begins another request.
    """
    text = line.decode("utf-8", "surrogateescape")
    requests: list[str] = []
    begin, mark = 0, text.find(_MARK_TEXT)
    while mark >= 0:
        after_mark = mark + len(_MARK_TEXT)
        around = text[after_mark : after_mark + 8]
        spaces = len(around) - len(around.lstrip(" "))
        try:
            _, end = _DECODER.raw_decode(text, after_mark + spaces)
        except (ValueError, RecursionError):
            break
        mark = text.find(_MARK_TEXT, end)
        if mark >= 0:
            requests.append(text[begin:end])
            begin = end
    requests.append(text[begin:])
    return [request.encode("utf-8", "surrogateescape") for request in requests]


class Named(NamedTuple):
    """Names of the request in a line that cannot be read, as far as they are left."""

    broker: str | None = None
    api_key: int | None = None
    user: str | None = None
    client_id: str | None = None


def named_in(line: bytes) -> Named:
    """Return the names of a request that an unreadable line still has, also if it is quoted or cut."""
    mark = line.find(MARK)
    if mark < 0:
        return Named()
    node = _NODE_BYTES.search(line, 0, mark)
    key = _API_KEY.search(line, mark)
    names = (_CLIENT_ID.search(line, mark), _PRINCIPAL.search(line, mark))
    client_id, user = (match[1].replace(b"\\", b"").decode("utf-8", "replace") if match else None for match in names)
    number = int(key[1]) if key else None
    return Named(
        node[1].decode() if node else None,
        number if number is not None and number <= _MOST_API_KEY else None,
        user,
        client_id,
    )


def _json_at(line: bytes, brace: int) -> Json:
    """Return the JSON of an agent that begins with the first brace of a line; None if there is none."""
    # from the brace on, or from a bracket before it if only blanks are around the bracket: then it is a list
    begin = brace
    bracket = line.rfind(b"[", 0, brace)
    if bracket >= 0 and not line[bracket + 1 : brace].strip() and not line[:bracket].strip():
        begin = bracket
    end = max(line.rfind(b"}"), line.rfind(b"]")) + 1
    try:
        return msgspec.json.decode(line[begin:end])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _without_mark(line: bytes) -> Unreadable:
    """Return an error for a text without `Completed request:`: it is no request, or another program has changed it."""
    if _NULL_MESSAGE.search(line):
        return Unreadable(
            Reason.TRUNCATED,
            "journalctl leaves out messages above 4,096 bytes: export with `journalctl -o json --all`",
        )
    if _BLOB.search(line):
        return Unreadable(
            Reason.TRUNCATED, "journalctl shows a size instead of the message: export with `journalctl -o json --all`"
        )
    if _WIDE_MARK in line:
        return Unreadable(Reason.ENCODING, "text in UTF-16: convert it, such as with iconv -f UTF-16 -t UTF-8")
    if all(name in line for name in _NAMES_OF_REQUEST):
        return Unreadable(
            Reason.WRAPPED,
            (
                "the JSON of a request without `Completed request:` in front of it: pass Kafka's message as "
                "it is, not parsed"
            ),
        )
    return Unreadable(Reason.NOT_A_REQUEST, "does not say `Completed request:`")


def _of_fields(
    outer: Json, prefix: bytes, clock: Clock, outside: tuple[Moment | None, str | None], depth: int, line: bytes
) -> Wrapped:
    """Return the request in the fields of an agent's JSON. Raises `Unreadable`."""
    messages = list(_messages(outer, "", ()))
    if not messages:
        raise _without_mark(line)
    if len({text.strip() for _, text, _ in messages}) > 1:
        names = ", ".join(sorted({path for path, _, _ in messages})[:4])
        several = "in each of the fields" if len(messages) > 1 else "in the field"
        raise Unreadable(
            Reason.WRAPPED,
            f"a request is {several} {names[:300]}: pass the text of one of them alone, one request a line",
        )
    _, text, around = messages[0]
    if text.count(_MARK_TEXT) > 1 and "\n" in text.strip():
        raise Unreadable(
            Reason.WRAPPED, f"several requests are in the field {messages[0][0][:300]}: write each on one line"
        )
    moment, broker = outside
    moment = _moment(around, clock) or moment
    if moment is None and prefix.strip():
        try:
            moment = clock.last_in(prefix)
        except Unreadable:
            moment = None
    broker = _broker(around) or broker
    return _unwrapped(text.encode("utf-8", "surrogatepass").rstrip(b"\r\n"), clock, moment, broker, depth + 1)


def _messages(
    value: Json, path: str, around: tuple[dict[str, Any], ...]
) -> Iterator[tuple[str, str, tuple[dict[str, Any], ...]]]:
    """Yield path, text and the objects around it, from the inside, of each field that holds a request."""
    if isinstance(value, str):
        if _MARK_TEXT in value:
            yield path, value, around
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _messages(inner, f"{path}.{name}" if path else name, (value, *around))
    elif isinstance(value, list):
        if value and all(isinstance(number, int) and number in _BYTES for number in value):  # bytes, as of journald
            yield from _messages(bytes(value).decode("utf-8", "replace"), path, around)
            return
        for inner in value:
            yield from _messages(inner, f"{path}[]", around)


def _moment(around: tuple[dict[str, Any], ...], clock: Clock) -> Moment | None:
    """Return the time in a field of the innermost object that has one; None without one."""
    for fields in around:
        for name in _TIMES:
            if name in fields and (moment := of_value(fields[name], clock)) is not None:
                return moment
    return None


def _broker(around: tuple[dict[str, Any], ...]) -> str | None:
    """Return the node of the thread, else the pod, that an agent or a layout names in fields of its own."""
    for fields in around:
        process = fields.get("process")
        inner = process.get("thread") if isinstance(process, dict) else None
        threads = [value for name, value in fields.items() if name in _THREADS]
        threads.append(inner.get("name") if isinstance(inner, dict) else None)
        for thread in threads:
            if isinstance(thread, str) and (node := _NODE.search(thread)):
                return node[1]
    for fields in around:
        for name in ("kubernetes", "labels", "stream", "resource"):
            about = fields.get(name)
            about = about.get("labels", about) if isinstance(about, dict) and name == "resource" else about
            if not isinstance(about, dict):
                continue
            for name_of_pod in _PODS:
                pod = about.get(name_of_pod)
                pod_name = pod.get("name") if isinstance(pod, dict) else pod
                if isinstance(pod_name, str) and pod_name:
                    return pod_name
    return None
