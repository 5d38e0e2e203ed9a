"""Labels, rates and shares, as a person reads them."""

from __future__ import annotations

import math

from quotascope.metrics import QuotaType

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_ROUNDED = 0.9995
"""Of a scale: from here on three digits are 1 of it."""
_UNITS = {
    QuotaType.PRODUCE: "B/s",
    QuotaType.FETCH: "B/s",
    QuotaType.REQUEST: "%",
    QuotaType.CONTROLLER_MUTATION: "mut/s",
}


def spaced(label: str) -> str:
    """
    A label in words.

    >>> spaced("controller_mutation")
    'controller mutation'
    """
    return label.replace("_", " ")


def rate(kind: QuotaType, value: float) -> str:
    """
    A rate or a limit in the unit of its quota type: bytes/s, percent of one thread, mutations/s.

    >>> rate(QuotaType.PRODUCE, 2_104_000.0), rate(QuotaType.REQUEST, 2.5), rate(QuotaType.FETCH, 30.0)
    ('2.1 MB/s', '2.5 %', '30 B/s')
    """
    return f"{amount(value)}{_UNITS[kind]}"


def amount(value: float) -> str:
    """
    A number in three digits, and what its unit needs before it.

    >>> amount(0.0), amount(1_500.0), amount(12.345), amount(999_700.0), amount(math.inf)
    ('0 ', '1.5 k', '12.3 ', '1 M', '∞ ')
    """
    if not math.isfinite(value):
        return "∞ " if value > 0 else "? "
    for scale, prefix in _SCALES:
        if abs(value) >= _ROUNDED * scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.3g} "
