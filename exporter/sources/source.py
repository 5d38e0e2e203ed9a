"""The interface of a source, what every source needs (the layout of its columns from read to read, the id of its node), and two sources as one."""

from __future__ import annotations

import asyncio
import re
from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from math import nan
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import SourceError, SourceUnreadable
from ..mapping import BeanColumn, BeanLayout, BeanTable

Key = TypeVar("Key", bound=Hashable)

MOST_NUMBERS: Final = 500_000
"""Those of 80,000 clients under quotas of each type."""
_NOWHERE: Final = -1
_OF_NODE: Final = "StartTimeMs"
"""The attribute of the MBean that has the node id in its name."""


class Source(Protocol):
    """
    Reads one broker or controller. A new dialect is one more implementation.

    ``read`` raises a ``SourceError`` and nothing else; it may be canceled at any
    time when the deadline of a scrape has passed.
    """

    @property
    def name(self) -> str:
        """The label ``source``: the configured name or address, free of secrets."""
        ...

    @property
    def dialect(self) -> str:
        """The label ``dialect``, such as ``jolokia``."""
        ...

    @property
    def node_id(self) -> str | None:
        """The id of its node as configured, or as a discovery has it; None when only the node itself reports it."""
        ...

    async def read(self) -> BeanTable:
        """The quota beans as they are now."""
        ...

    async def close(self) -> None:
        """Release connections. Safe to call twice."""
        ...


