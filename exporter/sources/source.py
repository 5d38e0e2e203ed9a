"""
The interface of a source, its common parts, and two sources as one.

Every source needs the layout of its columns from read to read, and the id of its node.
"""

from __future__ import annotations

import asyncio
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from math import nan
from threading import Lock
from typing import Final, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog import BROKER_CONNECTIONS_PER_SECOND, LISTENER_CONNECTIONS_PER_SECOND, Family
from quotascope.metrics.kafka.entities import QuotaType

from ..coverage import Coverage, EntityKind, Unplaced
from ..errors import SourceError, SourceUnreadable
from ..mapping import Bean, BeanColumn, BeanLayout, BeanTable, Meaning, attribute_of, replaced
from ..memory import limit_bytes, machine_bytes, numbers_within
from ..untrusted import shown

Key = TypeVar("Key", bound=Hashable)

MOST_NUMBERS: Final = 500_000
"""Most numbers of one source: those of 80,000 clients under quotas of each type."""
_FEWEST_NUMBERS: Final = 50_000
"""Numbers that all sources together may have, however little memory there is."""
_UNUSED: Final = -1
"""Place of a number that is not used."""
_MOST_IDS: Final = 5
"""Most node ids that a message names."""
_NODE_ATTRIBUTE: Final = "StartTimeMs"
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
        """Return the quota beans as they are now."""
        ...

    async def close(self) -> None:
        """Release connections. Safe to call twice."""
        ...


class DetectedSource:
    """
    Reads a node by the one of two sources that understands its agent, if only the URL of the agent is known.

    It tries the other source only if an answer cannot be understood. If a node is down or refuses credentials, the
    other source would fail, too.

    Args:
        likely: The likelier source.
        other: The other source, at the same address and under the same name.
        timeout_seconds: Longest read by both sources together.

    """

    def __init__(self, likely: Source, other: Source, timeout_seconds: float = 60.0) -> None:
        self._timeout_seconds = timeout_seconds
        self.name, self.node_id = likely.name, likely.node_id
        self._likely, self._other = likely, other

    @property
    def dialect(self) -> str:
        """The label ``dialect``: that of the source that worked last, or of the likelier one."""
        return self._likely.dialect

    async def read(self) -> BeanTable:
        """Return the quota beans as they are now. Raises the ``SourceError`` of the likelier source."""
        ends = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            return await self._likely.read()
        except SourceUnreadable as error:
            try:
                async with asyncio.timeout_at(ends):
                    table = await self._other.read()
            except (SourceError, TimeoutError):
                raise error from None
        self._likely, self._other = self._other, self._likely  # the other one has understood the agent
        return table

    async def close(self) -> None:
        """Release connections."""
        await self._likely.close()
        await self._other.close()


class Numbers:
    """
    Bounds the numbers of all sources together, so that they fit into the memory of this process.

    If there are too many, the sources with the most numbers lose their room. So a source with few numbers is read
    however many others send.
    """

    def __init__(self, max_numbers: int) -> None:
        self._max_numbers = max_numbers
        self._counts = WeakKeyDictionary[object, int]()
        """Numbers of each owner."""
        self._lock = Lock()

    def ask(self, owner: object, count: int) -> None:
        """
        Reserve room for ``count`` numbers of an owner, in place of its earlier room.

        Raises ``SourceUnreadable`` if there is no room, and no other owner has more numbers.
        """
        with self._lock:
            other_counts = {other: number for other, number in self._counts.items() if other is not owner}
            free = self._max_numbers - count - sum(other_counts.values())  # below 0: as many are too many
            while free < 0 and other_counts:
                largest = max(other_counts, key=other_counts.__getitem__)
                if other_counts[largest] <= count:  # of two owners with equally many, the first keeps its room
                    self._counts.pop(owner, None)
                    raise SourceUnreadable(
                        f"the answer holds {count:,} quota values, and all sources have more than the "
                        f"{self._max_numbers:,} that fit into this process's memory: it has the most. Is this a "
                        "metrics agent, and of one node? If so, give quotascope more memory"
                    )
                free += other_counts.pop(largest)
                del self._counts[largest]  # the next read of this owner is refused
            self._counts[owner] = count

    def release(self, owner: object) -> None:
        """Give back the room of an owner that no longer reads."""
        with self._lock:
            self._counts.pop(owner, None)


