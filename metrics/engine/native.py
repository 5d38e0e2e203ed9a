"""
Hints to mypyc, in one place, and whether it was at work.

A compiled build (`setup.py`) makes C of the hot path; the same source runs as plain Python, where the hints mean
nothing: `i64` is an integer of 64 bits for the one and any for the other, and `mypyc_attr` may open a class to
programs that derive from it. This module itself is never compiled.
"""

from collections.abc import Callable
from inspect import isfunction
from typing import TYPE_CHECKING, Final, TypeVar

from ..kafka import numbers

if TYPE_CHECKING:
    from mypy_extensions import i64, mypyc_attr
else:
    i64 = int

    T = TypeVar("T")

    def mypyc_attr(**_hints: bool) -> Callable[[T], T]:
        """Leave the class as it is."""
        return lambda unchanged: unchanged


__all__ = ["compiled", "i64", "mypyc_attr"]

compiled: Final = not isfunction(numbers.jround)
"""Whether the hot path runs as C."""
