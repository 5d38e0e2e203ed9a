"""
Where in the tables the numbers of each entity and node are.

Found once for each column, when it is first seen: afterwards a scrape is a take by arrays of places. Where few columns
change, these are looked at, and the others are moved with their rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import compress, count
from math import nan
from operator import is_not
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import MalformedName, QuotaType, desanitize

from ..limits import Limits
from ..mapping import Attribute, BeanColumn, BeanTable, Meaning, attribute_of
from ..snapshot import Callbacks, Entity, Layout
from ..snapshot.columns import NAMES
from ..snapshot.layout import Rows, order
from .limiting import StaticLimits, alike, deciding, limited, static_limits

MOST_TAGS: Final = 10
"""How many tags of a custom quota callback are shown."""
OF_ENTITIES: Final = {Meaning[name.upper()]: name for name in NAMES}
"""What is reported of entities, and the column of a snapshot that holds it, which has the same name."""
_NUMBERS: Final = {meaning: number for number, meaning in enumerate(OF_ENTITIES)}
_TAKEN: Final = {"broker", "quota_type", "cluster", "le", "quantile"}
_BLOCK: Final = 64
"""Columns that are compared at once."""
_NOWHERE: Final = np.empty(0, np.intp)


class ColumnMeaning(NamedTuple):
    """What the numbers of a column are about."""

    attribute: Attribute
    tags: tuple[QuotaType, str, str] | None
    """The entity on its node: quota type, decoded user and client-id, empty where absent; None for a number of the node."""
    about: str
    """The request, listener, address, part or quota type of a number of the node; empty for the node itself."""
    callback: tuple[QuotaType, tuple[tuple[str, str], ...]] | None = None
    """The entity of a custom quota callback on its node: quota type, and tags by key."""


def interpreted(column: BeanColumn) -> ColumnMeaning | None:
    """The meaning of a column, None when it has none for us."""
    attribute = attribute_of(column)
    if attribute is None:
        return None
    bean, kind = column.bean, attribute.quota_type
    if attribute.open and kind is not None:
        tags = tuple(pair for pair in bean.properties if pair[0] != "type")
        return ColumnMeaning(attribute, None, "", (kind, tags))
    if kind is not None and "user" in attribute.free:
        names = dict(bean.properties)
        user, client_id = names.get("user", ""), names.get("client-id", "")
        return ColumnMeaning(attribute, (kind, decoded(user), client_id), "")
    free = (bean.get(key) for key in attribute.free if attribute.required)
    about = next(filter(None, free), attribute.part)
    return ColumnMeaning(attribute, None, about if kind is None else kind.value)


@lru_cache(maxsize=64)  # the columns of a user come one after the other
def decoded(user: str) -> str:
    """The user's name out of Kafka's percent-encoded tag; a tag that Kafka would not write stays as it is."""
    try:
        return desanitize(user)
    except MalformedName:
        return user


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """What the columns of one node's table are about."""

    node_id: str
    columns: tuple[BeanColumn, ...] = ()
    rows: Rows = field(default_factory=_NOWHERE.copy)
    """By column the row of its entity, -1 where it is about no entity, or the row is not found yet."""
    meanings: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    """By column the place of its meaning in ``OF_ENTITIES``, if it is about an entity."""
    others: Mapping[int, ColumnMeaning] = field(default_factory=dict)
    """By column the meaning of those that are not about an entity of Kafka's own quotas."""
    fresh: Mapping[int, ColumnMeaning] = field(default_factory=dict)
    """By column the meaning of those about an entity without a row yet."""
    places: Mapping[Meaning, Mapping[str, int]] = field(default_factory=dict)
    """The columns about the node: by meaning, and by request, listener, address, part or quota type."""
    tags: frozenset[str] = frozenset()
    """The keys of the tags of a custom quota callback."""

    def following(self, columns: tuple[BeanColumn, ...]) -> NodeColumns:
        """What the columns of the node's next table are about; new ones are interpreted, all others keep their rows."""
        before, size = self.columns, len(columns)
        changed = replaced(before, columns)
        # Hashing a column would take as long as interpreting it; both tables keep identities valid.
        known = {id(before[at]): at for at in changed if at < len(before)}
        more = np.full(max(size - len(before), 0), -1)
        rows = np.append(self.rows[:size], more)
        meanings = np.append(self.meanings[:size], more.astype(np.int8))
        others = {**self.others}
        fresh: dict[int, ColumnMeaning] = {}
        for at in changed:
            others.pop(at, None)
        for at in changed[: np.searchsorted(changed, size)]:
            origin = known.get(id(columns[at]))
            if origin is not None:
                rows[at], meanings[at] = self.rows[origin], self.meanings[origin]
                meaning = self.others.get(origin)
            else:
                rows[at], meaning = -1, interpreted(columns[at])
                if meaning is not None and (meaning.tags or meaning.callback):
                    meanings[at] = _NUMBERS[meaning.attribute.meaning]
                    fresh[at] = meaning
            if meaning is not None and not meaning.tags:
                others[at] = meaning
        places: dict[Meaning, dict[str, int]] = {}
        tags: set[str] = set()
        for at, meaning in sorted(others.items()):
            if meaning.callback is not None:
                tags.update(key for key, _ in meaning.callback[1])
            else:
                places.setdefault(meaning.attribute.meaning, {})[meaning.about] = at
        return NodeColumns(
            self.node_id, columns, rows, meanings, others, fresh, places, frozenset(tags)
        )  # fmt: skip

    def without_callbacks(self) -> NodeColumns:
        """The same columns, of which those of a custom quota callback have no row yet."""
        tagged = {at: each for at, each in self.others.items() if each.callback}
        rows = self.rows.copy()
        rows[[*tagged]] = -1
        return replace(self, rows=rows, fresh={**self.fresh, **tagged})


