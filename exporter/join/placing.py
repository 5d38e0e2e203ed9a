"""
Where in the tables the numbers of each entity are, and how they are read.

Found once for each column, when it is first seen: afterwards a scrape is a take by arrays of places. A change of few columns
is looked at, and the others are moved with their rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress, count
from operator import is_not
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import NO_RULE, QuotaRules, QuotaType, RuleTable

from ..beans import BeanTable, Column
from ..limits import Limits, NodeSettings
from ..mapping import MILLISECONDS, PERCENT, USAGE, Meaning
from ..snapshot import Callbacks, Columns, Entity, Floats, Layout
from ..snapshot.layout import TYPES, Rows, fixed, order
from .interpretation import Found, interpreted

MOST_TAGS: Final = 10
"""How many tags of a custom quota callback are shown."""
_OF_ENTITIES: Final = {
    Meaning.USAGE: "usage",
    Meaning.THROTTLE_TIME: "throttle_time",
    Meaning.TOKENS: "tokens",
    Meaning.REPORTED_UTILIZATION: "reported_utilization",
    Meaning.THROTTLED_SECONDS: "throttled_seconds",
    Meaning.THROTTLED_REQUESTS: "throttled_requests",
    Meaning.REJECTED_MUTATIONS: "rejected_mutations",
}
"""What is said of entities, and the column of a snapshot that holds it."""
NO_RULES: Final[RuleTable] = QuotaRules().snapshot()
_UNLIMITED_TOKENS: Final = 9e15
"""
More tokens than any limit gives. A bucket without a limit grows by Long.MAX a second up to
1e20: within a millisecond of losing its limit it holds this many.
"""
_USAGE: Final = np.array([USAGE[kind].divisor for kind in TYPES])
_DIVISORS: Final = {
    Meaning.THROTTLE_TIME: MILLISECONDS,
    Meaning.THROTTLED_SECONDS: MILLISECONDS,
    Meaning.REPORTED_UTILIZATION: PERCENT,
}
"""From Kafka's units to ours; of usage by quota type."""
_NUMBERS: Final = {meaning: number for number, meaning in enumerate(_OF_ENTITIES)}
_TAKEN: Final = {"broker", "quota_type", "cluster", "le", "quantile"}
_BLOCK: Final = 64
"""So many columns are compared at once."""
_NOWHERE: Final = np.empty(0, np.intp)
_Fresh = tuple[str, int, Found]
"""A column that has no row yet: its node and its place in the table, and what it says."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeColumns:
    """What the columns of one node's table are about."""

    node_id: str
    columns: tuple[Column, ...] = ()
    rows: Rows = field(default_factory=_NOWHERE.copy)
    """By column the row of its entity, -1 for those that are about none."""
    meanings: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    """By column the number of what it says in ``_OF_ENTITIES``, if it is about an entity."""
    others: Mapping[int, Found] = field(default_factory=dict)
    """What is not about an entity of Kafka's own quotas, by column."""
    places: Mapping[Meaning, Mapping[str, int]] = field(default_factory=dict)
    """Where something is said of the node: by meaning, and of which request, listener, address, direction or quota type."""
    tags: frozenset[str] = frozenset()
    """The keys of the tags of a custom quota callback."""

    def following(
        self, columns: tuple[Column, ...]
    ) -> tuple[NodeColumns, list[_Fresh]]:
        """Those of the next table; new ones that are about entities have no row yet."""
        before, size = self.columns, len(columns)
        changed = replaced(before, columns)
        # Hashing a column would take as long as interpreting it; both tables keep identities valid.
        known = {id(before[at]): at for at in changed if at < len(before)}
        more = np.full(max(size - len(before), 0), -1)
        rows = np.append(self.rows[:size], more)
        meanings = np.append(self.meanings[:size], more.astype(np.int8))
        others = {**self.others}
        fresh: list[_Fresh] = []
        for at in changed:
            others.pop(at, None)
        for at in changed[: np.searchsorted(changed, size)]:
            origin = known.get(id(columns[at]))
            if origin is not None:
                rows[at], meanings[at] = self.rows[origin], self.meanings[origin]
                found = self.others.get(origin)
            else:
                rows[at], found = -1, interpreted(columns[at])
                if found is not None and (found.tags or found.callback):
                    meanings[at] = _NUMBERS[found.attribute.meaning]
                    fresh.append((self.node_id, at, found))
            if found is not None and not found.tags:
                others[at] = found
        places: dict[Meaning, dict[str, int]] = {}
        tags: set[str] = set()
        for at, found in sorted(others.items()):
            if found.callback is not None:
                tags.update(key for key, _ in found.callback[1])
            else:
                places.setdefault(found.attribute.meaning, {})[found.about] = at
        now = NodeColumns(
            self.node_id, columns, rows, meanings, others, places, frozenset(tags)
        )
        return now, fresh

    def without_callbacks(self) -> tuple[NodeColumns, list[_Fresh]]:
        """The same columns, of which those of a custom quota callback have no row yet."""
        found = [(self.node_id, at, each) for at, each in self.others.items()]
        fresh = [each for each in found if each[2].callback is not None]
        rows = self.rows.copy()
        rows[[at for _, at, _ in fresh]] = -1
        return replace(self, rows=rows), fresh


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Placed:
    """All that is known of some tables before their numbers: the same object as long as these are the same columns and limits."""

    layout: Layout
    """All entities, also those of nodes that were read a short while ago."""
    places: Mapping[Meaning, Rows]
    """By row the place of a number, counted through all tables one after the other; -1 where there is none."""
    folded: Mapping[Meaning, tuple[Rows, Rows]]
    """Where several numbers are of one entity, the places of all of a callback's, and the row of each."""
    read: NDArray[np.bool_]
    """By row whether the tables say anything of it."""
    rules: Limits | None
    """Those that decide; None when they are unknown, or a custom quota callback decides."""
    nodes: tuple[NodeColumns, ...]
    callbacks: Callbacks


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
        """Those that were last found to say the same: to compare thousands of rules takes long."""
        self._placed: Placed | None = None

    def place(self, tables: Sequence[BeanTable], limits: Limits | None) -> Placed:
        """Where the numbers of these tables are, one for each node."""
        nodes, last = dict(self._nodes), self._placed
        fresh: list[_Fresh] = []
        for table in tables:
            node = nodes.get(table.node_id) or NodeColumns(table.node_id)
            if table.node_id not in nodes or node.columns is not table.layout.columns:
                nodes[table.node_id], found = node.following(table.layout.columns)
                fresh += found
        read = [nodes[table.node_id] for table in tables]
        keys = sorted(set[str]().union(*(node.tags for node in read)))
        rules = deciding(limits, callback_seen=bool(keys))
        if rules is self._read_again or alike(rules, self._rules):
            self._read_again, rules = rules, self._rules
            if last is not None and read == [*last.nodes]:
                return last
        tags = tuple(keys[:MOST_TAGS])
        if tags != self._tags:
            again = {name: node.without_callbacks() for name, node in nodes.items()}
            nodes = {name: node for name, (node, _) in again.items()}
            fresh = [each for each in fresh if each[2].callback is None]
            fresh += chain.from_iterable(found for _, found in again.values())
        layout = self._follow(nodes, fresh, tags, rules)
        if rules is not self._rules:
            now = {
                row: limited
                for row, entity in enumerate(layout.entities)
                if (limited := _limited(entity, rules)) is not entity
            }
            layout = layout.under(now) if now else layout
        # Nothing is taken over before all is known.
        self._nodes, self._layout = nodes, layout
        self._tags = tags
        if rules is not self._rules:
            self._rules = self._read_again = rules
        callbacks = Callbacks(labels=labels_of(tags), left_out=tuple(keys[MOST_TAGS:]))
        read = [nodes[table.node_id] for table in tables]
        self._placed = _placed(layout, read, rules, callbacks)
        return self._placed

    def forget(self, node_id: str) -> None:
        """Drop the entities of a node."""
        if self._nodes.pop(node_id, None) is not None:
            self._placed = None

    def _follow(
        self,
        nodes: dict[str, NodeColumns],
        fresh: Sequence[_Fresh],
        tags: Sequence[str],
        rules: Limits | None,
    ) -> Layout:
        """The layout after columns came and left; the nodes' columns get rows in it."""
        layout, size = self._layout, len(self._layout)
        asked: dict[tuple[object, ...], tuple[Entity, list[tuple[str, int]]]] = {}
        for name, at, found in fresh:
            kind, user, client_id, values = _shown(found, tags)
            key = name, kind.value, user, client_id, values
            if key not in asked:
                entity = Entity(
                    broker=name,
                    quota_type=kind,
                    user=user,
                    client_id=client_id,
                    tags=values,
                )
                asked[key] = entity, []
            asked[key][1].append((name, at))
        sought = sorted(asked.values(), key=lambda each: order(each[0]))
        came: list[Entity] = []
        places: list[int] = []
        found_at = layout.places(entity for entity, _ in sought)
        for row, (entity, columns) in zip(found_at.tolist(), sought, strict=True):
            target = row
            if row == size or order(layout.entities[row]) != order(entity):
                target = size + len(came)
                came.append(_limited(entity, rules))
                places.append(row)
            for name, at in columns:
                nodes[name].rows[at] = target
        used = np.zeros(size + len(came) + 1, np.bool_)
        for node in nodes.values():
            used[node.rows] = True  # a row of -1 is the last one
        gone = np.flatnonzero(~used[:size])
        if not came and not gone.size:
            return layout
        changed = layout.changed(gone, came, np.array(places, np.intp))
        before = changed.rows_in(layout)
        after = np.full(used.size, -1)
        after[before[before >= 0]] = np.flatnonzero(before >= 0)
        after[size:-1] = np.flatnonzero(before < 0)
        for name, node in nodes.items():
            nodes[name] = replace(node, rows=after[node.rows])
        return changed


