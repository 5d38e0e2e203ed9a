"""
The places of the numbers of entities and nodes in the tables.

Found once for each column, when it is first seen: afterwards a scrape is a take by arrays of places. Where few columns
change, these are looked at, and the others are moved with their rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import nan
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog import CALLBACK_THROTTLE_FACTOR, Family
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.sanitizer import desanitize

from ..coverage import Unplaced
from ..limits import Limits, version_of
from ..mapping import Attribute, BeanColumn, BeanTable, Meaning, attribute_of, replaced
from ..snapshot import Callbacks, Entity, Layout
from ..snapshot.columns import NAMES
from ..snapshot.layout import Rows, order
from ..untrusted import shown
from .limiting import RulesInForce, StaticLimits, has_callback, limited, overruled, static_limits

MOST_TAGS: Final = 10
"""Number of tags of a custom quota callback that are shown."""
OF_ENTITIES: Final = {Meaning[name.upper()]: name for name in NAMES}
"""Meanings of numbers about entities, and the column of a snapshot that holds each, which has the same name."""
_LONGEST_LABEL: Final = 64
"""Longest key of a tag, in characters, that is its label as a whole."""
_NUMBERS: Final = {meaning: number for number, meaning in enumerate(OF_ENTITIES)}
_TAKEN: Final = {"broker", "quota_type", "cluster", "le", "quantile"}
_NOWHERE: Final = np.empty(0, np.intp)


class ColumnMeaning(NamedTuple):
    """The meaning of the numbers of a column."""

    attribute: Attribute
    tags: tuple[QuotaType, str, str] | None
    """
    The entity on its node: quota type, decoded user and client-id, empty where absent; None for a number of the node.
    """
    about: tuple[str, ...]
    """
    The request, listener, address, part or quota type of a number of the node: labels of its family after the first.
    """
    callback: tuple[QuotaType, tuple[tuple[str, str], ...]] | None = None
    """The entity of a custom quota callback on its node: quota type, and tags by key."""


def interpreted(column: BeanColumn) -> ColumnMeaning | None:
    """Return the meaning of a column, None when it has none for us."""
    attribute = attribute_of(column)
    if attribute is None:
        return None
    bean, kind = column.bean, attribute.quota_type
    if attribute.open and kind is not None:
        tags = tuple(pair for pair in bean.properties if pair[0] != "type")
        return ColumnMeaning(attribute, None, (), (kind, tags))
    if kind is not None and "user" in attribute.free:
        names = dict(bean.properties)
        user, client_id = names.get("user", ""), names.get("client-id", "")
        return ColumnMeaning(attribute, (kind, decoded(user), client_id), ())
    if kind is not None:
        return ColumnMeaning(attribute, None, (kind.value,))
    names_of = [bean.get(key) or "" for key in attribute.free if attribute.required]
    return ColumnMeaning(attribute, None, (*names_of, *filter(None, [attribute.part])))


@lru_cache(maxsize=64)  # pays since the columns of a user come one after the other
def decoded(user: str) -> str:
    """Return the user's name out of Kafka's percent-encoded tag; a tag that Kafka would not write stays as it is."""
    try:
        return desanitize(user)
    except MalformedName:
        return user


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """The meanings of the columns of one node's table."""

    node_id: str
    columns: tuple[BeanColumn, ...] = ()
    rows: Rows = field(default_factory=_NOWHERE.copy)
    """For each column the row of its entity; -1 where it is not about an entity, or the row is not found yet."""
    meanings: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    """For each column the place of its meaning in ``OF_ENTITIES``, if it is about an entity."""
    other_meanings: Mapping[int, ColumnMeaning] = field(default_factory=dict)
    """Meanings of the columns that are not about an entity of Kafka's own quotas, by column."""
    fresh: Mapping[int, ColumnMeaning] = field(default_factory=dict)
    """Meanings of the columns about an entity without a row yet, by column."""
    places: Mapping[Meaning | Family, Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    """The columns about the node, by meaning and by `ColumnMeaning.about`."""
    tags: frozenset[str] = frozenset()
    """
    The keys of tags that Kafka's own quotas do not have: those of a custom quota callback, or labels of an agent's
    rules.
    """
    unexplained: Unplaced | None = None
    """The columns with such tags; None without any."""

    def following(self, columns: tuple[BeanColumn, ...]) -> NodeColumns:
        """
        Return the meanings of the columns of the node's next table.

        Columns that are new are interpreted; all others keep their rows.
        """
        previous, size = self.columns, len(columns)
        changed = replaced(previous, columns)
        # Hashing a column would take as long as interpreting it; both tables keep identities valid.
        origins = {id(previous[index]): index for index in changed if index < len(previous)}
        absent = np.full(max(size - len(previous), 0), -1)
        rows = np.append(self.rows[:size], absent)
        meanings = np.append(self.meanings[:size], absent.astype(np.int8))
        other_meanings = {**self.other_meanings}
        fresh: dict[int, ColumnMeaning] = {}
        for index in changed:
            other_meanings.pop(index, None)
        for index in changed[: np.searchsorted(changed, size)]:
            origin = origins.get(id(columns[index]))
            if origin is not None:
                rows[index], meanings[index] = self.rows[origin], self.meanings[origin]
                meaning = self.other_meanings.get(origin)
            else:
                rows[index], meaning = -1, interpreted(columns[index])
                if meaning is not None and (meaning.tags or meaning.callback):
                    meanings[index] = _NUMBERS[cast("Meaning", meaning.attribute.meaning)]
                    fresh[index] = meaning
            if meaning is not None and not meaning.tags:
                other_meanings[index] = meaning
        places: dict[Meaning | Family, dict[tuple[str, ...], int]] = {}
        tags: set[str] = set()
        tagged: list[BeanColumn] = []
        for index, meaning in sorted(other_meanings.items()):
            if meaning.callback is not None:
                tags.update(key for key, _ in meaning.callback[1])
                tagged.append(columns[index])
            else:
                places.setdefault(meaning.attribute.meaning, {})[meaning.about] = index
        return NodeColumns(
            self.node_id, columns, rows, meanings, other_meanings, fresh, places, frozenset(tags), _unexplained(tagged)
        )  # fmt: skip

    def without_callbacks(self) -> NodeColumns:
        """Return the same columns, of which those of a custom quota callback have no row yet."""
        tagged = {index: meaning for index, meaning in self.other_meanings.items() if meaning.callback}
        rows = self.rows.copy()
        rows[[*tagged]] = -1
        return replace(self, rows=rows, fresh={**self.fresh, **tagged})

    def silenced(self) -> NodeColumns:
        """Return the columns, with no rows for those that have foreign tags."""
        return replace(
            self, fresh={index: meaning for index, meaning in self.fresh.items() if meaning.callback is None}
        )


class Placed:
    """
    All that is known of some tables before their numbers.

    The same object while their columns and the limits are the same.
    """

    def __init__(
        self,
        layout: Layout,
        nodes: Sequence[NodeColumns],
        rules: RulesInForce,
        static: Mapping[str, StaticLimits],
        callbacks: Callbacks,
    ) -> None:
        self.layout = layout
        """All entities, also those of nodes that were read a short while ago."""
        self.nodes = nodes
        self.rules = rules
        """The configured quotas, and the nodes on which they decide."""
        self.static = static
        """The limits of Strimzi's quotas plugin by node, also of nodes that were read a short while ago."""
        self.callbacks = callbacks
        rows = np.concatenate([_NOWHERE, *(node.rows for node in nodes)])
        meanings = np.concatenate([_NOWHERE, *(node.meanings for node in nodes)])
        about = rows >= 0
        self.is_read = np.zeros(len(layout), np.bool_)
        """For each row whether the tables have any number of it."""
        self.is_read[rows[about]] = True
        self.places: dict[Meaning, Rows] = {}
        """
        For each row the place of a number, counted through all tables one after the other; -1 where there is none.
        """
        self.folded: dict[Meaning, tuple[Rows, Rows]] = {}
        """Places of all numbers of a callback and the row of each; only where several numbers belong to one entity."""
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
        self._rules = RulesInForce()
        self._silent: frozenset[str] = frozenset()
        """The nodes whose beans have foreign tags although they have no callback: such beans are not entities."""
        self._static: dict[str, StaticLimits] = {}
        """The limits of Strimzi's quotas plugin by node."""
        self._placed: Placed | None = None

    def place(self, tables: Sequence[BeanTable], limits: Limits | None) -> Placed:
        """Return the places of the numbers in these tables, one table for each node."""
        nodes, previous = dict(self._nodes), self._placed
        for table in tables:
            node = nodes.get(table.node_id)
            if node is None or node.columns is not table.layout.columns:
                node = node or NodeColumns(table.node_id)
                nodes[table.node_id] = node.following(table.layout.columns)
        columns_of_tables = [nodes[table.node_id] for table in tables]
        static = {name: limits_of_node for name, limits_of_node in self._static.items() if name in nodes}
        for node, table in zip(columns_of_tables, tables, strict=True):
            static[node.node_id] = _static_limits_of(node, table)
        static = {name: limits_of_node for name, limits_of_node in static.items() if limits_of_node}
        silent = frozenset(
            name
            for name, node in nodes.items()
            if node.tags and has_callback(limits, name, plugin=name in static) is False
        )
        keys = sorted(set[str]().union(*(node.tags for node in columns_of_tables if node.node_id not in silent)))
        overruled_nodes = overruled(limits, {name: bool(node.tags) for name, node in nodes.items()}, static)
        rules = RulesInForce(limits, overruled_nodes)
        if overruled_nodes == self._rules.overruled and version_of(limits) == version_of(self._rules.limits):
            rules = self._rules
            if (
                previous
                and columns_of_tables == [*previous.nodes]
                and static == self._static
                and silent == self._silent
            ):
                return previous
        tags = tuple(keys[:MOST_TAGS])
        if tags != self._tags or silent != self._silent:
            nodes = {name: node.without_callbacks() for name, node in nodes.items()}
        for name in silent:
            nodes[name] = nodes[name].silenced()
        layout = self._follow(nodes, tags, rules, static)
        if rules is not self._rules or static != self._static:
            known = np.flatnonzero(layout.rows_in(self._layout) >= 0).tolist()  # new entities have these limits already
            limited_entities = {
                row: limited_entity
                for row, entity in zip(known, layout.entities[known], strict=True)
                if (limited_entity := limited(entity, rules.on(entity.broker), static, tags)) is not entity
            }
            layout = layout.under(limited_entities) if limited_entities else layout
        # Nothing is taken over before all is known.
        self._rules = rules
        self._silent = silent
        self._nodes, self._layout, self._tags = nodes, layout, tags
        self._static = static
        callbacks = Callbacks(labels=labels_of(tags), left_out=tuple(keys[MOST_TAGS:]))
        columns_of_tables = [nodes[table.node_id] for table in tables]
        self._placed = Placed(layout, columns_of_tables, rules, static, callbacks)
        return self._placed

    def work(self, tables: Sequence[BeanTable], limits: Limits | None) -> int:
        """Return how many new columns `place` would look at, and how many entities under other limits."""
        count = 0 if version_of(limits) == version_of(self._rules.limits) else len(self._layout)
        for table in tables:
            node = self._nodes.get(table.node_id)
            columns = () if node is None else node.columns
            if columns is not table.layout.columns:
                count += len(replaced(columns, table.layout.columns))
        return count

    def forget(self, node_id: str) -> None:
        """Drop the entities of a node."""
        if self._nodes.pop(node_id, None) is not None:
            self._placed = None

    def _follow(
        self,
        nodes: dict[str, NodeColumns],
        tags: Sequence[str],
        rules: RulesInForce,
        static: Mapping[str, StaticLimits],
    ) -> Layout:
        """Return the layout after columns came and left; the nodes' columns get rows in it."""
        layout, size = self._layout, len(self._layout)
        requested: dict[tuple[object, ...], tuple[Entity, list[int]]] = {}
        for name, node in nodes.items():
            for index, meaning in node.fresh.items():
                key = name, *_identity(meaning, tags)
                if key not in requested:
                    _, kind, user, client_id, values = key
                    entity = Entity(
                        broker=name, quota_type=QuotaType(kind), user=user, client_id=client_id, tags=values
                    )
                    requested[key] = entity, []
                requested[key][1].append(index)
        sought = sorted(requested.values(), key=lambda request: order(request[0]))
        added: list[Entity] = []
        places: list[int] = []
        found_at = layout.places(entity for entity, _ in sought)
        for row, (entity, columns) in zip(found_at.tolist(), sought, strict=True):
            target = row
            if row == size or order(layout.entities[row]) != order(entity):
                target = size + len(added)
                added.append(limited(entity, rules.on(entity.broker), static, tags))
                places.append(row)
            nodes[entity.broker].rows[columns] = target
        used = np.zeros(size + len(added) + 1, np.bool_)
        for node in nodes.values():
            used[node.rows] = True  # a row of -1 is the last one
        removed = np.flatnonzero(~used[:size])
        changed, new_rows = layout, np.arange(used.size)
        new_rows[-1] = -1
        if added or removed.size:
            changed = layout.changed(removed, added, np.array(places, np.intp))
            old_rows = changed.rows_in(layout)
            new_rows[old_rows[old_rows >= 0]] = np.flatnonzero(old_rows >= 0)
            new_rows[size:-1] = np.flatnonzero(old_rows < 0)
        if changed is not layout or requested:
            for name, node in nodes.items():
                nodes[name] = replace(node, rows=new_rows[node.rows], fresh={})
        return changed


def _static_limits_of(node: NodeColumns, table: BeanTable) -> StaticLimits:
    """Return the limits of Strimzi's quotas plugin that a node reports; empty without the plugin."""
    places = node.places.get(Meaning.CALLBACK_LIMIT, {})
    factor = node.places.get(CALLBACK_THROTTLE_FACTOR, {}).get(())
    configured = {name: table.values[place] for (name,), place in places.items()}
    return static_limits(configured, nan if factor is None else table.values[factor])


def _unexplained(columns: Sequence[BeanColumn]) -> Unplaced | None:
    """Return what is known of columns whose tags Kafka's own quotas do not have."""
    if not columns:
        return None
    bean = columns[0].bean
    pairs = ",".join(f"{key}={value}" for key, value in bean.properties)
    labels = tuple(key for key, _ in bean.properties if key != "type")
    return Unplaced(
        count=len(columns),
        example=shown(f"{bean.domain}:{pairs} {columns[0].attribute}"),
        labels=labels[:MOST_TAGS],
        expected=("user", "client-id"),
    )


def labels_of(tags: Sequence[str]) -> tuple[str, ...]:
    """Return a label for each tag: its key where that is a name that is free, or else the nearest such name."""
    labels: list[str] = []
    for tag in tags:
        label = re.sub(r"[^A-Za-z0-9_]", "_", tag[:_LONGEST_LABEL])
        if label in _TAKEN or not re.match(r"[A-Za-z]", label):
            label = f"tag_{label}"
        while label in labels:
            label += "_"
        labels.append(label)
    return tuple(labels)


def _identity(meaning: ColumnMeaning, tags: Sequence[str]) -> tuple[str, str, str, tuple[str, ...] | None]:
    """
    Return the properties that distinguish an entity from others of its node.

    Those of a callback's entity are the tags that are shown.
    """
    if meaning.callback is None:
        kind, user, client_id = meaning.tags or (QuotaType.PRODUCE, "", "")
        return kind.value, user, client_id, None
    kind, values = meaning.callback[0], dict(meaning.callback[1])
    return kind.value, "", "", tuple(values.get(key, "") for key in tags)