class DetectedSource:
    """
    Reads a node through an agent of which only the URL is known: in the first way that works, as long as it works.

    Only an answer that cannot be understood is a reason to try the other way: a node that is down, or refuses
    credentials, would do the same again.

    Args:
        first: The likelier way.
        second: The other one, at the same address and under the same name.
        timeout_seconds: Longest read, in both ways together.

    """

    def __init__(self, first: Source, second: Source, timeout_seconds: float = 60.0) -> None:
        self._timeout_seconds = timeout_seconds
        self.name, self.node_id = first.name, first.node_id
        self._likely, self._other = first, second

    @property
    def dialect(self) -> str:
        """The label ``dialect``: that of the likelier way, as far as it is known."""
        return self._likely.dialect

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``: the one of the likelier way."""
        ends = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            return await self._likely.read()
        except SourceUnreadable as error:
            try:
                async with asyncio.timeout_at(ends):
                    table = await self._other.read()
            except (SourceError, TimeoutError):
                raise error from None
        self._likely, self._other = self._other, self._likely
        return table

    async def close(self) -> None:
        """Release connections."""
        await self._likely.close()
        await self._other.close()


class LayoutTracker(Generic[Key]):
    """
    Keeps the layout of one source from read to read.

    A source has ``MOST_NUMBERS`` at most: each costs a kilobyte, here and in the join.

    As long as the keys are the same, in any order, the layout is the same object and
    only numbers move. When keys come or go, the other columns stay in their places, except those
    that fill a gap. A key that disappeared is forgotten, so that memory is bounded by
    the last answer.

    Args:
        columns_of: A column for each number of a key, or None for a number that is not used.

    """

    def __init__(self, columns_of: Callable[[Key], Sequence[BeanColumn | None]]) -> None:
        self._columns_of = columns_of
        self._layout = BeanLayout(())
        self._order: list[Key] = []
        """The keys of the last answer."""
        self._targets: NDArray[np.intp] = np.empty(0, np.intp)
        """The place of each of their numbers in the layout."""
        self._places: dict[Key, list[int]] = {}
        """A list of its own for each key: the places of its numbers."""
        self._columns: dict[BeanColumn, int] = {}
        """The place of each column; more than one key may have it."""

    def place(self, keys: list[Key], values: Sequence[float] | NDArray[np.float64]) -> tuple[BeanLayout, array[float]]:
        """The layout of ``keys`` and the ``values`` of all of them, one key after the other, in its order. Raises ``SourceUnreadable`` when there are too many."""
        if len(values) > MOST_NUMBERS:
            raise SourceUnreadable(
                f"the answer holds {len(values):,} quota values, more than the {MOST_NUMBERS:,} that are read from one node: "
                "is this a metrics agent, and of one node?"
            )
        if keys != self._order:
            found = [*map(self._places.get, keys)]
            # a key that is malformed raises before anything is changed
            came = {key: self._columns_of(key) for key, at in zip(keys, found, strict=True) if at is None}
            known = len({*map(id, found)} - {id(None)})
            left = self._places.keys() - {*keys} if known < len(self._places) else ()
            if left or came:
                self._replace(left, came)
                for number in (at for at, one in enumerate(found) if one is None):
                    found[number] = self._places[keys[number]]
            places = chain.from_iterable(filter(None, found))
            self._targets = np.fromiter(places, np.intp, len(values))
            self._order = keys
        numbers = array("d", [nan]) * (len(self._layout.columns) + 1)
        np.frombuffer(numbers)[self._targets] = values
        numbers.pop()  # where those that are not used went
        return self._layout, numbers

    def _replace(self, left: Iterable[Key], came: Mapping[Key, Sequence[BeanColumn | None]]) -> None:
        """Forget keys and take others in: their columns fill the gaps first, then the last ones do."""
        columns: list[BeanColumn | None] = list(self._layout.columns)
        gaps = {at for key in left for at in self._places.pop(key)} - {_NOWHERE}
        kept = chain.from_iterable(self._places.values() if gaps else ())
        gaps.difference_update(kept)
        free = sorted(gaps, reverse=True)
        for gap in free:
            del self._columns[self._layout.columns[gap]]
            columns[gap] = None
        for column in dict.fromkeys(chain.from_iterable(came.values())):
            if column is not None and column not in self._columns:
                place = free.pop() if free else len(columns)
                columns[place : place + 1] = [column]
                self._columns[column] = place
        for key, each in came.items():
            self._places[key] = [_NOWHERE if column is None else self._columns[column] for column in each]
        moved = {}
        for gap in reversed(free):
            while columns and columns[-1] is None:
                columns.pop()
            if gap < len(columns) and (last := columns.pop()):
                columns[gap], self._columns[last] = last, gap
                moved[len(columns)] = gap
        if moved:
            for places in self._places.values():
                places[:] = [moved.get(at, at) for at in places]
        self._layout = BeanLayout(tuple(filter(None, columns)))


class NodeId:
    """
    The node id of one source: the one that the node itself reports, or else the configured one.

    A node reports it in the name of the MBean ``kafka.server:type=app-info,id=N``; not every dialect passes that on.
    """

    def __init__(self, configured: str | None) -> None:
        self._configured = configured
        self._layout: BeanLayout | None = None
        self._reported: list[str] = []

    def of(self, layout: BeanLayout) -> str:
        """The node id. Raises ``SourceUnreadable`` when there is none, or the node reports another one than is configured."""
        if layout is not self._layout:
            ids = {
                column.bean.get("id") or ""
                for column in layout.columns
                # the attribute first: there are tens of thousands of columns, and few of that name
                if column.attribute == _OF_NODE and column.bean.get("type") == "app-info"
            }
            # Kafka's are whole numbers of 32 bits; anything else is the id of something else
            numbers = filter(re.compile(r"[0-9]{1,10}").fullmatch, ids)
            self._layout, self._reported = layout, sorted(numbers, key=int)
        if self._configured is not None:
            if self._reported and self._configured not in self._reported:
                raise SourceUnreadable(
                    f"the agent says that it is node {self._reported[0]}, but this source should be node {self._configured}: "
                    "check its url, and its node_id in the configuration or what discovery found for this address"
                )
            return self._configured
        if not self._reported:
            raise SourceUnreadable(
                "the node does not report its id (MBean kafka.server:type=app-info,id=N): "
                "is this a Kafka broker or controller that has started? If so, configure node_id for this source"
            )
        return self._reported[0]
