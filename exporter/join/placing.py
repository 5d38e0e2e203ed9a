"""
Finds the places of the numbers of entities and nodes in the tables.

The place of a column is found once, when the column is new. Afterwards a scrape takes numbers by arrays of places. If
a few columns change, only these are looked at, and the rows of the others are moved.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
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
"""Most tags of a custom quota callback that are shown."""
COLUMN_OF_MEANING: Final = {Meaning[name.upper()]: name for name in NAMES}
"""Columns of a snapshot by the meaning of the numbers that they hold."""
_LONGEST_LABEL: Final = 64
"""Characters to which the key of a tag is cut to become a label."""
_NUMBER_OF_MEANING: Final = {meaning: number for number, meaning in enumerate(COLUMN_OF_MEANING)}
_RESERVED_LABELS: Final = {"broker", "quota_type", "cluster", "le", "quantile"}
_NO_ROWS: Final = np.empty(0, np.intp)


class ColumnMeaning(NamedTuple):
    """The meaning of the numbers of a column."""

    attribute: Attribute
    tags: tuple[QuotaType, str, str] | None
    """
    The quota type, decoded user and client-id of an entity of Kafka's own quotas; an absent name is empty.

    None for any other number.
    """
    about: tuple[str, ...]
    """
    The labels of a number about the node, without the node: its request, listener, address, part or quota type.
    """
    callback: tuple[QuotaType, tuple[tuple[str, str], ...]] | None = None
    """The quota type and the keys and values of the tags of a custom quota callback's entity; None for any other."""


def meaning_of(column: BeanColumn) -> ColumnMeaning | None:
    """Return the meaning of a column, None for a column that the exporter does not use."""
    attribute = attribute_of(column)
    if attribute is None:
        return None
    bean, quota_type = column.bean, attribute.quota_type
    if attribute.open and quota_type is not None:  # an entity of a custom quota callback
        pairs = tuple((key, value) for key, value in bean.properties if key != "type")
        return ColumnMeaning(attribute, tags=None, about=(), callback=(quota_type, pairs))
    if quota_type is not None and "user" in attribute.free:  # an entity of Kafka's own quotas
        names = dict(bean.properties)
        user, client_id = names.get("user", ""), names.get("client-id", "")
        return ColumnMeaning(attribute, tags=(quota_type, decoded(user), client_id), about=())
    if quota_type is not None:  # all clients of the node under quotas of this type, such as the delay queue
        return ColumnMeaning(attribute, tags=None, about=(quota_type.value,))
    labels = [bean.get(key) or "" for key in attribute.free] if attribute.required else []
    if attribute.part:
        labels.append(attribute.part)
    return ColumnMeaning(attribute, tags=None, about=tuple(labels))


