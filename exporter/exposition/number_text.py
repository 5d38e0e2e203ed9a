"""Numbers as Prometheus writes them: many at once."""

from __future__ import annotations

from math import isfinite
from typing import Final

import numpy as np
import orjson

from ..snapshot import Floats

_LEAST: Final = 1e-4
"""Below, orjson and Prometheus write other exponents."""
_LARGE: Final = 10.0 ** np.arange(6, 17)
"""From the first of these Prometheus writes an exponent; from the last on ``repr`` does so by itself."""
_EXPONENTS: Final = [b"e+%02d" % exponent for exponent in range(5, 17)]


def texts(values: Floats) -> list[bytes]:
    """
    The text of each number, equal to prometheus_client's ``floatToGoString``.

    Empty for what is not shown: NaN and infinities. -0 is written as 0.
    """
    if not values.size:
        return []
    written = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")
    large = np.flatnonzero((values >= _LARGE[0]) & (values < _LARGE[-1]))
    exponents = np.searchsorted(_LARGE, values[large], side="right")
    for place, exponent in zip(large.tolist(), exponents.tolist(), strict=True):
        # Go's %g, which has an exponent where Python's repr has none yet
        text = written[place]
        digits = text[:1] + b"." + text[1:].replace(b".", b"")
        written[place] = digits.rstrip(b"0.") + _EXPONENTS[exponent]
    alike = (values >= _LEAST) & (values < _LARGE[-1]) | (values.view(np.int64) == 0)
    for place in np.flatnonzero(~alike).tolist():
        written[place] = _rare(values.item(place), written[place])
    return written


def _rare(value: float, written: bytes) -> bytes:
    if value == 0:
        return b"0.0"
    mantissa, _, exponent = written.partition(b"e-")
    if 0 < value < _LEAST and exponent:
        # an exponent of at least two digits
        return written if len(exponent) > 1 else mantissa + b"e-0" + exponent
    return repr(value).encode() if isfinite(value) else b""