class Shown:
    """
    The entities that are shown, and how to read what they used.

    Args:
        placed: Where the numbers are.
        counted: By row of all entities whether it is shown.
        last: A layout of earlier: if the entities are the same, and their limits, it stays.

    """

    def __init__(
        self, placed: Placed, counted: NDArray[np.bool_], last: Layout
    ) -> None:
        layout, rows = placed.layout, np.flatnonzero(counted)
        if len(rows) < len(layout):
            layout = layout.changed(np.flatnonzero(~counted))
        if len(layout) == len(last) and not any(
            map(is_not, layout.entities, last.entities)
        ):
            layout = last
        here = np.full(len(placed.layout), -1)
        here[rows] = np.arange(len(rows))
        self.placed, self.counted, self.layout = placed, counted, layout
        self.places = {meaning: at[rows] for meaning, at in placed.places.items()}
        self._folded = {
            meaning: (places[here[of] >= 0], here[of[here[of] >= 0]])
            for meaning, (places, of) in placed.folded.items()
        }
        self._usage_divisors = _USAGE[layout.types]
        # NaN after a minute without a throttle is 0 where a node measures it: it has the column. Of controller mutations that holds
        # beside a counter of an embedded engine only: under KRaft the column is there, and never more than NaN.
        nowhere = np.full(len(layout), -1)
        measured = self.places.get(Meaning.THROTTLE_TIME, nowhere) >= 0
        measured &= (layout.types != TYPES.index(QuotaType.CONTROLLER_MUTATION)) | (
            self.places.get(Meaning.THROTTLED_SECONDS, nowhere) >= 0
        )
        self._unthrottled = np.where(measured, 0.0, np.nan)

    def read(self, values: Floats) -> Columns:
        """What the entities used, without causes, out of all tables' numbers one after the other and a NaN."""
        read: dict[str, Any] = dict.fromkeys(_OF_ENTITIES.values(), self.layout.absent)
        for meaning, places in self.places.items():
            column = self._in_base_units(meaning, values[places], slice(None))
            if meaning in self._folded:
                self._fold(meaning, column, values)
            if not np.isnan(column).all():
                read[_OF_ENTITIES[meaning]] = fixed(column)
        causes = np.zeros(len(self.layout), np.int8)
        return Columns(layout=self.layout, causes=fixed(causes), **read)

    def _fold(self, meaning: Meaning, column: Floats, values: Floats) -> None:
        """Add usages up where several entities of a callback are shown as one, and take the longest throttle."""
        places, rows = self._folded[meaning]
        each = self._in_base_units(meaning, values[places], rows)
        column[rows] = np.nan
        if meaning is Meaning.USAGE:
            # by size, so that a sum is the same whichever came first
            sizes = np.lexsort((each, rows))
            column[rows[~np.isnan(each)]] = 0.0
            np.add.at(column, rows[sizes], np.nan_to_num(each[sizes]))
        else:
            np.fmax.at(column, rows, each)

    def _in_base_units(
        self, meaning: Meaning, numbers: Floats, rows: Rows | slice
    ) -> Floats:
        """Kafka's numbers of some rows; what is not finite becomes NaN, or 0 where nothing was throttled."""
        known = np.isfinite(numbers)
        if meaning is Meaning.TOKENS:
            known &= numbers < _UNLIMITED_TOKENS
            if self.placed.rules is not None:
                known &= ~np.isnan(self.layout.limits[rows])
        divisor: Floats | float = _DIVISORS.get(meaning, 1.0)
        if meaning is Meaning.USAGE:
            divisor = self._usage_divisors[rows]
        throttle = meaning is Meaning.THROTTLE_TIME
        instead = self._unthrottled[rows] if throttle else np.nan
        return np.where(known, numbers / divisor, instead)