@lru_cache(maxsize=64)  # pays since the columns of a user come one after the other
def decoded(user: str) -> str:
    """Return the user of Kafka's percent-encoded tag; a tag that Kafka would not write is returned as it is."""
    try:
        return desanitize(user)
    except MalformedName:
        return user


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """The columns of one node's table, with their meanings and the rows of their entities."""

    node_id: str
    columns: tuple[BeanColumn, ...] = ()
    rows: Rows = field(default_factory=_NO_ROWS.copy)
    """The row of each column's entity; -1 for a column without an entity, or before the row is found."""
    meanings: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    """The number of each column's meaning in ``COLUMN_OF_MEANING``, if the column is about an entity."""
    other_meanings: Mapping[int, ColumnMeaning] = field(default_factory=dict)
    """Meanings of the columns that are not about an entity of Kafka's own quotas, by index of the column."""
    without_row: Mapping[int, ColumnMeaning] = field(default_factory=dict)
    """Meanings of the columns about an entity without a row yet, by index of the column."""
    places: Mapping[Meaning | Family, Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    """Indexes of the columns about the node, by meaning and by `ColumnMeaning.about`."""
    tags: frozenset[str] = frozenset()
    """Keys of tags that Kafka's own quotas do not have: of a custom quota callback, or labels of an agent's rules."""
    unexplained: Unplaced | None = None
    """The columns with such tags; None without any."""

    def with_columns(self, columns: tuple[BeanColumn, ...]) -> NodeColumns:
        """Return the columns of the node's next table. Columns that are not new keep their meanings and rows."""
        previous, size = self.columns, len(columns)
        changed = replaced(previous, columns)
        # Hashing a column would take as long as finding its meaning; both tables keep identities valid.
        previous_indexes = {id(previous[index]): index for index in changed if index < len(previous)}
        # unchanged columns keep their indexes; the values at changed indexes are set below
        added = np.full(max(size - len(previous), 0), -1)
        rows = np.append(self.rows[:size], added)
        meanings = np.append(self.meanings[:size], added.astype(np.int8))
        other_meanings = {**self.other_meanings}
        without_row: dict[int, ColumnMeaning] = {}
        for index in changed:
            other_meanings.pop(index, None)
        for index in changed:
            if index >= size:  # only the previous table has a column there
                break
            previous_index = previous_indexes.get(id(columns[index]))
            if previous_index is not None:  # the column moved to another index
                rows[index], meanings[index] = self.rows[previous_index], self.meanings[previous_index]
                meaning = self.other_meanings.get(previous_index)
            else:
                rows[index], meaning = -1, meaning_of(columns[index])
                if meaning is not None and (meaning.tags or meaning.callback):
                    meanings[index] = _NUMBER_OF_MEANING[cast("Meaning", meaning.attribute.meaning)]
                    without_row[index] = meaning
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
            node_id=self.node_id,
            columns=columns,
            rows=rows,
            meanings=meanings,
            other_meanings=other_meanings,
            without_row=without_row,
            places=places,
            tags=frozenset(tags),
            unexplained=_unexplained(tagged),
        )

    def with_callback_rows_dropped(self) -> NodeColumns:
        """Return the columns, with no row for those of a custom quota callback, since other tags are shown."""
        tagged = {index: meaning for index, meaning in self.other_meanings.items() if meaning.callback}
        rows = self.rows.copy()
        rows[[*tagged]] = -1
        return replace(self, rows=rows, without_row={**self.without_row, **tagged})

    def with_callback_ignored(self) -> NodeColumns:
        """Return the columns; those that have foreign tags get no row, since they are not entities."""
        own = {index: meaning for index, meaning in self.without_row.items() if meaning.callback is None}
        return replace(self, without_row=own)


