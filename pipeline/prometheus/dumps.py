r"""
Samples in text, as `promtool tsdb dump` and `promtool tsdb dump-openmetrics` write them of blocks.

`promtool tsdb dump` writes `{__name__="kafka_x", user="alice"} 1.5 1700000000000`, with a time in ms, and
`dump-openmetrics` writes `kafka_x{user="alice"} 1.5 1700000000.0`, with a time in seconds. Labels are quoted as in Go.

NaN counts as the end of a series. In text, a staleness marker looks like the NaN that Kafka reports for a throttle time
without a request, and neither is a number above 0.
"""

from __future__ import annotations

import hashlib
import io
import re
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..errors import UnreadableLog, plain
from .remote_read import RawSeries

_LABEL: Final = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|([a-zA-Z_][a-zA-Z0-9_.:]*))\s*(?:=\s*"((?:[^"\\]|\\.)*)"\s*)?(?:,|$)'
)
"""A label, whose name is quoted if it has special characters; or, in quotes alone, the name of the series."""
_NUMBER: Final = re.compile(r"[-+]?(?:inf|nan|[0-9.]+(?:e[-+]?[0-9]+)?)", re.IGNORECASE)
_LATEST_MS: Final = 1 << 53
"""Latest time in ms: a float, and so JSON, holds all whole numbers up to here."""
_NAME: Final = "__name__"
_CHUNK: Final = 500_000
"""Number of samples that are in memory at once."""
_LONGEST: Final = 200
"""Largest number of characters of a line that an error shows."""
_BLOCK: Final = 1 << 20
"""Number of bytes that are read at once."""


@dataclass(frozen=True, slots=True)
class Dump:
    """A file, plain or packed by gzip or zstd."""

    path: str


@dataclass(frozen=True, slots=True)
class Listed:
    """List of the series in a dump."""

    dump: Dump
    digest: str
    """SHA-256 of the content, by which a dump is recognized."""
    series: Sequence[Mapping[str, str]]
    """Labels of the series, the name among them."""


def listed_in(dump: Dump) -> Listed:
    """Return the list of the series in a dump. Raises `UnreadableLog`."""
    digest = hashlib.sha256()
    texts = dict.fromkeys(labels for labels, _, _ in _lines(dump, digest))
    return Listed(dump, digest.hexdigest(), [_labels_of(text, dump) for text in texts])


def series_of(dump: Dump) -> Iterator[RawSeries]:
    """
    Yield the samples of each series of a dump, in several parts if there are more than `_CHUNK`.

    Raises `UnreadableLog`.
    """
    series_text, times, values = "", list[int](), list[float]()
    for labels_text, value, time_ms in _lines(dump, None):
        if times and (labels_text != series_text or len(times) >= _CHUNK):
            yield _series(series_text, times, values, dump)
            times, values = [], []
        series_text = labels_text
        times.append(time_ms)
        values.append(value)
    if times:
        yield _series(series_text, times, values, dump)


def _series(labels_text: str, times: Sequence[int], values: Sequence[float], dump: Dump) -> RawSeries:
    """Return samples of a series; those that are NaN count as its end."""
    numbers = np.array(values, np.float64)
    return RawSeries(_labels_of(labels_text, dump), np.array(times, np.int64), numbers, np.isnan(numbers))


def _lines(dump: Dump, digest: Any) -> Iterator[tuple[str, float, int]]:  # noqa: ANN401 - hashlib names no type
    """Yield the labels as text, the value, and the time in ms of each line; update `digest` with the whole content."""
    number = 0
    try:
        with pa.input_stream(dump.path, compression="detect", buffer_size=_BLOCK) as stream:
            for line in io.BufferedReader(_Raw(stream, digest), _BLOCK):
                text = line.decode("utf-8").strip()
                if not text or text.startswith("#"):
                    number += 1
                    continue
                labels, value, time = text.rsplit(" ", 2)
                # OpenMetrics has seconds, as a rule with a point; ms of today have 13 digits
                is_ms = "." not in time and "e" not in time and len(time) > 11  # noqa: PLR2004 - of seconds
                yield labels, float(_number(value)), _time_ms(_number(time), is_ms=is_ms)
                number += 1
    except FileNotFoundError:
        raise UnreadableLog(dump.path, "there is no such file") from None
    except (OSError, pa.ArrowException) as error:
        cut = "the compressed file is cut off: make the dump again"
        raise UnreadableLog(dump.path, cut if "runcated" in str(error) else plain(error)) from None
    except (ValueError, OverflowError):
        raise UnreadableLog(
            dump.path, f"line {number + 1} is no sample as `promtool tsdb dump` writes it: LABELS VALUE TIME"
        ) from None


class _Raw(io.RawIOBase):
    """A stream of Arrow as one of Python, which updates a digest with its content."""

    def __init__(self, stream: Any, digest: Any) -> None:  # noqa: ANN401 - Arrow's and hashlib's
        self._stream, self._digest = stream, digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer of any kind
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        if self._digest is not None:
            self._digest.update(content)
        return len(content)


def _number(text: str) -> str:
    """Return a text if it is a number as Go writes it; Python reads more forms. Raises ``ValueError``."""
    if not _NUMBER.fullmatch(text) or not text.isascii():
        raise ValueError(text)
    return text


def _time_ms(text: str, *, is_ms: bool) -> int:
    """Return a time in ms. Raises ``ValueError`` and ``OverflowError``."""
    time_ms = int(text) if is_ms else round(float(text) * 1_000)
    if abs(time_ms) > _LATEST_MS:
        raise ValueError(text)
    return time_ms


def _labels_of(text: str, dump: Dump) -> dict[str, str]:
    r"""
    Return the labels of a line.

    >>> _labels_of('kafka_x{user="a, \\"b\\""}', Dump("x"))
    {'__name__': 'kafka_x', 'user': 'a, "b"'}
    """
    name, brace, rest = text.partition("{")
    labels = {_NAME: name.strip()} if name.strip() else {}
    place, end = 0, rest.rfind("}") if brace else 0
    while brace and place < end:
        label = _LABEL.match(rest, place, end)
        if label is None:
            raise UnreadableLog(dump.path, f"labels that cannot be read: {text[:_LONGEST]!r}")
        quoted, plain_name, value = label.groups()  # a text in quotes without a value is the name of the series
        key = plain_name if quoted is None else _unquoted(quoted)
        if value is None and (quoted is None or _NAME in labels):
            raise UnreadableLog(dump.path, f"labels that cannot be read: {text[:_LONGEST]!r}")
        labels.update({_NAME: key} if value is None else {key: _unquoted(value)})
        place = label.end()
    if _NAME not in labels:
        raise UnreadableLog(dump.path, f"a series without a name: {text[:_LONGEST]!r}")
    return labels


def _unquoted(text: str) -> str:
    """Return the content of a string that Go quoted; Python has the same escapes."""
    if "\\" not in text:
        return text
    try:
        value = literal_eval(f'"{text}"')
    except (SyntaxError, ValueError):
        return text
    return value if isinstance(value, str) else text