NUMBERS: Final = Numbers(max(_FEWEST_NUMBERS, numbers_within(limit_bytes() or machine_bytes())))


class LayoutTracker(Generic[Key]):
    """
    Keeps the layout of one source from read to read.

    A source has ``MOST_NUMBERS`` at most, since a number costs a kilobyte, here and in the join.

    As long as the keys are the same, in any order, the layout is the same object. When keys come or go, the other
    columns stay in their places, except columns that fill a gap. A key that disappeared is forgotten, so that the last
    answer bounds the memory.

    Args:
        columns_of: Function that returns the column of each number of a key, None for a number that is not used.
        named: Function that returns the text of a key, for messages.
        factor_of: Function that returns the factor from the numbers of a key to Kafka's unit.
        columns_of_all: Function that returns the results of ``columns_of`` for many keys; None to call that.

    """

    def __init__(
        self,
        columns_of: Callable[[Key], Sequence[BeanColumn | None]],
        named: Callable[[Key], str] = str,
        factor_of: Callable[[Key], float] = lambda _: 1.0,
        columns_of_all: Callable[[Sequence[Key]], Sequence[Sequence[BeanColumn | None]]] | None = None,
    ) -> None:
        self._columns_of_all = columns_of_all or (lambda keys: [*map(columns_of, keys)])
        self._named, self._factor_of = named, factor_of
        self._clear()

    def _clear(self) -> None:
        """Forget all keys."""
        self._layout = BeanLayout(())
        self._order: list[Key] = []
        """The keys of the last answer."""
        self._targets: NDArray[np.intp] = np.empty(0, np.intp)
        """Places in the layout of the numbers of the last answer, in their order."""
        self._pairs: NDArray[np.intp] = np.empty((2, 0), np.intp)
        """Indexes of numbers that share a place: of the first ones and of the second ones."""
        self._places: dict[Key, list[int]] = {}
        """Places of the numbers of each key. Each key has a list of its own."""
        self._place_of_column: dict[tuple[Bean, str], int] = {}
        """Places of columns by bean and attribute. Several keys may have the same column."""

    def close(self) -> None:
        """Release the space that is reserved for its numbers."""
        NUMBERS.release(self)

    def place(self, keys: list[Key], values: Sequence[float] | NDArray[np.float64]) -> tuple[BeanLayout, array[float]]:
        """
        Return the layout of an answer, and its numbers in the order of the layout.

        Raises ``SourceUnreadable`` if there are too many numbers, or if two of them contradict each other.

        Args:
            keys: The keys of the answer.
            values: The numbers of the first key, then of the second, and so on.

        """
        if len(values) > MOST_NUMBERS:
            raise SourceUnreadable(
                f"the answer holds {len(values):,} quota values, more than the {MOST_NUMBERS:,} that are read from "
                "one node: is this a metrics agent, and of one node?"
            )
        try:
            NUMBERS.ask(self, len(values))
        except SourceUnreadable:
            self._clear()
            raise
        if keys != self._order:
            places_of_keys = [*map(self._places.get, keys)]  # None for a new key
            new_keys = [*dict.fromkeys(key for key, places in zip(keys, places_of_keys, strict=True) if places is None)]
            # a key that is malformed raises before anything is changed
            new_columns = self._columns_of_all(new_keys)
            # the number of different known keys: each has places of its own, and identities are hashed fast
            known_count = len({*map(id, places_of_keys)} - {id(None)})
            removed = self._places.keys() - {*keys} if known_count < len(self._places) else ()
            if removed or new_keys:
                self._replace(removed, zip(new_keys, new_columns, strict=True))
                places_of_keys = [*map(self._places.__getitem__, keys)]
            places = chain.from_iterable(filter(None, places_of_keys))
            self._targets = np.fromiter(places, np.intp, len(values))
            self._order = keys
            self._pairs = self._find_pairs()
            self._refuse_two_units()
        if self._pairs.size:
            self._refuse_contradiction(np.asarray(values, np.float64))
        numbers = array("d", [nan]) * (len(self._layout.columns) + 1)
        np.frombuffer(numbers)[self._targets] = values
        numbers.pop()  # the place -1, where numbers without a use were written
        return self._layout, numbers

    def _find_pairs(self) -> NDArray[np.intp]:
        """Return the indexes of numbers that share a place, as in ``_pairs``."""
        is_used = self._targets >= 0
        if np.count_nonzero(is_used) == len(self._layout.columns):  # each column has at least one number
            return np.empty((2, 0), np.intp)
        by_place = np.argsort(self._targets, kind="stable")  # indexes of numbers
        by_place = by_place[is_used[by_place]]
        firsts, seconds = by_place[:-1], by_place[1:]
        is_shared = self._targets[seconds] == self._targets[firsts]
        return np.stack([firsts[is_shared], seconds[is_shared]])

    def _refuse_two_units(self) -> None:
        """
        Raise ``SourceUnreadable`` if two numbers of one place are in different units.

        It is unknown which of the two rules converts its number.
        """
        if not self._pairs.size:
            return
        key_of_number = [key for key in self._order for _ in self._places[key]]
        for first_number, second_number in self._pairs.T.tolist():
            first, second = key_of_number[first_number], key_of_number[second_number]
            if first != second and self._factor_of(first) != self._factor_of(second):
                first_text, second_text = shown(self._named(first)), shown(self._named(second))
                self._order = []  # the next answer is looked at again, even if it has the same keys
                raise SourceUnreadable(
                    f"the answer has one number in two units, {first_text} and {second_text}: leave one of them in "
                    "the agent's rules, or use the rules that `quotascope rules jmx-exporter` writes"
                )

    def _refuse_contradiction(self, values: NDArray[np.float64]) -> None:
        """
        Raise ``SourceUnreadable`` if two numbers of one place differ.

        Their order does not show which of them is right.
        """
        firsts, seconds = values[self._pairs]
        is_same = (firsts == seconds) | (np.isnan(firsts) & np.isnan(seconds))
        differing = np.flatnonzero(~is_same)
        if not differing.size:
            return
        first_number, second_number = self._pairs[:, differing[0]].tolist()
        keys = [key for key in self._order for _ in self._places[key]]
        column = self._layout.columns[self._targets[first_number]]
        texts = [f"{shown(self._named(keys[number]))} {values[number]:g}" for number in (first_number, second_number)]
        bean = ",".join(f"{key}={value}" for key, value in column.bean.properties)
        raise SourceUnreadable(
            f"the answer has two values of one number, {texts[0]} and {texts[1]} (both mean {column.attribute} of "
            f"{shown(f'{column.bean.domain}:{bean}')}): does it join several brokers, or the pages of two agents? "
            "Give quotascope the agent of each broker as a source of its own"
        )

    def _replace(self, removed: Iterable[Key], added: Iterable[tuple[Key, Sequence[BeanColumn | None]]]) -> None:
        """Forget keys and add others. New columns fill the gaps; the last columns move to the gaps that remain."""
        columns: list[BeanColumn | None] = list(self._layout.columns)
        gaps = {place for key in removed for place in self._places.pop(key)} - {_UNUSED}
        still_used = chain.from_iterable(self._places.values() if gaps else ())  # keys may share a column
        gaps.difference_update(still_used)
        free = sorted(gaps, reverse=True)
        for gap in free:
            del self._place_of_column[self._layout.columns[gap][:2]]
            columns[gap] = None
        self._add(added, columns, free)  # which leaves in `free` the gaps that it does not fill
        moved = {}  # the new place of each column that moves, by its last place
        for gap in reversed(free):
            while columns and columns[-1] is None:
                columns.pop()
            if gap < len(columns):
                last_column = columns.pop()
                if last_column is not None:
                    columns[gap], self._place_of_column[last_column[:2]] = last_column, gap
                    moved[len(columns)] = gap
        if moved:
            for places in self._places.values():
                places[:] = [moved.get(place, place) for place in places]
        self._layout = BeanLayout(tuple(filter(None, columns)))

    def _add(
        self,
        added: Iterable[tuple[Key, Sequence[BeanColumn | None]]],
        columns: list[BeanColumn | None],
        free: list[int],
    ) -> None:
        """
        Add the columns of new keys.

        Args:
            added: The keys and their columns.
            columns: The columns of the layout by place, which gets the new columns.
            free: The free places, descending, which loses the places that are filled.

        """
        place_of, end = self._place_of_column.setdefault, len(columns)
        for key, columns_of_key in added:
            places_of_key = self._places[key] = []
            for column in columns_of_key:
                if column is None:
                    places_of_key.append(_UNUSED)
                    continue
                new_place = free[-1] if free else end
                place = place_of(column[:2], new_place)  # its present place if another key has this column
                places_of_key.append(place)
                if place == end:
                    columns.append(column)
                    end += 1
                elif place == new_place:
                    columns[free.pop()] = column