class Placed:
    """
    The layout of some tables, and the places of their numbers.

    `Placing.place` returns the same object while the columns and the limits are the same.
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
        rows = np.concatenate([_NO_ROWS, *(node.rows for node in nodes)])
        meanings = np.concatenate([_NO_ROWS, *(node.meanings for node in nodes)])
        has_row = rows >= 0
        self.is_read = np.zeros(len(layout), np.bool_)
        """Mask of the rows with a number in the tables."""
        self.is_read[rows[has_row]] = True
        self.places: dict[Meaning, Rows] = {}
        """
        The place of the number of each row, by meaning; -1 for a row without a number.

        Places are counted through all tables, one after the other.
        """
        self.folded: dict[Meaning, tuple[Rows, Rows]] = {}
        """
        Places and rows of all numbers of callbacks, by meaning, if several numbers belong to one entity.

        They do if entities differ only in tags that are not shown.
        """
        for meaning, number in _NUMBER_OF_MEANING.items():
            places = np.flatnonzero(has_row & (meanings == number))
            if places.size:
                # Of two columns with the same meaning, by two spellings of a name, the later one counts.
                self.places[meaning] = np.full(len(layout), -1)
                self.places[meaning][rows[places]] = places
                tagged_places = places[rows[places] >= layout.tagged.start]
                tagged_rows = rows[tagged_places]
                if np.unique(tagged_rows).size < tagged_rows.size:
                    self.folded[meaning] = tagged_places, tagged_rows


class Placing:
    """
    Keeps the entities of all nodes, and the places of their numbers, from scrape to scrape.

    An entity keeps its serial as long as its beans are there and its node is not forgotten, whatever its limit.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeColumns] = {}
        self._layout = Layout(())
        self._tags: tuple[str, ...] = ()
        """The keys of the tags that are shown."""
        self._rules = RulesInForce()
        self._without_callback: frozenset[str] = frozenset()
        """Nodes without a callback whose beans have foreign tags. Such beans are not entities."""
        self._static: dict[str, StaticLimits] = {}
        """The limits of Strimzi's quotas plugin by node."""
        self._placed: Placed | None = None

    def place(self, tables: Sequence[BeanTable], limits: Limits | None) -> Placed:
        """Return the layout and the places of the numbers of tables, one table for each node."""
        nodes, previous = dict(self._nodes), self._placed
        for table in tables:
            node = nodes.get(table.node_id)
            if node is None or node.columns is not table.layout.columns:
                node = node or NodeColumns(table.node_id)
                nodes[table.node_id] = node.with_columns(table.layout.columns)
        columns_of_tables = [nodes[table.node_id] for table in tables]
        static = self._static_limits(nodes, columns_of_tables, tables)
        without_callback = frozenset(
            node_id
            for node_id, node in nodes.items()
            if node.tags and has_callback(limits, node_id, plugin=node_id in static) is False
        )
        has_foreign_tags = {node_id: bool(node.tags) for node_id, node in nodes.items()}
        overruled_nodes = overruled(limits, has_foreign_tags, static)
        rules = RulesInForce(limits, overruled_nodes)
        if overruled_nodes == self._rules.overruled and version_of(limits) == version_of(self._rules.limits):
            rules = self._rules  # by the same object, the rest of the join knows that no rule has changed
            are_nodes_unchanged = static == self._static and without_callback == self._without_callback
            if previous and columns_of_tables == [*previous.nodes] and are_nodes_unchanged:
                return previous
        callback_nodes = (node for node in columns_of_tables if node.node_id not in without_callback)
        all_tags = sorted(set[str]().union(*(node.tags for node in callback_nodes)))
        tags = tuple(all_tags[:MOST_TAGS])
        if tags != self._tags or without_callback != self._without_callback:
            nodes = {node_id: node.with_callback_rows_dropped() for node_id, node in nodes.items()}
        for node_id in without_callback:
            nodes[node_id] = nodes[node_id].with_callback_ignored()
        layout = self._follow(nodes, tags, rules, static)
        if rules is not self._rules or static != self._static:
            layout = self._apply_limits(layout, tags, rules, static)
        # an error above leaves the state as it was
        self._rules, self._static, self._without_callback = rules, static, without_callback
        self._nodes, self._layout, self._tags = nodes, layout, tags
        callbacks = Callbacks(labels=labels_of(tags), left_out=tuple(all_tags[MOST_TAGS:]))
        columns_of_tables = [nodes[table.node_id] for table in tables]  # with the rows that they have now
        self._placed = Placed(layout, columns_of_tables, rules, static, callbacks)
        return self._placed

    def _static_limits(
        self, nodes: Container[str], columns_of_tables: Sequence[NodeColumns], tables: Sequence[BeanTable]
    ) -> dict[str, StaticLimits]:
        """Return the limits of Strimzi's plugin by node; of a node without a table, the last ones."""
        static = {node_id: limits for node_id, limits in self._static.items() if node_id in nodes}
        for node, table in zip(columns_of_tables, tables, strict=True):
            static[node.node_id] = _static_limits_of(node, table)
        return {node_id: limits for node_id, limits in static.items() if limits}

    def _apply_limits(
        self, layout: Layout, tags: Sequence[str], rules: RulesInForce, static: Mapping[str, StaticLimits]
    ) -> Layout:
        """Return a layout in which the entities of the last layout have their present limits, as new ones have."""
        old_rows = np.flatnonzero(layout.rows_in(self._layout) >= 0).tolist()
        changed_entities: dict[int, Entity] = {}
        for row, entity in zip(old_rows, layout.entities[old_rows], strict=True):
            limited_entity = limited(entity, rules.on(entity.broker), static, tags)
            if limited_entity is not entity:
                changed_entities[row] = limited_entity
        return layout.with_limits(changed_entities) if changed_entities else layout

    def work(self, tables: Sequence[BeanTable], limits: Limits | None) -> int:
        """Return the number of columns and entities that `place` would look at for other columns or limits."""
        count = 0 if version_of(limits) == version_of(self._rules.limits) else len(self._layout)
        for table in tables:
            node = self._nodes.get(table.node_id)
            columns = () if node is None else node.columns
            if columns is not table.layout.columns:
                count += len(replaced(columns, table.layout.columns))
        return count

    def forget(self, node_id: str) -> None:
        """Forget the columns and the entities of a node."""
        if self._nodes.pop(node_id, None) is not None:
            self._placed = None

    def _follow(
        self,
        nodes: dict[str, NodeColumns],
        tags: Sequence[str],
        rules: RulesInForce,
        static: Mapping[str, StaticLimits],
    ) -> Layout:
        """
        Return the layout after columns came and left.

        Args:
            nodes: The columns of all nodes by node. They are replaced by columns with rows of the new layout.
            tags: The keys of the tags that are shown.
            rules: The configured quotas, for the limits of new entities.
            static: The limits of Strimzi's quotas plugin by node.

        """
        layout, size = self._layout, len(self._layout)
        wanted = _entities_without_row(nodes, tags)
        # Until the layout is changed, columns have provisional rows: those of the last layout, and after these one for
        # each new entity.
        added: list[Entity] = []
        places: list[int] = []
        rows = layout.places(entity for entity, _ in wanted).tolist()
        for row, (entity, indexes) in zip(rows, wanted, strict=True):
            if row < size and order(layout.entities[row]) == order(entity):
                provisional_row = row
            else:
                provisional_row = size + len(added)
                added.append(limited(entity, rules.on(entity.broker), static, tags))
                places.append(row)
            nodes[entity.broker].rows[indexes] = provisional_row
        is_used = np.zeros(size + len(added) + 1, np.bool_)
        for node in nodes.values():
            is_used[node.rows] = True  # a row of -1 marks the last element, which stands for no row
        removed = np.flatnonzero(~is_used[:size])
        changed, new_rows = layout, np.arange(is_used.size)  # the row in the new layout of each provisional row
        new_rows[-1] = -1
        if added or removed.size:
            changed = layout.changed(removed, added, np.array(places, np.intp))
            old_rows = changed.rows_in(layout)
            new_rows[old_rows[old_rows >= 0]] = np.flatnonzero(old_rows >= 0)
            new_rows[size:-1] = np.flatnonzero(old_rows < 0)  # both layouts have new entities in the same order
        if changed is not layout or wanted:
            for node_id, node in nodes.items():
                nodes[node_id] = replace(node, rows=new_rows[node.rows], without_row={})
        return changed


