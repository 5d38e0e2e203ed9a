"""From what a dialect calls its numbers to the columns of a table; a name is parsed when it is first seen."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress
from math import nan
from typing import Generic, TypeVar

from ..beans import Column, Layout

Key = TypeVar("Key", bound=Hashable)


class Columns(Generic[Key]):
    """
    The columns of one source from read to read.

    As long as the keys are the same, in any order, the layout is the same object and
    only numbers move. A key that disappeared is forgotten, so that memory is bounded by
    the last answer.

    Args:
        column_of: The column of a key, or None for a number that is of no use.

    """

    def __init__(self, column_of: Callable[[Key], Column | None]) -> None:
        self._column_of = column_of
        self._known: dict[Key, Column | None] = {}
        self._order: list[Key] | None = None
        self._wanted: list[bool] | None = None
        self._places: dict[Key, int] = {}
        self._layout = Layout(())

    def place(
        self, keys: list[Key], values: Sequence[float]
    ) -> tuple[Layout, array[float]]:
        """The layout of ``keys`` and their ``values`` in its order."""
        if keys == self._order:
            return self._layout, array("d", self._selected(values))
        if self._known.keys() == set(keys):
            return self._layout, self._sorted(keys, values)
        self._learn(keys)
        return self._layout, self._sorted(keys, values)

    def _selected(self, values: Sequence[float]) -> Iterable[float]:
        return values if self._wanted is None else compress(values, self._wanted)

    def _sorted(self, keys: list[Key], values: Sequence[float]) -> array[float]:
        numbers = array("d", [nan]) * len(self._layout.columns)
        for key, value in zip(keys, values, strict=True):
            place = self._places.get(key)
            if place is not None:
                numbers[place] = value
        return numbers

    def _learn(self, keys: list[Key]) -> None:
        known = self._known
        self._known = {
            key: known[key] if key in known else self._column_of(key) for key in keys
        }
        places: dict[Column, int] = {}
        self._places = {
            key: places.setdefault(column, len(places))
            for key, column in self._known.items()
            if column is not None
        }
        self._layout = Layout(tuple(places))
        self._remember_order(keys)

    def _remember_order(self, keys: list[Key]) -> None:
        # An order can be reused only if each column has one key, and each key one number.
        seen = set(self._places.values())
        if len(seen) == len(self._places) and len(keys) == len(self._known):
            wanted = [key in self._places for key in keys]
            self._order, self._wanted = keys, None if all(wanted) else wanted
        else:
            self._order = None
