"""The lines of a family, made of those of the last text: what did not change is taken over in pieces as large as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import is_not, itemgetter
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog import Family

from ..snapshot import Entity, Floats, Layout, Snapshot
from ..snapshot.layout import Rows, taken
from .families import PerEntity
from .number_text import texts
from .series import Reader, View, encodable, label_names

LineStart: TypeAlias = Callable[[Sequence[str]], bytes]
"""Makes the start of a line of label values."""
Pieces: TypeAlias = Iterable[bytes | memoryview]

_SAME_NAME, _OTHER_RULE, _STRANGE = 1, 2, 4
"""Marks of an entity: beside its neighbor above, or by itself."""
_NOTHING: Final = np.empty(0, np.intp)
_SMALL: Final = 2000
"""Pieces of fewer bytes are copied sooner than looked at in place."""


@dataclass(frozen=True, slots=True)
class Change:
    """How the entities of the last text became those of this one."""

    before: Rows
    """Where each was, -1 for new ones; ascending but for these."""
    remade: NDArray[np.bool_]
    """Which are other objects than before: their rule or limit is another one."""

    @classmethod
    def between(cls, old: Layout, new: Layout) -> Change | None:
        """None where those that stayed are in another order, so that no line can be taken over in its place."""
        before = new.rows_in(old)
        stayed = np.flatnonzero(before >= 0)
        were = before[stayed]
        if (np.diff(were) <= 0).any():
            return None
        remade = np.zeros(len(new), np.bool_)
        remade[stayed] = list(
            map(is_not, new.entities[stayed].tolist(), old.entities[were].tolist())
        )
        return cls(before, remade)


class Names:
    """Which entities of a layout share a series; what is known of the last layout is not asked again."""

    def __init__(
        self, layout: Layout, last: Names | None = None, change: Change | None = None
    ) -> None:
        self._layout = layout
        look = np.ones(len(layout), np.bool_)
        self.marks = np.zeros(len(layout), np.int8)
        if last is not None and change is not None and len(layout):
            self.marks = taken(last.marks, change.before, 0).copy()
            # where it is another entity, or beside another one than before
            others = np.where(change.before < 0, -2, change.before)
            beside = np.concatenate([[-1], others[:-1]])
            look = (others != beside + 1) | change.remade
            look[1:] |= change.remade[:-1]
        entities = layout.entities
        for row in np.flatnonzero(look).tolist():
            above = entities[row - 1] if row else None
            self.marks[row] = _marks(above, entities[row])
        marked = np.bitwise_or.reduce(self.marks)
        self._strange = bool(marked & _STRANGE)
        self._other_rules = bool(marked & _OTHER_RULE)
        self._by_name = (
            np.cumsum(self.marks & _SAME_NAME == 0) if marked & _SAME_NAME else None
        )
        self._by_labels: dict[PerEntity, NDArray[np.intp]] = {}

    def series(self, family: PerEntity) -> NDArray[np.intp] | None:
        """A number for the series of each entity of the family's rows, None where each has one of its own."""
        if self._strange or (family.by_rule and self._other_rules):
            if family not in self._by_labels:
                entities = self._layout.entities[family.rows(self._layout)].tolist()
                known: dict[tuple[str, ...], int] = {}
                numbers = [
                    known.setdefault(tuple(map(encodable, labels)), len(known))
                    for labels in map(family.labels, entities)
                ]
                self._by_labels[family] = np.array(numbers, np.intp)
            return self._by_labels[family]
        if not family.shared or self._by_name is None:
            return None
        return self._by_name[family.rows(self._layout)]


def _marks(above: Entity | None, entity: Entity) -> int:
    names = entity.tags or (entity.user, entity.client_id)
    plain = all(map(str.isascii, (entity.broker, *names)))
    marks = (
        0
        if plain or all(encodable(name) == name for name in (entity.broker, *names))
        else _STRANGE
    )
    if (
        above is not None
        and (above.tags or (above.user, above.client_id)) == names
        and above.quota_type is entity.quota_type
    ):
        marks |= _SAME_NAME
        if above.broker == entity.broker:
            marks |= _STRANGE
        if above.resolution != entity.resolution:
            marks |= _OTHER_RULE
    return marks


