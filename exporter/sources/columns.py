"""From what a dialect calls its numbers to the columns of a table, of which a name is parsed when it is first seen, and to the id of the node."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import nan
from typing import Final, Generic, TypeVar

from ..beans import Column, Layout
from ..difference import difference
from ..errors import SourceUnreadable

Key = TypeVar("Key", bound=Hashable)

MOST_NUMBERS: Final = 500_000
"""Those of 80,000 clients under quotas of each type."""
_NOWHERE: Final = -1
_MOST_DIGITS: Final = 10
"""Of an int32, which Kafka's node.id is."""
_MOST_CHANGES: Final = 4
"""One key in so many may be another one before all is worked out anew."""


class Columns(Generic[Key]):
    """
    The columns of one source from read to read.

    A source has ``MOST_NUMBERS`` at most: each costs a kilobyte, here and in the join.

    As long as the keys are the same, in any order, the layout is the same object and
    only numbers move. When a few keys come or go, the other columns stay in their places, but for those
    that fill a gap. A key that disappeared is forgotten, so that memory is bounded by
    the last answer.

    Args:
        column_of: The column of a key, or None for a number that is of no use.

    """

    def __init__(self, column_of: Callable[[Key], Column | None]) -> None:
        self._column_of = column_of
        self._layout = Layout(())
        self._order: list[Key] = []
        """The keys of the last answer."""
        self._targets: list[int] = []
        """The place of each of them in the layout."""
        self._places: dict[Key, int] = {}
        self._keys: dict[Column, Key] = {}
        self._plain = True
        """Whether no key stood twice, and no column had two."""

    def place(
        self, keys: list[Key], values: Sequence[float]
    ) -> tuple[Layout, array[float]]:
        """The layout of ``keys`` and their ``values`` in its order. Raises ``SourceUnreadable`` when there are too many."""
        if len(keys) > MOST_NUMBERS:
            raise SourceUnreadable(
                f"the answer holds {len(keys):,} numbers about quotas, more than the {MOST_NUMBERS:,} that are read of one node: "
                "is this a metrics agent, and of one node?"
            )
        if keys != self._order:
            self._take(keys)
        numbers = array("d", [nan]) * (len(self._layout.columns) + 1)
        for target, value in zip(self._targets, values, strict=True):
            numbers[target] = value
        numbers.pop()  # where those of no use went
        return self._layout, numbers

    def _take(self, keys: list[Key]) -> None:
        if not (self._plain and self._updated(keys)):
            names = set(keys)
            if names != self._places.keys():
                self._learn(keys)
            self._plain = len(keys) == len(names) and len(self._keys) == sum(
                place != _NOWHERE for place in self._places.values()
            )
            self._targets = list(map(self._places.__getitem__, keys))
        self._order = keys

    def _learn(self, keys: list[Key]) -> None:
        columns = self._layout.columns
        known = {
            key: None if place == _NOWHERE else columns[place]
            for key, place in self._places.items()
        }
        taken: dict[Column, int] = {}
        places: dict[Key, int] = {}
        keys_of: dict[Column, Key] = {}
        # nothing is taken over before all is known: a key that is malformed raises
        for key in dict.fromkeys(keys):
            column = known[key] if key in known else self._column_of(key)
            places[key] = _NOWHERE
            if column is not None:
                places[key] = taken.setdefault(column, len(taken))
                keys_of[column] = key
        self._places, self._keys = places, keys_of
        self._layout = Layout(tuple(taken))

    def _updated(self, keys: list[Key]) -> bool:
        """Take over keys of which only a few came or left. Returns False where that is not all."""
        gone, fresh = difference(self._order, keys)
        if _MOST_CHANGES * (len(gone) + len(fresh)) > len(keys):
            return False
        came = dict.fromkeys(keys[place] for place in fresh)
        left = dict.fromkeys(self._order[place] for place in gone)
        found = {key: self._column_of(key) for key in came if key not in left}
        columns = [column for column in found.values() if column is not None]
        if (
            not found.keys().isdisjoint(self._places)
            or len(came) < len(fresh)
            or len({*columns}) < len(columns)
            or any(column in self._keys for column in columns)
        ):
            return False
        moved = False
        if found or left.keys() - came.keys():
            moved = self._replace([key for key in left if key not in came], found)
        if moved:
            self._targets = list(map(self._places.__getitem__, keys))
        else:
            new = [self._places[keys[place]] for place in fresh]
            self._targets = _spliced(self._targets, gone, fresh, new)
        return True

    def _replace(self, left: Iterable[Key], found: dict[Key, Column | None]) -> bool:
        """Take columns away and add others. Returns whether any of those that stay got another place."""
        columns: list[Column | None] = list(self._layout.columns)
        gaps = []
        for key in left:
            place = self._places.pop(key)
            if place != _NOWHERE:
                del self._keys[self._layout.columns[place]]
                columns[place] = None
                gaps.append(place)
        for key, column in found.items():
            self._places[key] = _NOWHERE
            if column is not None:
                self._places[key] = place = gaps.pop() if gaps else len(columns)
                columns[place : place + 1] = [column]
                self._keys[column] = key
        self._close(columns, gaps)
        return bool(gaps)

    def _close(self, columns: list[Column | None], gaps: list[int]) -> None:
        """Fill the gaps that are left with the last columns."""
        for gap in sorted(gaps):
            while columns and columns[-1] is None:
                columns.pop()
            if gap >= len(columns):
                break
            columns[gap] = last = columns.pop()
            if last is not None:
                self._places[self._keys[last]] = gap
        self._layout = Layout(tuple(filter(None, columns)))


def _spliced(
    items: list[int], gone: Sequence[int], fresh: Sequence[int], new: Sequence[int]
) -> list[int]:
    """The items without those at the places that are gone, and with new ones so that these are at the fresh places."""
    kept: list[int] = []
    start = 0
    for place in gone:
        kept += items[start:place]
        start = place + 1
    kept += items[start:]
    result: list[int] = []
    start = 0
    for before, (place, item) in enumerate(zip(fresh, new, strict=True)):
        result += kept[start : place - before]
        start = place - before
        result.append(item)
    return result + kept[start:]


class NodeId:
    """
    The node id of one source: what the node itself says, or else the configured one.

    A node says it in the name of the MBean ``kafka.server:type=app-info,id=N``; not every dialect passes that on.
    """

    def __init__(self, configured: str | None) -> None:
        self._configured = configured
        self._layout: Layout | None = None
        self._said: list[str] = []

    def of(self, layout: Layout) -> str:
        """The node id. Raises ``SourceUnreadable`` when there is none, or the node says another one than is configured."""
        if layout is not self._layout:
            self._layout, self._said = layout, _said_in(layout)
        if self._configured is not None:
            if self._said and self._configured not in self._said:
                raise SourceUnreadable(
                    f"the agent says that it is node {self._said[0]}, but this source should be node {self._configured}: "
                    "check its url, and its node_id in the configuration or what discovery found for this address"
                )
            return self._configured
        if not self._said:
            raise SourceUnreadable(
                "the node does not tell its id (MBean kafka.server:type=app-info,id=N): "
                "is this a Kafka broker or controller that has started? If so, configure node_id for this source"
            )
        return self._said[0]


def _said_in(layout: Layout) -> list[str]:
    """The least first."""
    ids = {
        column.bean.get("id") or ""
        for column in layout.columns
        if column.bean.get("type") == "app-info"
    }
    # Kafka's are whole numbers; anything else is the id of something else
    return sorted(filter(_is_number, ids), key=int)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
