"""
Where in the tables the numbers of each entity are.

Found once for each column, when it is first seen: afterwards a scrape is a take by arrays of places. A change of few columns
changes what is kept of these alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, count
from operator import is_not
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import NO_RULE, QuotaType, Resolution

from ..beans import BeanTable, Column
from ..limits import Limits, NodeSettings
from ..mapping import MILLISECONDS, PERCENT, USAGE, Meaning
from ..snapshot import Callbacks, Entity, Floats, Layout
from ..snapshot.layout import TYPES, Rows, fixed, order
from .interpretation import CallbackTags, Found, Tags, interpreted
from .standing import NO_RULES, alike, deciding

MOST_TAGS: Final = 10
"""How many tags of a custom quota callback are shown."""
UNLIMITED_TOKENS: Final = 9e15
"""
More tokens than any limit gives. A bucket without a limit grows by Long.MAX a second up to
1e20: within a millisecond of losing its limit it holds this many.
"""
_MEANINGS: Final = {
    Meaning.USAGE: "usage",
    Meaning.THROTTLE_TIME: "throttle_time",
    Meaning.TOKENS: "tokens",
    Meaning.TOLD_UTILIZATION: "told_utilization",
    Meaning.THROTTLED_SECONDS: "throttled_seconds",
    Meaning.THROTTLED_REQUESTS: "throttled_requests",
    Meaning.REJECTED_MUTATIONS: "rejected_mutations",
}
"""What is said of entities, and the column of a snapshot that holds it."""
_NUMBERS: Final = {meaning: number for number, meaning in enumerate(_MEANINGS)}
_DIVISORS: Final = np.array([USAGE[kind].divisor for kind in TYPES])
"""From Kafka's unit of usage to ours, by quota type."""
_TAKEN: Final = {"broker", "quota_type", "cluster", "le", "quantile"}
_BLOCK: Final = 64
"""So many columns are compared at once."""
_NOWHERE: Final = np.empty(0, np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """What the columns of one node's last table are about."""

    columns: tuple[Column, ...] = ()
    rows: Rows = field(default_factory=_NOWHERE.copy)
    """By column the row of its entity, -1 for those that are about none."""
    meanings: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    """By column its number in ``_MEANINGS``, for those that are about an entity."""
    others: Mapping[int, Found] = field(default_factory=dict)
    """What is not about an entity of Kafka's own quotas, by column."""

    def following(
        self, columns: tuple[Column, ...]
    ) -> tuple[_Node, list[tuple[int, Found]]]:
        """The next table's columns, and of those that are new and about entities what they say: these have no row yet."""
        before, end = self.columns, len(columns)
        changed = replaced(before, columns)
        # Hashing a column would take as long as interpreting it; both tables keep identities valid.
        known = {id(before[at]): at for at in changed if at < len(before)}
        more = max(end - len(before), 0)
        rows = np.append(self.rows[:end], np.full(more, -1))
        meanings = np.append(self.meanings[:end], np.zeros(more, np.int8))
        others = {at: found for at, found in self.others.items() if at < end}
        fresh: list[tuple[int, Found]] = []
        for at in changed:
            others.pop(at, None)
            if at >= end:
                break
            origin = known.get(id(columns[at]))
            found = (
                interpreted(columns[at]) if origin is None else self.others.get(origin)
            )
            rows[at] = -1 if origin is None else self.rows[origin]
            if origin is not None:
                meanings[at] = self.meanings[origin]
            elif found is not None and (found.tags or found.callback):
                meanings[at] = _NUMBERS[found.attribute.meaning]
                fresh.append((at, found))
            if found is not None and found.tags is None:
                others[at] = found
        return _Node(columns, rows, meanings, others), fresh

    def tags(self) -> set[str]:
        """The keys of the tags of a custom quota callback."""
        callbacks = (found.callback for found in self.others.values())
        return {key for each in callbacks if each is not None for key, _ in each[1]}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodePlaces:
    """Where a node's table says something of the node itself."""

    node_id: str
    places: Mapping[Meaning, Mapping[str, int]]
    """By what it says, and of which request, listener, address, direction or quota type."""
    sees_callback: bool
    """Whether a custom quota callback is at work, by the tags of beans."""


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
    nodes: tuple[NodePlaces, ...]
    callbacks: Callbacks


class Placing:
    """
    Keeps the entities of all nodes, and where their numbers are, from scrape to scrape.

    An entity stays the same as long as its beans are there and its node is not forgotten, whatever its limit.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._layout = Layout(())
        self._tags: tuple[str, ...] = ()
        """The keys of the tags that are shown."""
        self._rules: Limits | None = None
        self._placed: Placed | None = None

    def place(self, tables: Sequence[BeanTable], limits: Limits | None) -> Placed:
        """Where the numbers of these tables are, one for each node."""
        nodes = dict(self._nodes)
        fresh: list[tuple[str, int, Found]] = []
        for table in tables:
            name, columns = table.node_id, table.layout.columns
            if name not in nodes or nodes[name].columns is not columns:
                nodes[name], found = nodes.get(name, _Node()).following(columns)
                fresh += ((name, at, each) for at, each in found)
        names = [table.node_id for table in tables]
        last = self._placed
        steady = last is not None and [each.node_id for each in last.nodes] == names
        steady = steady and all(nodes[name] is self._nodes.get(name) for name in names)
        if last is not None and steady:
            rules = deciding(limits, callback_seen=_see_callback(last.nodes))
            if alike(rules, self._rules):
                return last
        keys = sorted(set[str]().union(*(nodes[name].tags() for name in names)))
        rules = deciding(limits, callback_seen=bool(keys))
        rules = self._rules if alike(rules, self._rules) else rules
        if tuple(keys[:MOST_TAGS]) != self._tags:
            nodes, fresh = _without_callbacks(nodes, fresh)
        layout = self._follow(nodes, fresh, keys[:MOST_TAGS], rules)
        if rules is not self._rules:
            layout = _under(layout, rules)
        # nothing is taken over before all is known
        self._nodes, self._layout = nodes, layout
        self._tags, self._rules = tuple(keys[:MOST_TAGS]), rules
        self._placed = self._found(names, keys)
        return self._placed

    def forget(self, node_id: str) -> None:
        """Drop the entities of a node."""
        if self._nodes.pop(node_id, None) is not None:
            self._placed = None

    def _follow(
        self,
        nodes: dict[str, _Node],
        fresh: Sequence[tuple[str, int, Found]],
        tags: Sequence[str],
        rules: Limits | None,
    ) -> Layout:
        """The layout after columns came and left; the nodes' rows are changed to its own."""
        layout = self._layout
        asked: dict[tuple[object, ...], tuple[Entity, list[tuple[str, int]]]] = {}
        for name, at, found in fresh:
            of = found.tags or _shown(found.callback, tags)
            if (name, *of) not in asked:
                asked[name, *of] = _entity(name, of, rules), []
            asked[name, *of][1].append((name, at))
        wanted = sorted(asked.values(), key=lambda each: order(each[0]))
        places = layout.places(entity for entity, _ in wanted)
        new = np.ones(len(wanted), np.bool_)
        for number, (row, (entity, columns)) in enumerate(
            zip(places.tolist(), wanted, strict=True)
        ):
            known = layout.entities[row] if row < len(layout) else None
            if known is not None and order(known) == order(entity):
                new[number] = False
                for name, at in columns:
                    nodes[name].rows[at] = row
        came = [each for each, is_new in zip(wanted, new, strict=True) if is_new]
        used = np.zeros(len(layout) + 1, np.bool_)
        for node in nodes.values():
            used[node.rows] = True  # a row of -1 is the one more
        gone = np.flatnonzero(~used[:-1])
        if not came and not gone.size:
            return layout
        changed = layout.changed(gone, (entity for entity, _ in came), places[new])
        before = changed.rows_in(layout)
        after = np.full(len(layout) + 1, -1)
        after[before[before >= 0]] = np.flatnonzero(before >= 0)
        for name, node in nodes.items():
            nodes[name] = replace(node, rows=after[node.rows])
        for row, (_, columns) in zip(
            np.flatnonzero(before < 0).tolist(), came, strict=True
        ):
            for name, at in columns:
                nodes[name].rows[at] = row
        return changed

    def _found(self, names: Sequence[str], keys: Sequence[str]) -> Placed:
        layout, nodes = self._layout, [self._nodes[name] for name in names]
        rows = np.concatenate([_NOWHERE, *(node.rows for node in nodes)])
        meanings = np.concatenate([_NOWHERE, *(node.meanings for node in nodes)])
        about = rows >= 0
        read = np.zeros(len(layout), np.bool_)
        read[rows[about]] = True
        found: dict[Meaning, Rows] = {}
        folded: dict[Meaning, tuple[Rows, Rows]] = {}
        for meaning, number in _NUMBERS.items():
            of_it = np.flatnonzero(about & (meanings == number))
            if of_it.size:
                # of two columns that say the same, by two spellings of a name, the later one counts
                found[meaning] = np.full(len(layout), -1)
                found[meaning][rows[of_it]] = of_it
                tagged = of_it[rows[of_it] >= layout.tagged.start]
                if np.unique(rows[tagged]).size < tagged.size:
                    folded[meaning] = tagged, rows[tagged]
        return Placed(
            layout=layout,
            places=found,
            folded=folded,
            read=read,
            rules=self._rules,
            nodes=tuple(map(_of_node, names, nodes)),
            callbacks=Callbacks(
                labels=labels_of(self._tags), left_out=tuple(keys[MOST_TAGS:])
            ),
        )


class Shown:
    """
    Reads what is shown of tables.

    Args:
        placed: Where the numbers are.
        rows: The rows that are shown (ascending), None for all.
        last: A layout of earlier: if the entities are the same, and their limits, it stays.

    """

    def __init__(self, placed: Placed, rows: Rows | None, last: Layout) -> None:
        layout = placed.layout if rows is None else placed.layout.only(rows)
        if len(layout) == len(last) and not any(
            map(is_not, layout.entities, last.entities)
        ):
            layout = last
        kept = np.arange(len(layout)) if rows is None else rows
        here = np.full(len(placed.layout), -1)
        here[kept] = np.arange(len(layout))
        self.placed, self.rows, self.layout = placed, rows, layout
        self.places = {meaning: at[kept] for meaning, at in placed.places.items()}
        self._folded = {
            meaning: (places[here[of] >= 0], here[of[here[of] >= 0]])
            for meaning, (places, of) in placed.folded.items()
        }
        self._divisors = _DIVISORS[layout.types]
        # NaN after a minute without a throttle is 0 where a node measures it: it has the column. Of controller mutations that holds
        # beside a counter of an embedded engine only: under KRaft the column is there, and never more than NaN.
        nowhere = np.full(len(layout), -1)
        measured = self.places.get(Meaning.THROTTLE_TIME, nowhere) >= 0
        measured &= (layout.types != TYPES.index(QuotaType.CONTROLLER_MUTATION)) | (
            self.places.get(Meaning.THROTTLED_SECONDS, nowhere) >= 0
        )
        self._unthrottled = np.where(measured, 0.0, np.nan)

    def read(self, values: Floats) -> dict[str, Floats]:
        """The columns of a snapshot by name in base units, out of all tables' numbers one after the other and a NaN."""
        read = {
            column: self._base(meaning, values[self.places[meaning]])
            if meaning in self.places
            else self.layout.absent
            for meaning, column in _MEANINGS.items()
        }
        for meaning, (places, rows) in self._folded.items():
            column = read[_MEANINGS[meaning]]
            each = self._base(meaning, values[places], rows)
            column[rows] = np.nan
            if meaning is Meaning.USAGE:
                column[rows[~np.isnan(each)]] = 0.0
                np.add.at(column, rows, np.nan_to_num(each))
            else:
                np.fmax.at(column, rows, each)
        return {
            name: self.layout.absent if np.isnan(column).all() else fixed(column)
            for name, column in read.items()
        }

    def _base(
        self, meaning: Meaning, numbers: Floats, rows: Rows | slice = slice(None)
    ) -> Floats:
        """Kafka's numbers of some rows in base units; what is neither a number nor finite becomes NaN, or for throttles 0."""
        instead: Floats | float = np.nan
        known = np.isfinite(numbers)
        match meaning:
            case Meaning.USAGE:
                numbers = numbers / self._divisors[rows]
            case Meaning.THROTTLE_TIME:
                numbers, instead = numbers / MILLISECONDS, self._unthrottled[rows]
            case Meaning.THROTTLED_SECONDS:
                numbers = numbers / MILLISECONDS
            case Meaning.TOLD_UTILIZATION:
                numbers = numbers / PERCENT
            case Meaning.TOKENS:
                known &= numbers < UNLIMITED_TOKENS
                if self.placed.rules is not None:
                    known &= ~np.isnan(self.layout.limits[rows])
        return np.where(known, numbers, instead)


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


def _without_callbacks(
    nodes: dict[str, _Node], fresh: Iterable[tuple[str, int, Found]]
) -> tuple[dict[str, _Node], list[tuple[str, int, Found]]]:
    """The nodes with no rows for what is of a custom quota callback, and all that has to get one."""
    asked = [each for each in fresh if each[2].callback is None]
    without: dict[str, _Node] = {}
    for name, node in nodes.items():
        of_callback = {at: each for at, each in node.others.items() if each.callback}
        rows = node.rows.copy()
        rows[list(of_callback)] = -1
        without[name] = replace(node, rows=rows)
        asked += ((name, at, found) for at, found in of_callback.items())
    return without, asked


def _shown(
    callback: CallbackTags | None, tags: Sequence[str]
) -> tuple[QuotaType, tuple[str, ...]]:
    """What tells an entity of a callback from others, by the tags that are shown."""
    if callback is None:
        raise ValueError("nothing of an entity")
    given = dict(callback[1])
    return callback[0], tuple(given.get(key, "") for key in tags)


def _entity(
    broker: str, of: Tags | tuple[QuotaType, tuple[str, ...]], rules: Limits | None
) -> Entity:
    if len(of) == 2:  # noqa: PLR2004 - quota type and tags
        return Entity(
            broker=broker, quota_type=of[0], user="", client_id="", tags=of[1]
        )
    resolution, limit, burst = _allowed(broker, *of, rules)
    return Entity(
        broker=broker,
        quota_type=of[0],
        user=of[1],
        client_id=of[2],
        resolution=resolution,
        limit=limit,
        burst_tokens=burst,
    )


def _allowed(
    broker: str, kind: QuotaType, user: str, client_id: str, rules: Limits | None
) -> tuple[Resolution | None, float | None, float | None]:
    """Of an entity the rule that decides, the limit in our unit and the size of the bucket."""
    if rules is None:
        return None, None, None
    found = rules.rules.get(kind, NO_RULES).limit(user, client_id) or NO_RULE
    if found.bound is None:
        return found, None, None
    limit = found.bound / USAGE[kind].divisor
    if kind is not QuotaType.CONTROLLER_MUTATION:
        return found, limit, None
    # No Admin API tells the settings of a node that is only a controller; those of the brokers are the best guess.
    guess = next(iter(rules.nodes.values()), NodeSettings())
    known = rules.nodes.get(broker) or guess
    seconds = known.controller_quota_samples * known.controller_quota_window_seconds
    return found, limit, limit * seconds


def _under(layout: Layout, rules: Limits | None) -> Layout:
    """The layout with the limits of other rules; the same one where they give the same limits."""
    limited: dict[int, Entity] = {}
    for row, each in enumerate(layout.entities[layout.own].tolist()):
        now = _allowed(each.broker, each.quota_type, each.user, each.client_id, rules)
        if (each.resolution, each.limit, each.burst_tokens) != now:
            limited[row] = replace(
                each, resolution=now[0], limit=now[1], burst_tokens=now[2]
            )
    return layout.under(limited) if limited else layout


def _of_node(name: str, node: _Node) -> NodePlaces:
    places: dict[Meaning, dict[str, int]] = {}
    for at, found in sorted(node.others.items()):
        if found.callback is None:
            of_it = places.setdefault(found.attribute.meaning, {})
            of_it[found.about] = at
    return NodePlaces(node_id=name, places=places, sees_callback=bool(node.tags()))


def _see_callback(nodes: Iterable[NodePlaces]) -> bool:
    return any(node.sees_callback for node in nodes)
