"""Numbers as Prometheus writes them: many at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

import orjson

_LEAST, _MOST = 1e-4, 1e6
"""From the one up to the other orjson and Prometheus write the same digits."""
_LEAST_REPR_EXPONENT = 1e16
"""From here on ``repr`` writes an exponent by itself."""


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
    if value == 0:
        return b"0.0"
    if not isfinite(value):
        return b""
    if _MOST <= value < _LEAST_REPR_EXPONENT:
        return _with_exponent(written)
    return repr(value).encode()


def _with_exponent(written: bytes) -> bytes:
    """Go's ``%g``, which has an exponent where Python's ``repr`` has none yet."""
    point = written.index(b".")
    mantissa = b"%b.%b%b" % (written[:1], written[1:point], written[point + 1 :])
    return b"%be+%02d" % (mantissa.rstrip(b"0."), point - 1)
