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
_LEAST_NUMBERS: Final = 50_000
"""Fewest numbers that all sources together may have, however little memory there is."""
_NOWHERE: Final = -1
_MOST_IDS: Final = 5
"""Node ids that a message names."""
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
        """Return the quota beans as they are now."""
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

    def __init__(self, likely: Source, second: Source, timeout_seconds: float = 60.0) -> None:
        self._timeout_seconds = timeout_seconds
        self.name, self.node_id = likely.name, likely.node_id
        self._likely, self._other = likely, second

    @property
    def dialect(self) -> str:
        """The label ``dialect``: that of the likelier way, as far as it is known."""
        return self._likely.dialect

    async def read(self) -> BeanTable:
        """Return the quota beans as they are now. Raises ``SourceError``: the one of the likelier way."""
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


class Numbers:
    """
    Bounds the numbers of all sources together, so that they fit into the memory of this process.

    Where there are too many, the sources with the most numbers lose theirs, so that a source with few is read however
    many others send.
    """

    def __init__(self, max_numbers: int) -> None:
        self._most = max_numbers
        self._of = WeakKeyDictionary[object, int]()
        self._lock = Lock()

    def ask(self, owner: object, count: int) -> None:
        """
        Take room for a number of values of an owner, in place of its earlier room.

        Raises ``SourceUnreadable`` when there is none, and no other owner has more.
        """
        with self._lock:
            numbers_by_owner = {
                other_owner: number for other_owner, number in self._of.items() if other_owner is not owner
            }
            free = self._most - count - sum(numbers_by_owner.values())
            while free < 0 and numbers_by_owner:
                largest = max(numbers_by_owner, key=numbers_by_owner.__getitem__)
                if numbers_by_owner[largest] <= count:  # of two owners with equally many, the first keeps its room
                    self._of.pop(owner, None)
                    raise SourceUnreadable(
                        f"the answer holds {count:,} quota values, and all sources have more than the "
                        f"{self._most:,} that fit into this process's "
                        "memory: it has the most. Is this a metrics agent, and of one node? If so, give quotascope "
                        "more memory"
                    )
                free += numbers_by_owner.pop(largest)
                del self._of[largest]  # this owner is refused when it is read again
            self._of[owner] = count

    def release(self, owner: object) -> None:
        """Give back the room of an owner that no longer reads."""
        with self._lock:
            self._of.pop(owner, None)