def reported_ids(layout: BeanLayout) -> list[str]:
    """Return the node ids that the beans report, in order. A layout of one agent has one id at most."""
    ids = {
        column.bean.get("id") or ""
        for column in layout.columns
        # the attribute first: there are tens of thousands of columns, and few of that name
        if column.attribute == _NODE_ATTRIBUTE and column.bean.get("type") == "app-info"
    }
    # Kafka's are whole numbers of 32 bits; anything else is the id of something else
    return sorted(filter(re.compile(r"[0-9]{1,10}").fullmatch, ids), key=int)


class NodeId:
    """
    Finds the node id of one source: the configured one, or else the one that the node itself reports.

    A node reports it in the name of the MBean ``kafka.server:type=app-info,id=N``, which some dialects leave out.
    """

    def __init__(self, configured: str | None) -> None:
        self._configured = configured
        self._layout: BeanLayout | None = None
        self._reported: list[str] = []

    def of(self, layout: BeanLayout) -> str:
        """
        Return the node id of an answer with this layout.

        Raises ``SourceUnreadable`` if there is none, if there are several, or if the node reports another one than the
        configured one.
        """
        if layout is not self._layout:
            self._layout, self._reported = layout, reported_ids(layout)
        if len(self._reported) > 1:
            raise SourceUnreadable(
                f"the answer is of several nodes ({', '.join(self._reported[:_MOST_IDS])}), each with its MBean "
                "kafka.server:type=app-info: give quotascope the agent of each node as a source of its own, "
                "instead of a page that joins them (/federate, or one exporter for several brokers)"
            )
        if self._configured is not None:
            if self._reported and self._configured not in self._reported:
                raise SourceUnreadable(
                    f"the agent says that it is node {self._reported[0]}, but this source should be node "
                    f"{self._configured}: check its url, and its node_id in the configuration or what discovery found "
                    "for this address"
                )
            return self._configured
        if not self._reported:
            raise SourceUnreadable(
                "the node does not report its id (MBean kafka.server:type=app-info,id=N): "
                "is this a Kafka broker or controller that has started? If so, configure node_id for this source"
            )
        return self._reported[0]