class Placed:
    """All that is known of some tables before their numbers: the same object while their columns and the limits are the same."""

    def __init__(
        self,
        layout: Layout,
        nodes: Sequence[NodeColumns],
        rules: Limits | None,
        static: Mapping[str, StaticLimits],
        callbacks: Callbacks,
    ) -> None:
        self.layout = layout
        """All entities, also those of nodes that were read a short while ago."""
        self.nodes = nodes
        self.rules = rules
        """The limits if they decide; None when they are unknown, or a custom quota callback decides."""
        self.static = static
        """The limits of Strimzi's quotas plugin by node, also of nodes that were read a short while ago."""
        self.callbacks = callbacks
        rows = np.concatenate([_NOWHERE, *(node.rows for node in nodes)])
        meanings = np.concatenate([_NOWHERE, *(node.meanings for node in nodes)])
        about = rows >= 0
        self.read = np.zeros(len(layout), np.bool_)
        """By row whether the tables have any number of it."""
        self.read[rows[about]] = True
        self.places: dict[Meaning, Rows] = {}
        """By row the place of a number, counted through all tables one after the other; -1 where there is none."""
        self.folded: dict[Meaning, tuple[Rows, Rows]] = {}
        """Where several numbers are of one entity, the places of all of a callback's, and the row of each."""
        for meaning, number in _NUMBERS.items():
            of_it = np.flatnonzero(about & (meanings == number))
            if of_it.size:
                # Of two columns with the same meaning, by two spellings of a name, the later one counts.
                self.places[meaning] = np.full(len(layout), -1)
                self.places[meaning][rows[of_it]] = of_it
                tagged = of_it[rows[of_it] >= layout.tagged.start]
                if np.unique(rows[tagged]).size < tagged.size:
                    self.folded[meaning] = tagged, rows[tagged]


