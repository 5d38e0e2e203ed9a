"""What the texts of properties mean."""

from __future__ import annotations

import math
from collections.abc import Callable

Reading = Callable[[str], object]
"""Gives the value of a text; raises `ValueError` that says what was expected."""

_FLAGS = {"true": True, "false": False}


def text(value: str) -> str:
    """Any text but an empty one."""
    if not value.strip():
        raise ValueError("expected a text, got nothing")
    return value


def flag(value: str) -> bool:
    """True or false."""
    try:
        return _FLAGS[value.strip().lower()]
    except KeyError:
        raise ValueError(f"expected true or false, got {_shown(value)}") from None


def number(least: int, most: int) -> Callable[[str], int]:
    """A whole number between these."""

    def read(value: str) -> int:
        plain = value.strip()
        if plain.isascii() and plain.isdecimal() and least <= int(plain) <= most:
            return int(plain)
        raise ValueError(
            f"expected a whole number from {least} to {most}, got {_shown(value)}"
        )

    return read


def seconds(least: float, most: float) -> Callable[[str], float]:
    """A time in seconds between these."""

    def read(value: str) -> float:
        try:
            time = float(value)
        except ValueError:
            time = math.nan
        if least <= time <= most:
            return time
        raise ValueError(
            f"expected seconds from {least:g} to {most:g}, got {_shown(value)}"
        )

    return read


def one_of(*choices: str) -> Callable[[str], str]:
    """One of these words."""

    def read(value: str) -> str:
        if value.strip() in choices:
            return value.strip()
        raise ValueError(f"expected {', '.join(choices)}, got {_shown(value)}")

    return read


def _shown(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:39] + "…")  # noqa: PLR2004 - enough to recognise it