@dataclass(frozen=True, slots=True)
class Last:
    """What there is of the last text, for the lines of all families."""

    text: bytes
    names: Names
    change: Change | None
    """None where the layout is the same."""


class EntityLines:
    """
    The lines of a family with a series for each entity, as a part of one text after the other.

    Kept are each line's length and that of its number, not the lines. A text is the last one with some parts cut out, and
    others put in their place: numbers that changed, lines that came.

    Args:
        family: What is shown.
        reader: Its column.
        cluster: One more label of every series.

    """

    def __init__(self, family: Family, reader: PerEntity, cluster: str | None) -> None:
        self._family = family
        self._reader = reader
        self._cluster = cluster
        self._labels: tuple[str, ...] | None = None
        self.at = 0
        """Where the lines begin in the text; set by whatever writes them there."""
        self.forget()

    def forget(self) -> None:
        """Take nothing over from the last text."""
        self.length = 0
        """Of all lines, in bytes."""
        self._rows = slice(0, 0)
        self._given: Floats | None = None
        self._values: Floats = np.empty(0)
        self._lengths = np.empty(0, np.int32)
        """Of each line, 0 where the entity has none."""
        self._sizes = np.empty(0, np.int8)
        """Of each number."""

    def pieces(self, view: View, last: Last) -> Pieces:
        """The lines of a snapshot; afterwards ``length`` is theirs."""
        layout = view.snapshot.shown.layout
        rows = self._reader.rows(layout)
        given = layout.absent
        if rows.start < rows.stop:
            given = self._reader.values(view.snapshot)
        if given is layout.absent:
            self.forget()
            return ()
        self._name(view.snapshot)
        if given is self._given and last.change is None:
            return (memoryview(last.text)[self.at : self.at + self.length],)
        values, series = given[rows], last.names.series(self._reader)
        if series is not None:
            values = _first(values, series)
        begin, stop = self.at, self.at + self.length
        cuts = self._cuts(layout, rows, values, last.change)
        self._rows, self._given, self._values = rows, given, values
        self.length = int(self._lengths.sum())
        return _spliced(last.text, begin, stop, *cuts)

    def _name(self, snapshot: Snapshot) -> None:
        labels = label_names(self._family, snapshot)
        if labels != self._labels:
            self.forget()
            self._labels = labels
            self._start = line_starts(self._family.name, labels, self._cluster)

    def _cuts(
        self, layout: Layout, rows: slice, values: Floats, change: Change | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], list[bytes]]:
        """From where to where the last lines are cut, ascending, and what comes there; places are counted from the first line."""
        lengths, ends = self._lengths, np.cumsum(self._lengths, dtype=np.int64)
        known, sizes, places, gone = self._values, self._sizes, ends, _NOTHING
        if self._given is None:
            known = np.full(rows.stop - rows.start, np.nan)
            places = np.zeros(len(known), np.int64)
            lengths, sizes = places.astype(np.int32), places.astype(np.int8)
        elif change is not None:
            before = change.before[rows]
            inside = (before >= self._rows.start) & (before < self._rows.stop)
            before = np.where(inside, before - self._rows.start, -1)
            gone = np.delete(np.arange(len(lengths)), before[inside])
            gone = gone[lengths[gone] > 0]
            known, sizes = taken(known, before, np.nan), taken(sizes, before, 0)
            lengths = taken(lengths, before, 0)
            places = taken(ends, np.maximum.accumulate(before), 0)
            if self._reader.by_rule:
                remade = change.remade[rows]
                known = np.where(remade, np.inf, known)
                sizes = np.where(remade, 0, sizes)
        changed = np.flatnonzero(values.view(np.int64) != known.view(np.int64))
        written = texts(values[changed])
        news = np.fromiter(map(len, written), np.int64, len(written))
        stops, olds = places[changed], sizes[changed]
        # the number alone where there was a line and is one, else all of the line
        whole = (olds == 0) | (news == 0)
        starts = stops - np.where(whole, lengths[changed], olds)
        sizes, lengths = sizes.copy(), lengths.copy()
        sizes[changed] = news
        for at in np.flatnonzero(whole & (news > 0)).tolist():
            entity = layout.entities[rows.start + changed[at]]
            written[at] = self._start(self._reader.labels(entity)) + written[at]
            news[at] = len(written[at])
        lengths[changed] += news - (stops - starts)
        if gone.size:
            starts = np.concatenate([starts, ends[gone] - self._lengths[gone]])
            stops = np.concatenate([stops, ends[gone]])
            order = np.argsort(starts, kind="stable")
            starts, stops = starts[order], stops[order]
            written += [b""] * len(gone)
            written = [written[at] for at in order.tolist()]
        self._sizes, self._lengths = sizes, lengths
        return starts, stops, written


