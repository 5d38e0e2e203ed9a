"""
The protocol of remote read: raw samples with their staleness markers as protobuf, compressed with snappy.

Messages: https://github.com/prometheus/prometheus/blob/main/prompb/remote.proto. Requests ask for samples, and not for
streamed chunks: a slice is small, and no library for Python decodes chunks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..errors import MissingExtra, PipelineError
from .figures import Floats, Times

HEADERS: Final = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Read-Version": "0.1.0",
}
"""Headers of a request."""
_PACKAGE: Final = "quotascope.prometheus"
_EQUAL, _MATCHES = 0, 2
_STALE: Final = 0x7FF0_0000_0000_0002
"""Bits of the NaN with which a series ends (`model/value/value.go`)."""
_MOST_BYTES: Final = 1 << 29
"""Largest size of an uncompressed answer in bytes."""
_FIELDS: Final = {
    "ReadRequest": (("queries", 1, "Query", True),),
    "ReadResponse": (("results", 1, "QueryResult", True),),
    "Query": (
        ("start_timestamp_ms", 1, "int64", False),
        ("end_timestamp_ms", 2, "int64", False),
        ("matchers", 3, "LabelMatcher", True),
    ),
    "LabelMatcher": (("type", 1, "int64", False), ("name", 2, "string", False), ("value", 3, "string", False)),
    "QueryResult": (("timeseries", 1, "TimeSeries", True),),
    "TimeSeries": (("labels", 1, "Label", True), ("samples", 2, "Sample", True)),
    "Label": (("name", 1, "string", False), ("value", 2, "string", False)),
    "Sample": (("value", 1, "double", False), ("timestamp", 2, "int64", False)),
}
"""Name, number, type, and whether it is repeated, of the fields that are used, by message. An enum is an integer."""


class NotRemoteRead(PipelineError):
    """The answer of a server does not follow the protocol of remote read."""


@dataclass(frozen=True, slots=True)
class Matchers:
    """Matchers of series: each label must have one of its values."""

    values: Mapping[str, Sequence[str]]
    """Values by label."""


@dataclass(frozen=True, slots=True)
class RawSeries:
    """The samples of a series as a server stores them."""

    labels: Mapping[str, str]
    times_ms: Times
    values: Floats
    ended: Any
    """Mask of staleness markers."""


def request_of(queries: Sequence[Matchers], begin_ms: int, end_ms: int) -> bytes:
    """Return the body of a request for the samples of some series from one time to another, both included."""
    request = _messages()["ReadRequest"]()
    for matchers in queries:
        query = request.queries.add(start_timestamp_ms=begin_ms, end_timestamp_ms=end_ms)
        for label, values in matchers.values.items():
            if len(values) == 1:
                query.matchers.add(type=_EQUAL, name=label, value=values[0])
            else:
                query.matchers.add(type=_MATCHES, name=label, value="|".join(map(_escaped, values)))
    packed: bytes = pa.Codec("snappy").compress(request.SerializeToString()).to_pybytes()
    return packed


def series_of(body: bytes) -> list[RawSeries]:
    """Return the series with samples in the body of an answer. Raises `NotRemoteRead`."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - of an extra

    response = _messages()["ReadResponse"]()
    try:
        response.ParseFromString(_unpacked(body))
    except (DecodeError, pa.ArrowException, ValueError, OSError) as error:
        raise NotRemoteRead(
            f"the answer to a remote read cannot be decoded ({type(error).__name__}): what server is at this address?"
        ) from None
    return [
        RawSeries({label.name: label.value for label in series.labels}, *_samples(series.samples))
        for result in response.results
        for series in result.timeseries
        if series.samples
    ]


def _samples(samples: Sequence[Any]) -> tuple[Times, Floats, Any]:
    """Return the times in ms, the values, and the mask of staleness markers of some samples."""
    count = len(samples)
    times = np.fromiter((sample.timestamp for sample in samples), np.int64, count)
    values = np.fromiter((sample.value for sample in samples), np.float64, count)
    return times, values, values.view(np.int64) == _STALE


def _unpacked(body: bytes) -> bytes:
    """Return the content of a block of snappy, which begins with the size of the content. Raises ``ValueError``."""
    size = shift = 0
    for byte in body[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a varint
            break
    if not body or size > _MOST_BYTES:
        raise ValueError("no size")
    unpacked: bytes = pa.Codec("snappy").decompress(body, decompressed_size=size, asbytes=True)
    return unpacked


def _escaped(value: str) -> str:
    r"""
    Return a regular expression of RE2 that matches only this value.

    >>> _escaped("broker-1.corp:9404")
    'broker-1\\.corp:9404'
    """
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", value)


@cache
def _messages() -> Mapping[str, Any]:
    """Return the classes of the messages by name. Raises `MissingExtra`."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415 - of an extra
    except ModuleNotFoundError:
        raise MissingExtra("remote read needs protobuf; in a clone of quotascope: pip install '.[pipeline]'") from None
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="quotascope/remote_read.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _FIELDS.items():
        described = file.message_type.add(name=message)
        for name, number, kind, repeated in fields:
            field = described.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in _FIELDS:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}