class CoverageTracker:
    """
    Finds the coverage of a source's answers, once for each layout.

    Columns that the previous layout has, too, are not examined again.

    Args:
        complete: Value of `Coverage.complete`.
        alike: Value of `Coverage.alike`.

    """

    def __init__(self, *, complete: bool = False, alike: bool = False) -> None:
        self._complete, self._alike = complete, alike
        self._layout: BeanLayout | None = None
        self._columns: tuple[BeanColumn, ...] = ()
        self._counts = Counter[_Kind]()
        self._coverage = Coverage()

    def of(
        self,
        layout: BeanLayout,
        unplaced: Unplaced | None = None,
        labels_of_page: tuple[str, ...] = (),
        in_seconds: str = "",
    ) -> Coverage:
        """
        Return the coverage of an answer.

        Args:
            layout: The beans of the answer.
            unplaced: Series that could not be placed.
            labels_of_page: Labels that were left out.
            in_seconds: The name of a metric of throttle times in seconds; empty for none.

        """
        if layout is not self._layout:
            old_columns, new_columns = self._columns, layout.columns
            changed = replaced(old_columns, new_columns)
            removed = [old_columns[index] for index in changed if index < len(old_columns)]
            added = [new_columns[index] for index in changed if index < len(new_columns)]
            self._counts.subtract(_kinds_of(removed))
            self._counts.update(_kinds_of(added))
            self._columns = new_columns
            self._coverage = self._make_coverage(unplaced)
            self._layout = layout
        elif unplaced != self._coverage.unplaced:
            self._coverage = replace(self._coverage, unplaced=unplaced)
        if (labels_of_page, in_seconds) != (self._coverage.labels_of_page, self._coverage.in_seconds):
            self._coverage = replace(self._coverage, labels_of_page=labels_of_page, in_seconds=in_seconds)
        return self._coverage

    def _make_coverage(self, unplaced: Unplaced | None) -> Coverage:
        """Return the coverage of the present columns."""
        kinds: dict[QuotaType, set[EntityKind]] = defaultdict(set)
        types_by_meaning: dict[Meaning | Family, set[QuotaType]] = defaultdict(set)
        tagged = connections = False
        for (quota_type, meaning, is_open, kind), count in self._counts.items():
            if not count:
                continue
            if quota_type is None:
                connections |= meaning in _CONNECTIONS
                continue
            types_by_meaning[meaning].add(quota_type)
            tagged |= is_open
            if kind is not None:
                kinds[quota_type].add(kind)
        return Coverage(
            kinds={quota_type: frozenset(kinds_of_type) for quota_type, kinds_of_type in kinds.items()},
            tagged=tagged,
            usages=frozenset(types_by_meaning[Meaning.USAGE]),
            throttle_times=frozenset(types_by_meaning[Meaning.THROTTLE_TIME]),
            tokens=bool(types_by_meaning[Meaning.TOKENS]),
            queues=frozenset(types_by_meaning[Meaning.DELAY_QUEUE_SIZE]),
            connections=connections,
            complete=self._complete,
            alike=self._alike,
            unplaced=unplaced,
        )