def deciding(limits: Limits | None, *, callback_seen: bool = False) -> Limits | None:
    """
    The limits, if it is the configured rules that decide.

    None when they are unknown, and where a custom callback (``client.quota.callback.class``) makes
    tags and limits of its own: by the configuration, or by the tags of some bean.
    """
    if limits is None or callback_seen:
        return None
    configured = any(
        settings.quota_callback_class for settings in limits.nodes.values()
    )
    return None if configured else limits


def alike(one: Limits | None, other: Limits | None) -> bool:
    """Whether limits differ in nothing that decides, as when they were only read again."""
    if one is None or other is None or one is other:
        return one is other
    return one.rules == other.rules and one.nodes == other.nodes


def replaced(old: Sequence[object], new: Sequence[object]) -> list[int]:
    """The places (ascending) whose item is not the same object in both, those that only one of them has included."""
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


def _shown(
    found: Found, tags: Sequence[str]
) -> tuple[QuotaType, str, str, tuple[str, ...] | None]:
    """What tells an entity from others of its node: of a callback's the tags that are shown."""
    if found.callback is None:
        kind, user, client_id = found.tags or (QuotaType.PRODUCE, "", "")
        return kind, user, client_id, None
    given = dict(found.callback[1])
    return found.callback[0], "", "", tuple(given.get(key, "") for key in tags)


