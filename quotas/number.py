"""Values of quotas as text."""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(
    r"[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
)
_EXACT = 2.0**53
"""A double holds all whole numbers below it."""


def number_text(value: float) -> str:
    """
    The shortest text that is read back as the same number, without an exponent where it is whole and not huge.

    >>> number_text(1048576.0), number_text(0.5), number_text(9.223372036854776e18)
    ('1048576', '0.5', '9.223372036854776e+18')
    """
    if abs(value) < _EXACT and value == int(value):
        return str(int(value))
    return repr(value)


def number(text: str) -> float | None:
    """
    The number that a text is, None when it is none: plain decimals, no NaN, no infinity.

    Not read by YAML, because YAML 1.1 takes 0100 for 64, 1:30 for 90 and 1e6 for a text.

    >>> number("1_000_000"), number("1e6"), number("0100"), number("nan")
    (1000000.0, 1000000.0, None, None)
    """
    return float(text.replace("_", "")) if _NUMBER.fullmatch(text) else None