NUMBERS: Final = Numbers(max(_LEAST_NUMBERS, numbers_within(limit_bytes() or machine_bytes())))


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
        named: The text of a key, for messages.
        factor_of: Factor from the numbers of a key to Kafka's unit.
        columns_of_all: Does what ``columns_of`` does for many keys, where that is faster than one by one.

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
        """Places in the layout of the numbers of these keys."""
        self._repeated: NDArray[np.intp] = np.empty((2, 0), np.intp)
        """Pairs of numbers that share a place."""
        self._places: dict[Key, list[int]] = {}
        """Places of the numbers of each key, in a list of its own."""
        self._columns: dict[tuple[Bean, str], int] = {}
        """The place of each column by bean and attribute; several keys may have the same."""

    def close(self) -> None:
        """Release the space that is reserved for its numbers."""
        NUMBERS.release(self)

    def place(self, keys: list[Key], values: Sequence[float] | NDArray[np.float64]) -> tuple[BeanLayout, array[float]]:
        """
        Return the layout of ``keys``, and ``values`` in its order; ``values`` come one key after the other.

        Raises ``SourceUnreadable`` when there are too many, or two that contradict each other.
        """
        if len(values) > MOST_NUMBERS:
            raise SourceUnreadable(
                f"the answer holds {len(values):,} quota values, more than the {MOST_NUMBERS:,} that are read from "
                "one node: "
                "is this a metrics agent, and of one node?"
            )
        try:
            NUMBERS.ask(self, len(values))
        except SourceUnreadable:
            self._clear()
            raise
        if keys != self._order:
            places_of_keys = [*map(self._places.get, keys)]
            new_keys = [*dict.fromkeys(key for key, places in zip(keys, places_of_keys, strict=True) if places is None)]
            # a key that is malformed raises before anything is changed
            new_columns = self._columns_of_all(new_keys)
            known_count = len({*map(id, places_of_keys)} - {id(None)})
            removed = self._places.keys() - {*keys} if known_count < len(self._places) else ()
            if removed or new_keys:
                self._replace(removed, zip(new_keys, new_columns, strict=True))
                places_of_keys = [*map(self._places.__getitem__, keys)]
            places = chain.from_iterable(filter(None, places_of_keys))
            self._targets = np.fromiter(places, np.intp, len(values))
            self._order = keys
            self._repeated = self._pairs()
            self._refuse_two_units()
        if self._repeated.size:
            self._refuse_contradiction(np.asarray(values, np.float64))
        numbers = array("d", [nan]) * (len(self._layout.columns) + 1)
        np.frombuffer(numbers)[self._targets] = values
        numbers.pop()  # the place where numbers without a use were written
        return self._layout, numbers

    def _pairs(self) -> NDArray[np.intp]:
        """Return the numbers that share a place, each with the one before it."""
        used = self._targets >= 0
        if np.count_nonzero(used) == len(self._layout.columns):  # each column has at least one number
            return np.empty((2, 0), np.intp)
        order = np.argsort(self._targets, kind="stable")
        order = order[used[order]]
        is_shared = self._targets[order[1:]] == self._targets[order[:-1]]
        return np.stack([order[:-1][is_shared], order[1:][is_shared]])

    def _refuse_two_units(self) -> None:
        """
        Raise ``SourceUnreadable`` when two numbers of one place are in different units.

        A rule that does not convert its number is as likely as one that does.
        """
        if not self._repeated.size:
            return
        keys = [key for key in self._order for _ in self._places[key]]
        for first_number, second in self._repeated.T.tolist():
            if keys[first_number] != keys[second] and self._factor_of(keys[first_number]) != self._factor_of(
                keys[second]
            ):
                first_text, second_text = (shown(self._named(keys[number])) for number in (first_number, second))
                self._order = []
                raise SourceUnreadable(
                    f"the answer has one number in two units, {first_text} and {second_text}: leave one of them in "
                    "the agent's "
                    "rules, "
                    "or use the rules that `quotascope rules jmx-exporter` writes"
                )

    def _refuse_contradiction(self, values: NDArray[np.float64]) -> None:
        """
        Raise ``SourceUnreadable`` when two numbers of one place differ.

        Their order does not show which of them is right.
        """
        values_before, values_after = values[self._repeated]
        differ = np.flatnonzero(~((values_before == values_after) | (np.isnan(values_before) & np.isnan(values_after))))
        if not differ.size:
            return
        first_number, second = self._repeated[:, differ[0]].tolist()
        keys = [key for key in self._order for _ in self._places[key]]
        column = self._layout.columns[self._targets[first_number]]
        texts = [f"{shown(self._named(keys[number]))} {values[number]:g}" for number in (first_number, second)]
        bean = ",".join(f"{key}={value}" for key, value in column.bean.properties)
        raise SourceUnreadable(
            f"the answer has two values of one number, {texts[0]} and {texts[1]} (both mean {column.attribute} of "
            f"{shown(f'{column.bean.domain}:{bean}')}): does it join several brokers, or the pages of two agents? "
            "Give quotascope the agent of each broker as a source of its own"
        )

    def _replace(self, removed: Iterable[Key], added: Iterable[tuple[Key, Sequence[BeanColumn | None]]]) -> None:
        """Forget keys and add others: new columns fill the gaps first, then the last columns fill the rest."""
        columns: list[BeanColumn | None] = list(self._layout.columns)
        gaps = {place for key in removed for place in self._places.pop(key)} - {_NOWHERE}
        used = chain.from_iterable(self._places.values() if gaps else ())
        gaps.difference_update(used)
        free = sorted(gaps, reverse=True)
        for gap in free:
            del self._columns[self._layout.columns[gap][:2]]
            columns[gap] = None
        self._take_in(added, columns, free)
        moved = {}
        for gap in reversed(free):
            while columns and columns[-1] is None:
                columns.pop()
            if gap < len(columns) and (last_column := columns.pop()):
                columns[gap], self._columns[last_column[:2]] = last_column, gap
                moved[len(columns)] = gap
        if moved:
            for places in self._places.values():
                places[:] = [moved.get(place, place) for place in places]
        self._layout = BeanLayout(tuple(filter(None, columns)))

    def _take_in(
        self,
        added: Iterable[tuple[Key, Sequence[BeanColumn | None]]],
        columns: list[BeanColumn | None],
        free: list[int],
    ) -> None:
        """Place the columns of new keys in ``free`` places, the last of these first."""
        place_of, end = self._columns.setdefault, len(columns)
        for key, columns_of_key in added:
            places_of_key = self._places[key] = []
            for column in columns_of_key:
                if column is None:
                    places_of_key.append(_NOWHERE)
                    continue
                new_place = free[-1] if free else end
                place = place_of(column[:2], new_place)
                places_of_key.append(place)
                if place == end:
                    columns.append(column)
                    end += 1
                elif place == new_place:
                    columns[free.pop()] = column