def _limited(entity: Entity, rules: Limits | None) -> Entity:
    """The entity under these rules; the same one where its limit is."""
    kind, resolution, limit, burst = entity.quota_type, None, None, None
    if rules is not None and entity.tags is None:
        table = rules.rules.get(kind, NO_RULES)
        resolution = table.limit(entity.user, entity.client_id) or NO_RULE
        if resolution.bound is not None:
            limit = resolution.bound / USAGE[kind].divisor
        if limit is not None and kind is QuotaType.CONTROLLER_MUTATION:
            # No Admin API tells the settings of a node that is only a controller; those of the brokers are the best guess.
            guess = next(iter(rules.nodes.values()), NodeSettings())
            known = rules.nodes.get(entity.broker) or guess
            samples, window = (
                known.controller_quota_samples,
                known.controller_quota_window_seconds,
            )
            burst = limit * (samples * window)
    now = resolution, limit, burst
    if (entity.resolution, entity.limit, entity.burst_tokens) == now:
        return entity
    return replace(entity, resolution=resolution, limit=limit, burst_tokens=burst)


def _placed(
    layout: Layout,
    nodes: Sequence[NodeColumns],
    rules: Limits | None,
    callbacks: Callbacks,
) -> Placed:
    rows = np.concatenate([_NOWHERE, *(node.rows for node in nodes)])
    meanings = np.concatenate([_NOWHERE, *(node.meanings for node in nodes)])
    about = rows >= 0
    places: dict[Meaning, Rows] = {}
    folded: dict[Meaning, tuple[Rows, Rows]] = {}
    for meaning, number in _NUMBERS.items():
        of_it = np.flatnonzero(about & (meanings == number))
        if of_it.size:
            # Of two columns that say the same, by two spellings of a name, the later one counts.
            places[meaning] = np.full(len(layout), -1)
            places[meaning][rows[of_it]] = of_it
            tagged = of_it[rows[of_it] >= layout.tagged.start]
            if np.unique(rows[tagged]).size < tagged.size:
                folded[meaning] = tagged, rows[tagged]
    read = np.zeros(len(layout), np.bool_)
    read[rows[about]] = True
    return Placed(
        layout=layout,
        places=places,
        folded=folded,
        read=read,
        rules=rules,
        nodes=tuple(nodes),
        callbacks=callbacks,
    )