_Kind: TypeAlias = tuple[QuotaType | None, Meaning | Family, bool, EntityKind | None]
"""Quota type, meaning, whether it is of a custom quota callback, and the kind of entity."""
_CONNECTIONS: Final = {BROKER_CONNECTIONS_PER_SECOND, LISTENER_CONNECTIONS_PER_SECOND}
_NOTHING: Final[_Kind] = (None, Meaning.STARTED_AT, False, None)


def _kinds_of(columns: Sequence[BeanColumn]) -> Counter[_Kind]:
    """Return the number of columns of each kind."""
    # Attributes and beans are counted by identity, since hashing them would take longer than everything else.
    beans = [bean for bean, _, _ in columns]
    attributes = [mapped or attribute_of(BeanColumn(bean, name)) for bean, name, mapped in columns]
    bean_by_id = dict(zip(map(id, beans), beans, strict=True))
    attribute_by_id = dict(zip(map(id, attributes), attributes, strict=True))
    names_by_id = {bean_id: _names_of(bean) for bean_id, bean in bean_by_id.items()}
    names_of_columns = map(names_by_id.__getitem__, map(id, beans))
    counts = Counter(zip(map(id, attributes), names_of_columns, strict=True))
    kinds = Counter[_Kind]()
    for (attribute_id, names), count in counts.items():
        attribute, kind = attribute_by_id[attribute_id], None
        if attribute is None:
            kinds[_NOTHING] += count
            continue
        if attribute.quota_type is not None and not attribute.open:
            kind = EntityKind.of(names & _HAS_USER, names & _HAS_CLIENT_ID)
        kinds[attribute.quota_type, attribute.meaning, attribute.open, kind] += count
    return kinds


_HAS_USER: Final = 1
_HAS_CLIENT_ID: Final = 2


def _names_of(bean: Bean) -> int:
    """Return the names in a quota's bean as flags, ``_HAS_USER`` and ``_HAS_CLIENT_ID``."""
    if not bean.properties:
        return 0
    (first_key, client_id), (last_key, user) = bean.properties[0], bean.properties[-1]  # sorted by key
    has_user = last_key == "user" and user != ""
    has_client_id = first_key == "client-id" and client_id != ""
    return _HAS_USER * has_user + _HAS_CLIENT_ID * has_client_id