def reported_ids(layout: BeanLayout) -> list[str]:
    """Return the ids of the nodes that report theirs among these beans, in order; from one agent, at most one."""
    ids = {
        column.bean.get("id") or ""
        for column in layout.columns
        # the attribute first: there are tens of thousands of columns, and few of that name
        if column.attribute == _OF_NODE and column.bean.get("type") == "app-info"
    }
    # Kafka's are whole numbers of 32 bits; anything else is the id of something else
    return sorted(filter(re.compile(r"[0-9]{1,10}").fullmatch, ids), key=int)


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
        """
        Return the node id.

        Raises ``SourceUnreadable`` when there is none, when there are several, or the node reports another one than is
        configured.
        """
        if layout is not self._layout:
            self._layout, self._reported = layout, reported_ids(layout)
        if len(self._reported) > 1:
            raise SourceUnreadable(
                f"the answer is of several nodes ({', '.join(self._reported[:_MOST_IDS])}), each with its MBean "
                "kafka.server:type=app-info: give quotascope the agent of each node as a source of its own, "
                "instead of a page "
                "that joins them (/federate, or one exporter for several brokers)"
            )
        if self._configured is not None:
            if self._reported and self._configured not in self._reported:
                raise SourceUnreadable(
                    f"the agent says that it is node {self._reported[0]}, but this source should be node "
                    f"{self._configured}: "
                    "check its url, and its node_id in the configuration or what discovery found for this address"
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
    Finds out what a source can show, once for each layout.

    Columns that are also in the layout before are not examined again.

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
            layout: the beans of the answer.
            unplaced: series that could not be placed.
            labels_of_page: labels that were left out.
            in_seconds: a family in another unit than Kafka's.

        """
        if layout is not self._layout:
            old_columns, new_columns = self._columns, layout.columns
            changed = replaced(old_columns, new_columns)
            self._counts.subtract(_kinds_of([old_columns[index] for index in changed if index < len(old_columns)]))
            self._counts.update(_kinds_of([new_columns[index] for index in changed if index < len(new_columns)]))
            self._columns = new_columns
            self._coverage = self._made(unplaced)
            self._layout = layout
        elif unplaced != self._coverage.unplaced:
            self._coverage = replace(self._coverage, unplaced=unplaced)
        if (labels_of_page, in_seconds) != (self._coverage.labels_of_page, self._coverage.in_seconds):
            self._coverage = replace(self._coverage, labels_of_page=labels_of_page, in_seconds=in_seconds)
        return self._coverage

    def _made(self, unplaced: Unplaced | None) -> Coverage:
        kinds: dict[QuotaType, set[EntityKind]] = defaultdict(set)
        of_meaning: dict[Meaning | Family, set[QuotaType]] = defaultdict(set)
        tagged = connections = False
        for (quota_type, meaning, is_open, kind), count in self._counts.items():
            if count and quota_type is None:
                connections |= meaning in _CONNECTIONS
            elif count and quota_type is not None:
                of_meaning[meaning].add(quota_type)
                tagged |= is_open
                if kind is not None:
                    kinds[quota_type].add(kind)
        return Coverage(
            kinds={quota_type: frozenset(of_type) for quota_type, of_type in kinds.items()},
            tagged=tagged,
            usages=frozenset(of_meaning[Meaning.USAGE]),
            throttle_times=frozenset(of_meaning[Meaning.THROTTLE_TIME]),
            tokens=bool(of_meaning[Meaning.TOKENS]),
            queues=frozenset(of_meaning[Meaning.DELAY_QUEUE_SIZE]),
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
    # By identity, one step for all columns: hashing the attributes and beans of each would cost more than all else.
    beans = [bean for bean, _, _ in columns]
    attributes = [mapped or attribute_of(BeanColumn(bean, name)) for bean, name, mapped in columns]
    name_numbers = {place: _names_of(bean) for place, bean in dict(zip(map(id, beans), beans, strict=True)).items()}
    counts = Counter(zip(map(id, attributes), map(name_numbers.__getitem__, map(id, beans)), strict=True))
    by_identity = dict(zip(map(id, attributes), attributes, strict=True))
    kinds = Counter[_Kind]()
    for (place, names), count in counts.items():
        attribute, kind = by_identity[place], None
        if attribute is None:
            kinds[_NOTHING] += count
            continue
        if attribute.quota_type is not None and not attribute.open:
            kind = EntityKind.of(names & 1, names & 2)
        kinds[attribute.quota_type, attribute.meaning, attribute.open, kind] += count
    return kinds


def _names_of(bean: Bean) -> int:
    """Return a number for the names in a quota's bean: 1 for a user, plus 2 for a client-id."""
    if not bean.properties:
        return 0
    (first_key, client_id), (last_key, user) = bean.properties[0], bean.properties[-1]  # sorted by key
    return (last_key == "user" and user != "") + 2 * (first_key == "client-id" and client_id != "")