class Placing:
    """
    Keeps the entities of all nodes, and where their numbers are, from scrape to scrape.

    An entity stays the same as long as its beans are there and its node is not forgotten, whatever its limit.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeColumns] = {}
        self._layout = Layout(())
        self._tags: tuple[str, ...] = ()
        """The keys of the tags that are shown."""
        self._rules: Limits | None = None
        self._read_again: Limits | None = None
        """Limits found equal to ``_rules`` last: to compare thousands of rules takes long."""
        self._static: dict[str, StaticLimits] = {}
        """The limits of Strimzi's quotas plugin by node."""
        self._placed: Placed | None = None

    def place(self, tables: Sequence[BeanTable], limits: Limits | None) -> Placed:
        """Where the numbers of these tables are, one for each node."""
        nodes, last = dict(self._nodes), self._placed
        for table in tables:
            node = nodes.get(table.node_id)
            if node is None or node.columns is not table.layout.columns:
                node = node or NodeColumns(table.node_id)
                nodes[table.node_id] = node.following(table.layout.columns)
        read = [nodes[table.node_id] for table in tables]
        keys = sorted(set[str]().union(*(node.tags for node in read)))
        static = {name: each for name, each in self._static.items() if name in nodes}
        for node, table in zip(read, tables, strict=True):
            static.pop(node.node_id, None)
            if places := node.places.get(Meaning.CALLBACK_LIMIT):
                configured = {name: table.values[at] for name, at in places.items()}
                factor = node.places.get(Meaning.CALLBACK_FACTOR, {}).get("")
                static[node.node_id] = static_limits(configured, nan if factor is None else table.values[factor])
        rules = deciding(limits, callback_seen=bool(keys or static))
        if rules is self._read_again or alike(rules, self._rules):
            self._read_again, rules = rules, self._rules
            if last and read == [*last.nodes] and static == self._static:
                return last
        tags = tuple(keys[:MOST_TAGS])
        if tags != self._tags:
            nodes = {name: node.without_callbacks() for name, node in nodes.items()}
        layout = self._follow(nodes, tags, rules, static)
        if rules is not self._rules or static != self._static:
            now = {
                row: under
                for row, entity in enumerate(layout.entities)
                if (under := limited(entity, rules, static, tags)) is not entity
            }
            layout = layout.under(now) if now else layout
        # Nothing is taken over before all is known.
        if rules is not self._rules:
            self._rules = self._read_again = rules
        self._nodes, self._layout, self._tags = nodes, layout, tags
        self._static = static
        callbacks = Callbacks(labels=labels_of(tags), left_out=tuple(keys[MOST_TAGS:]))
        read = [nodes[table.node_id] for table in tables]
        self._placed = Placed(layout, read, rules, static, callbacks)
        return self._placed

    def forget(self, node_id: str) -> None:
        """Drop the entities of a node."""
        if self._nodes.pop(node_id, None) is not None:
            self._placed = None

    def _follow(
        self,
        nodes: dict[str, NodeColumns],
        tags: Sequence[str],
        rules: Limits | None,
        static: Mapping[str, StaticLimits],
    ) -> Layout:
        """The layout after columns came and left; the nodes' columns get rows in it."""
        layout, size = self._layout, len(self._layout)
        asked: dict[tuple[object, ...], tuple[Entity, list[int]]] = {}
        for name, node in nodes.items():
            for at, meaning in node.fresh.items():
                key = name, *_identity(meaning, tags)
                if key not in asked:
                    _, kind, user, client_id, values = key
                    entity = Entity(
                        broker=name, quota_type=QuotaType(kind), user=user, client_id=client_id, tags=values
                    )
                    asked[key] = entity, []
                asked[key][1].append(at)
        sought = sorted(asked.values(), key=lambda each: order(each[0]))
        came: list[Entity] = []
        places: list[int] = []
        found_at = layout.places(entity for entity, _ in sought)
        for row, (entity, columns) in zip(found_at.tolist(), sought, strict=True):
            target = row
            if row == size or order(layout.entities[row]) != order(entity):
                target = size + len(came)
                came.append(limited(entity, rules, static, tags))
                places.append(row)
            nodes[entity.broker].rows[columns] = target
        used = np.zeros(size + len(came) + 1, np.bool_)
        for node in nodes.values():
            used[node.rows] = True  # a row of -1 is the last one
        gone = np.flatnonzero(~used[:size])
        changed, after = layout, np.arange(used.size)
        after[-1] = -1
        if came or gone.size:
            changed = layout.changed(gone, came, np.array(places, np.intp))
            before = changed.rows_in(layout)
            after[before[before >= 0]] = np.flatnonzero(before >= 0)
            after[size:-1] = np.flatnonzero(before < 0)
        if changed is not layout or asked:
            for name, node in nodes.items():
                nodes[name] = replace(node, rows=after[node.rows], fresh={})
        return changed


def replaced(old: Sequence[object], new: Sequence[object]) -> list[int]:
    """The places (ascending) where two sequences do not have the same object, or only one of them has any."""
    places: list[int] = []
    length = min(len(old), len(new))
    for start in range(0, length, _BLOCK):
        ours, theirs = old[start : start + _BLOCK], new[start : start + _BLOCK]
        if ours != theirs:
            places += compress(count(start), map(is_not, ours, theirs))
    return [*places, *range(length, max(len(old), len(new)))]


def labels_of(tags: Sequence[str]) -> tuple[str, ...]:
    """A label for each tag: its key where that is a name that is free, or else the nearest such name."""
    labels: list[str] = []
    for tag in tags:
        label = re.sub(r"[^A-Za-z0-9_]", "_", tag)
        if label in _TAKEN or not re.match(r"[A-Za-z]", label):
            label = f"tag_{label}"
        while label in labels:
            label += "_"
        labels.append(label)
    return tuple(labels)


def _identity(meaning: ColumnMeaning, tags: Sequence[str]) -> tuple[str, str, str, tuple[str, ...] | None]:
    """What distinguishes an entity from others of its node; of a callback's the tags that are shown."""
    if meaning.callback is None:
        kind, user, client_id = meaning.tags or (QuotaType.PRODUCE, "", "")
        return kind.value, user, client_id, None
    kind, given = meaning.callback[0], dict(meaning.callback[1])
    return kind.value, "", "", tuple(given.get(key, "") for key in tags)
