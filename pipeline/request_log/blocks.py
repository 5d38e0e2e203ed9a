"""
Many lines of Kafka's own pattern at once, a column after the other instead of a row after the other.

A line's JSON is decoded, and checked, by the decoders of `LineReader`. What follows from its fields is computed in
columns for the requests that make up a log: Produce, Fetch, ShareFetch, and all whose lines are read for no more than
their throttle. Whatever is not certain to be the row of `LineReader.row` is refused, and is read there, so that a bad
line costs no time but its own.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, tzinfo
from hashlib import sha256
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from quotascope.metrics.kafka.protocol import ApiKey

from ..columns import Column, Numbers, array
from ..releases import layout_of
from .block_sizes import Charged, Mask, charged_fetch, charged_produce, charged_share_fetch, lengths_of, texts
from .line import (
    ALL_REPLICAS,
    FIRST_MS,
    IDENTITY,
    LAST_MS,
    MS,
    STAMP,
    USUAL_START,
    WRONG_SHAPE,
    broker_in,
    content_of,
    user_of,
)
from .messages import (
    BEGINNING,
    BY_TEXT,
    KEY,
    OF_API,
    Decode,
    FetchRequest,
    FetchResponse,
    LogLine,
    ProduceRequest,
    ShareFetchResponse,
    plain,
)
from .rows import FIELD_SCHEMA, MISFIT, flattened, nested
from .schema import Reason, Unreadable
from .times import Clock

AT_ONCE: Final = 4096
"""Number of lines whose fields are held in memory at once; columns of fewer lines take longer."""
FEWEST: Final = 16
"""Number of lines that are worth columns."""
BISECTED: Final = 64
"""Number of lines that are refused together if a value among them does not fit; more are halved to find it."""
_BITS: Final = 15
"""Number of bits of an API key, and of a version."""
_BAD_LINE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, Unreadable)
_PRODUCE: Final = OF_API[ApiKey.PRODUCE]
_FETCH: Final = OF_API[ApiKey.FETCH]
_SHARE_FETCH: Final = OF_API[ApiKey.SHARE_FETCH]
_Line: TypeAlias = LogLine[Any, Any]


class Block(NamedTuple):
    """Rows of lines, and lines without rows."""

    rows: pa.Table
    """Rows in `FIELDS`."""
    places: list[int]
    """Place of the line of each row, ascending."""
    refused: list[int]
    """Places of the lines that are left to `LineReader.row`, ascending."""


class BlockReader:
    """Reads lines of brokers with clocks in one zone."""

    __slots__ = ("_broker", "_clock")

    def __init__(self, broker: str | None = None, zone: tzinfo = UTC) -> None:
        """Create a reader; without a `broker`, rows take the address in `connection`."""
        self._broker = broker
        self._clock = Clock(zone)

    def read(self, lines: Sequence[bytes]) -> Block:
        """Return the rows of lines of Kafka's own pattern (`USUAL`)."""
        batches: list[pa.RecordBatch] = []
        block = Block(FIELD_SCHEMA.empty_table(), [], [])
        for start in range(0, len(lines), AT_ONCE):
            decoded = self._decoded(lines[start : start + AT_ONCE], start, block.refused)
            self._add(decoded, batches, block)
        block.refused.sort()
        return block._replace(rows=pa.Table.from_batches(batches, FIELD_SCHEMA))

    def _decoded(self, lines: Sequence[bytes], start: int, refused: list[int]) -> "_Decoded":
        """Return the fields of lines, the first of which has the place `start`."""
        decoded = _Decoded()
        places, decoders, entries, times, digests = decoded.lists()
        decoder_of, stamp, completed, time_text = BY_TEXT.get, b"", 0, b""
        for place, line in enumerate(lines, start=start):
            text = line[USUAL_START : line.rfind(b"}") + 1]
            begin = text.find(KEY, 0, BEGINNING) + len(KEY)
            decode = decoder_of(text[begin : begin + 2], plain)
            try:
                if line[STAMP] != stamp:  # lines of one moment are next to each other
                    completed = self._completed(line[STAMP])
                    stamp, time_text = line[STAMP], b"%d" % completed
                entries.append(decode(text))
            except _BAD_LINE:
                refused.append(place)
                continue
            decoders.append(decode)
            places.append(place)
            times.append(completed)
            digests.append(sha256(time_text + text).digest())
        return decoded

    def _completed(self, stamp: bytes) -> int:
        """Return ms since 1970 of a text such as `2026-11-21 09:02:00,655`. Raises `Unreadable`."""
        ms = MS.get(stamp[-3:])
        completed = -1 if ms is None else self._clock.second(stamp[:-4]) + ms
        if not FIRST_MS <= completed < LAST_MS:
            raise Unreadable(Reason.NO_TIME, "no time that a broker writes")
        return completed

    def _add(self, decoded: "_Decoded", batches: list[pa.RecordBatch], block: Block) -> None:
        """Add the rows of lines; a line of which a value does not fit its column is found by halving, and refused."""
        count = len(decoded.entries)
        if count < FEWEST:
            block.refused.extend(decoded.places)
            return
        try:
            contents = _Contents(decoded)
            if not contents.bad:
                batches.append(self._batch(decoded, contents))
                block.places.extend(decoded.places)
                return
        except MISFIT:
            if count <= BISECTED:
                block.refused.extend(decoded.places)
                return
            parts = [decoded.part(range(count // 2)), decoded.part(range(count // 2, count))]
        else:
            block.refused.extend(decoded.places[index] for index in contents.bad)
            parts = [decoded.part([index for index in range(count) if index not in contents.bad])]
        for part in parts:
            self._add(part, batches, block)

    def _batch(self, decoded: "_Decoded", contents: "_Contents") -> pa.RecordBatch:
        """Return the rows of decoded lines. Raises one of `MISFIT`."""
        entries, headers = decoded.entries, contents.headers
        completed = np.array(decoded.completed, np.int64)
        remote = np.array([entry.remote_time_ms for entry in entries])
        queued = np.array([entry.response_queue_time_ms for entry in entries])
        sent = np.array([entry.send_time_ms for entry in entries])
        decided = completed - queued - sent
        decided = np.where(contents.waited, decided, decided - remote)
        connections = [entry.connection for entry in entries]
        principals = [entry.principal for entry in entries]
        clients = [entry.client_information for entry in entries]
        columns = contents.columns(decided, remote) | {
            "timestamp": decided.astype(np.int64),
            "completed": completed,
            "time_precision_ms": np.ones(len(entries), np.int16),
            "broker": [broker_in(connection) for connection in connections]
            if not self._broker
            else pa.repeat(self._broker, len(entries)),
            "listener": [entry.listener for entry in entries],
            "connection": connections,
            "correlation_id": [header.correlation_id for header in headers],
            "api_key": contents.keys,
            "api_version": contents.versions,
            "user": [name[5:] if name.startswith("User:") else user_of(name) for name in principals],
            "client_id": contents.client_ids,
            "software": [client.software_name if client else None for client in clients],
            "queue_time_ms": [entry.request_queue_time_ms for entry in entries],
            "thread_time_ms": [entry.local_time_ms for entry in entries],
            "remote_time_ms": remote,
            "response_queue_time_ms": queued,
            "network_time_ms": sent,
            "broker_throttle_ms": [entry.throttle_time_ms for entry in entries],
            "forwarded": [entry.is_forwarded for entry in entries],
            "identity": _identities(decoded.digests),
        }
        arrays: list[Any] = [
            value if isinstance(value := columns[field.name], pa.Array) else pa.array(value, field.type)
            for field in FIELD_SCHEMA
        ]
        return pa.record_batch(arrays, schema=FIELD_SCHEMA)


class _Decoded:
    """Fields of lines; all lists are of the same length."""

    __slots__ = ("completed", "decoders", "digests", "entries", "places")

    def __init__(self) -> None:
        self.places: list[int] = []
        self.decoders: list[Decode] = []
        self.entries: list[_Line] = []
        self.completed: list[int] = []
        """Times in ms since 1970."""
        self.digests: list[bytes] = []

    def lists(self) -> tuple[list[int], list[Decode], list[_Line], list[int], list[bytes]]:
        """Return all lists: an attribute of each line takes longer."""
        return self.places, self.decoders, self.entries, self.completed, self.digests

    def part(self, indexes: Sequence[int]) -> "_Decoded":
        """Return the lines at some indexes."""
        part = _Decoded()
        for name in self.__slots__:
            values = getattr(self, name)
            setattr(part, name, [values[index] for index in indexes])
        return part


class _Contents:
    """Columns that follow from the requests and responses of lines, as `content_of` has them for one."""

    def __init__(self, decoded: _Decoded) -> None:
        """Compute the columns. Raises one of `MISFIT`."""
        entries = self._entries = decoded.entries
        count = len(entries)
        self.bad: set[int] = set()
        """Indexes of lines without the shape of their API; if there are any, the columns are not to be used."""
        self.headers = [entry.request_header for entry in entries]
        keys = [header.request_api_key for header in self.headers]
        self.keys: Numbers = np.array(keys, np.int64)
        self.versions: Numbers = np.array([header.request_api_version for header in self.headers], np.int64)
        self.client_ids: Column = texts([header.client_id for header in self.headers])
        self.waited: Mask = np.ones(count, bool)
        self._layouts: dict[int, str] = {}
        """Layouts that the content shows, by index."""
        self._throttles: list[Any] = [getattr(entry.response, "throttle_time_ms", None) for entry in entries]
        self._follower: Mask = np.zeros(count, bool)
        self._refused: Mask = np.zeros(count, bool)
        self._sizes = {name: np.full(count, -1, np.int64) for name in ("produce_bytes", "fetch_bytes")}
        """Charged bytes, -1 for null."""
        self._topic_counts: Numbers = np.full(count, -1, np.int64)
        self._topics: list[tuple[Numbers, list[Column]]] = []
        """Indexes of lines for each of their topics, and the topics as the columns of `TRAFFIC`."""
        self._nested: dict[str, list[Any]] = {}
        """Values of the columns that few lines have, for all lines."""
        # neither is negative or has more bits
        if ((self.keys | self.versions) >> _BITS).any():
            raise OverflowError("a number of an API, or its version, that is none")
        if [*map(OF_API.get, keys, repeat(plain))] != decoded.decoders:
            self.bad.update(
                index
                for index, (key, decode) in enumerate(zip(keys, decoded.decoders, strict=True))
                if OF_API.get(key, plain) is not decode  # the key may stand elsewhere than it usually does
            )
            return
        indexes_by_decoder: dict[Decode, list[int]] = {}
        for index, decode in enumerate(decoded.decoders):
            indexes_by_decoder.setdefault(decode, []).append(index)
        indexes_by_decoder.pop(plain, None)
        columns_of = {_PRODUCE: self._produce, _FETCH: self._fetch, _SHARE_FETCH: self._share_fetch}
        for decode, indexes in indexes_by_decoder.items():
            columns_of.get(decode, self._one_by_one)(indexes)

    def columns(self, decided: Any, remote: Any) -> dict[str, Any]:  # noqa: ANN401 - arrays of floats
        """Return the columns by name; `decided` and `remote` are times in ms, see `line.py`."""
        count = len(self._entries)
        columns: dict[str, Any] = {
            name: self._nested.get(name) or pa.nulls(count, FIELD_SCHEMA.field(name).type)
            for name in ("topics", "topic_ids", "nodes", "node", "mutation_timestamp")
        }
        if topics := self._nested.get("topics"):
            columns["mutation_timestamp"] = [
                None if value is None else int(decided[index] - remote[index]) for index, value in enumerate(topics)
            ]
        for name, sizes in self._sizes.items():
            columns[name] = pa.array(sizes, mask=sizes < 0)
        return columns | {
            "traffic": self._traffic(),
            "throttle_ms": self._throttles,
            "refused": self._refused,
            "follower": self._follower,
            "layout": self._layout(),
        }

    def _layout(self) -> Column:
        """Return the layouts; each distinct key, version and deprecation is looked up once, as one number of bits."""
        deprecated = np.array([header.request_api_version_deprecated for header in self.headers], np.int64)
        distinct, numbers = np.unique((self.keys << _BITS | self.versions) << 1 | deprecated, return_inverse=True)
        layouts = [
            layout_of(bits >> _BITS + 1, bits >> 1 & (1 << _BITS) - 1, deprecated=bool(bits & 1))
            for bits in distinct.tolist()
        ]
        column: Column = pa.array(layouts, pa.string()).take(array(numbers))
        if self._layouts:
            values = column.to_pylist()
            for index, layout in self._layouts.items():
                values[index] = layout
            column = pa.array(values, pa.string())
        return column

    def _traffic(self) -> Column:
        """Return the topics of all lines as one column, in the order of the lines."""
        if not self._topics:
            return nested(self._topic_counts, flattened([]))
        owners = np.concatenate([indexes for indexes, _ in self._topics])
        columns: Iterable[Any] = zip(*(topics for _, topics in self._topics), strict=True)
        flat = [pa.concat_arrays(column) for column in columns]
        if len(self._topics) > 1:
            order = array(np.argsort(owners, kind="stable"))
            flat = [column.take(order) for column in flat]
        return nested(self._topic_counts, flat)

    def _produce(self, indexes: list[int]) -> None:
        """Add the content of Produce lines."""
        entries = self._entries
        client_id_bytes = lengths_of(self.client_ids)
        logged = [index for index in indexes if type(entries[index].request) is ProduceRequest]
        self.waited[logged] = [entries[index].request.acks == ALL_REPLICAS for index in logged]

        def charged(places: Numbers) -> Charged | Mask:
            """Return the charge of the lines at some indexes, or a mask of those that are certain."""
            requests = [entries[index].request for index in places.tolist()]
            return charged_produce(self.versions[places], client_id_bytes[places], requests)

        self._charge("produce_bytes", logged, charged)

    def _fetch(self, indexes: list[int]) -> None:
        """Add the content of Fetch lines."""
        entries = self._entries
        logged: list[int] = []
        for index in indexes:
            request, response = entries[index].request, entries[index].response
            if type(request) is FetchRequest and (request.replica_state or request).replica_id >= 0:
                self._follower[index] = True
            if type(response) is FetchResponse:
                logged.append(index)

        def charged(places: Numbers) -> Charged | Mask:
            """Return the charge of the lines at some indexes, or a mask of those that are certain."""
            return charged_fetch(self.versions[places], [entries[index].response for index in places.tolist()])

        self._charge("fetch_bytes", logged, charged)

    def _share_fetch(self, indexes: list[int]) -> None:
        """Add the content of ShareFetch lines."""
        entries = self._entries

        def charged(places: Numbers) -> Charged | Mask:
            """Return the charge of the lines at some indexes, or a mask of those that are certain."""
            return charged_share_fetch(self.versions[places], [entries[index].response for index in places.tolist()])

        logged = [index for index in indexes if type(entries[index].response) is ShareFetchResponse]
        self._charge("fetch_bytes", logged, charged)

    def _charge(self, name: str, indexes: list[int], charged: Callable[[Numbers], Charged | Mask]) -> None:
        """
        Add the sizes and topics of lines.

        Args:
            name: column of the sizes.
            indexes: indexes of the lines.
            charged: function that returns the charge of some lines, or a mask of those for which it can; the others
                are added one by one.

        """
        while indexes:
            places = np.array(indexes)
            charge = charged(places)
            if isinstance(charge, Charged):
                self._sizes[name][places] = charge.sizes
                self._topic_counts[places] = charge.counts
                self._topics.append((np.repeat(places, charge.counts), charge.traffic))
                return
            self._one_by_one(places[~charge].tolist())
            indexes = places[charge].tolist()

    def _one_by_one(self, indexes: list[int]) -> None:
        """Add the content of lines as `LineReader.row` does."""
        count = len(self._entries)
        for index in indexes:
            try:
                content = content_of(self._entries[index])
            except WRONG_SHAPE:
                self.bad.add(index)
                continue
            self._throttles[index] = content.throttle_ms
            self.waited[index], self._follower[index] = content.waited, content.follower
            self._refused[index] = content.refused
            if content.layout:
                self._layouts[index] = content.layout
            for name, size in (("produce_bytes", content.produce_bytes), ("fetch_bytes", content.fetch_bytes)):
                if size is not None:
                    self._sizes[name][index] = size
            for name in ("topics", "topic_ids", "nodes"):
                if (value := getattr(content, name)) is not None:
                    self._nested.setdefault(name, [None] * count)[index] = value
            if content.traffic is not None:
                topics = len(content.traffic) // 3  # name, id and bytes of each
                self._topic_counts[index] = topics
                self._topics.append((np.full(topics, index), flattened([content.traffic])))


def _identities(digests: Sequence[bytes]) -> Column:
    """Return the column of the first bytes of hashes."""
    hashes = np.frombuffer(b"".join(digests), np.uint8).reshape(len(digests), -1)
    offsets = np.arange(0, (len(digests) + 1) * IDENTITY, IDENTITY, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(hashes[:, :IDENTITY].tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(digests), buffers)