def _first(values: Floats, series: NDArray[np.intp]) -> Floats:
    """The values but for those of series that an entity before has shown."""
    finite = np.flatnonzero(np.isfinite(values))
    shown = finite[np.unique(series[finite], return_index=True)[1]]
    result = np.full(len(values), np.nan)
    result[shown] = values[shown]
    return result


def _spliced(
    text: bytes,
    begin: int,
    stop: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    written: list[bytes],
) -> Pieces:
    """A part of a text with others put in the places of some of its pieces."""
    if begin == stop:
        return written
    begins = np.concatenate([[begin], begin + stops]).tolist()
    ends = np.concatenate([begin + starts, [stop]]).tolist()
    small = stop - begin < _SMALL * len(begins)
    kept: Callable[[slice], bytes | memoryview] = (
        text if small else memoryview(text)
    ).__getitem__
    return chain.from_iterable(
        zip(map(kept, map(slice, begins, ends)), chain(written, (b"",)), strict=True)
    )


class RowLines:
    """
    The lines of a family that is read series by series; each line's start is kept for as long as its series is there.

    Args:
        family: What is shown.
        reader: Reads its series.
        cluster: One more label of every series.

    """

    def __init__(self, family: Family, reader: Reader, cluster: str | None) -> None:
        self._family = family
        self._reader = reader
        self._cluster = cluster
        self.at = self.length = 0
        self._names: tuple[str, ...] = ()
        self._labels: list[tuple[str, ...]] = []
        self._starts: list[bytes] = []
        self._values: list[float | None] = []
        self._text = b""

    def pieces(self, view: View, _last: Last) -> Pieces:
        """The lines of a snapshot; afterwards ``length`` is theirs."""
        rows = list(self._reader(view))
        labels, values = [row[0] for row in rows], [row[1] for row in rows]
        names = label_names(self._family, view.snapshot)
        if (labels, values, names) != (self._labels, self._values, self._names):
            known = {}
            if names == self._names:
                known = dict(zip(self._labels, self._starts, strict=True))
            start = line_starts(self._family.name, names, self._cluster)
            self._starts = [known.get(each) or start(each) for each in labels]
            self._names, self._labels, self._values = names, labels, values
            first: dict[bytes, bytes] = {}
            numbers = texts(np.array(values, np.float64))
            for begin, number in zip(self._starts, numbers, strict=True):
                if number:
                    first.setdefault(begin, begin + number)
            self._text = b"".join(first.values())
        self.length = len(self._text)
        return (self._text,)


def line_starts(family: str, labels: Sequence[str], cluster: str | None) -> LineStart:
    """
    Return what makes the start of a line of label values: the end of the line before, name and labels.

    Labels are sorted by name, as prometheus_client does.

    Args:
        family: Its name.
        labels: Their names, in the order in which values come.
        cluster: Value of the label ``cluster``, None for no such label.

    """
    fixed = {} if cluster is None else {"cluster": _escaped(cluster).replace("%", "%%")}
    places = {name: place for place, name in enumerate(labels)}
    names = sorted({*labels, *fixed})
    chosen = [places[name] for name in names if name not in fixed]
    in_order = itemgetter(*chosen) if chosen else lambda _values: ()
    pairs = ",".join(f'{name}="{fixed.get(name, "%s")}"' for name in names)
    template = f"\n{family}{{{pairs}}} " if names else f"\n{family} "

    def start(values: Sequence[str]) -> bytes:
        text = "".join(values)
        if not (text.isascii() and text.isprintable()) or '"' in text or "\\" in text:
            values = list(map(_escaped, values))
        return (template % in_order(values)).encode()

    return start


def _escaped(label: str) -> str:
    text = encodable(label).replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace('"', '\\"')