def _entities_without_row(nodes: Mapping[str, NodeColumns], tags: Sequence[str]) -> list[tuple[Entity, list[int]]]:
    """Return the entities of all columns without a row, in order, with the indexes of their columns on their node."""
    entities: dict[tuple[object, ...], tuple[Entity, list[int]]] = {}
    for node_id, node in nodes.items():
        for index, meaning in node.without_row.items():
            type_value, user, client_id, tag_values = _identity(meaning, tags)
            key = node_id, type_value, user, client_id, tag_values
            if key not in entities:
                entity = Entity(
                    broker=node_id,
                    quota_type=QuotaType(type_value),
                    user=user,
                    client_id=client_id,
                    tags=tag_values,
                )
                entities[key] = entity, []
            entities[key][1].append(index)
    return sorted(entities.values(), key=lambda entity_and_indexes: order(entity_and_indexes[0]))


def _static_limits_of(node: NodeColumns, table: BeanTable) -> StaticLimits:
    """Return the limits of Strimzi's quotas plugin that a node reports; empty without the plugin."""
    places = node.places.get(Meaning.CALLBACK_LIMIT, {})
    factor_place = node.places.get(CALLBACK_THROTTLE_FACTOR, {}).get(())
    configured = {name: table.values[place] for (name,), place in places.items()}
    return static_limits(configured, nan if factor_place is None else table.values[factor_place])


def _unexplained(columns: Sequence[BeanColumn]) -> Unplaced | None:
    """Return the report on columns with tags that Kafka's own quotas do not have; None without any."""
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
    """Return a label for each tag: its key, or a similar name if the key is no label name or is taken."""
    labels: list[str] = []
    for tag in tags:
        label = re.sub(r"[^A-Za-z0-9_]", "_", tag[:_LONGEST_LABEL])
        if label in _RESERVED_LABELS or not re.match(r"[A-Za-z]", label):
            label = f"tag_{label}"
        while label in labels:
            label += "_"
        labels.append(label)
    return tuple(labels)


def _identity(meaning: ColumnMeaning, tags: Sequence[str]) -> tuple[str, str, str, tuple[str, ...] | None]:
    """
    Return the properties that distinguish an entity from others of its node.

    They are the value of its quota type, its user and client-id, and the values of the shown ``tags``. An entity of
    Kafka's own quotas has None instead of the tags.
    """
    if meaning.callback is None:
        quota_type, user, client_id = meaning.tags or (QuotaType.PRODUCE, "", "")
        return quota_type.value, user, client_id, None
    quota_type, pairs = meaning.callback
    value_of_tag = dict(pairs)
    return quota_type.value, "", "", tuple(value_of_tag.get(key, "") for key in tags)
