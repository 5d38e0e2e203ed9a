"""Numbers as Prometheus writes them: many at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

import orjson

_LEAST, _MOST = 1e-4, 1e6
"""From the one up to the other orjson and Prometheus write the same digits."""
_LEAST_REPR_EXPONENT = 1e16
"""From here on ``repr`` writes an exponent by itself."""

_EXPONENTS = [b"e+%02d" % exponent for exponent in range(16)]


def texts(values: Sequence[float | None]) -> list[bytes]:
    """
    The text of each number, equal to prometheus_client's ``floatToGoString``.

    Empty for what is not shown: None, NaN and infinities. -0 is written as 0.
    """
    if not values:
        return []
    floats = _floats(values)
    written = orjson.dumps(floats)[1:-1].split(b",")
    for place, value in enumerate(floats):
        if not _LEAST <= value < _MOST:
            written[place] = _rare(value, written[place])
    return written


def _floats(values: Sequence[float | None]) -> list[float]:
    if set(map(type, values)) == {float}:
        return values if isinstance(values, list) else list(values)  # type: ignore[arg-type]
    return [nan if value is None else float(value) for value in values]


def _rare(value: float, written: bytes) -> bytes:
    if _MOST <= value < _LEAST_REPR_EXPONENT:
        return _large(written)
    if 0 < value < _LEAST:
        return _small(value, written)
    if value == 0:
        return b"0.0"
    return repr(value).encode() if isfinite(value) else b""


def _large(written: bytes) -> bytes:
    """Go's ``%g``, which has an exponent where Python's ``repr`` has none yet."""
    point = written.index(b".")
    digits = written[1:point] + written[point + 1 :]
    return (written[:1] + b"." + digits).rstrip(b"0.") + _EXPONENTS[point - 1]


def _small(value: float, written: bytes) -> bytes:
    """An exponent of at least two digits, where orjson has one or none."""
    mantissa, _, exponent = written.partition(b"e-")
    if exponent:
        return written if len(exponent) > 1 else mantissa + b"e-0" + exponent
    return repr(value).encode()
