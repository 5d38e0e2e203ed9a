"""
The lines of a family, made of those of the last text.

What did not change is taken over in pieces as large as can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import isfinite
from operator import add, itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from quotascope.metrics.catalog import Family

from ..snapshot import Entity, Floats, Layout
from ..snapshot.layout import Rows, taken
from .families import PerEntity
from .rows import Exposed, Row, encodable, label_names

LineStart: TypeAlias = Callable[[Sequence[str]], bytes]
"""Makes the start of a line of label values."""
Pieces: TypeAlias = Iterable[bytes | memoryview]

_SAME_NAME, _OTHER_RULE, _STRANGE = 1, 2, 4
"""Marks of an entity, of which the last needs no neighbor above."""
_SMALL: Final = 2000
"""Length in bytes below which a piece is copied, which is faster than to view it in place."""
_LEAST: Final = 1e-4
"""Number below which orjson and Prometheus write different exponents."""
_LARGE: Final = 10.0 ** np.arange(6, 17)
"""Numbers from the first of which on Prometheus writes an exponent; from the last on, ``repr`` does, too."""
_EXPONENTS: Final = np.array([b"", *(b"e+%02d" % exponent for exponent in range(6, 16))], object)
_COMMA, _POINT = b",."


class Names:
    """
    The entities of a text: which of them share a series, and where they were in the text before.

    Entities of the ``previous`` text are not compared again where they have the same neighbors.
    """

    def __init__(self, layout: Layout, previous: Names | None = None) -> None:
        self.layout = layout
        self._series: dict[PerEntity, tuple[Rows, Rows] | None] = {}
        self.marks = np.zeros(len(layout), np.int8)
        self.before: Rows | None = None
        """
        Row of each entity in the text before, -1 for new ones, otherwise ascending; None while the layout stays the
        same.
        """
        self.remade = look = np.ones(len(layout), np.bool_)
        """Mask of the entities that were made again, with another rule or limit."""
        self.in_order = True
        """True if those that stayed are in the same order, so that lines can be taken over in their places."""
        if previous is not None:
            self.before = old_rows = layout.rows_in(previous.layout)
            self.in_order = bool((np.diff(old_rows[old_rows >= 0]) > 0).all())
            self.remade = (old_rows >= 0) & (layout.unchanged_in(previous.layout) < 0)
            self.marks = taken(previous.marks, old_rows, 0).copy()
            # where the entity is another one, or has another neighbor than before
            comparable = np.where(old_rows < 0, -2, old_rows)
            look = (comparable != np.append([-1], comparable[:-1])[: len(comparable)] + 1) | self.remade
            look[1:] |= self.remade[:-1]
        entities = layout.entities
        for row in np.flatnonzero(look).tolist():
            above = entities[row - 1] if row else None
            self.marks[row] = _marks(above, entities[row])

    def series(self, family: PerEntity) -> tuple[Rows, Rows] | None:
        """
        Return the rows of a family that may share a series, and a number for the series of each.

        Return None where each has one of its own.
        """
        if family in self._series:
            return self._series[family]
        part = family.rows(self.layout)
        marks, same_name = self.marks[part], _SAME_NAME if family.shared else 0
        rows = _and_above(marks & (_STRANGE | same_name))
        if not rows.size:
            self._series[family] = None
            return None
        numbers = np.cumsum(marks & same_name == 0)
        unclear = _and_above(marks & _STRANGE)
        if family.by_rule and (marks & _OTHER_RULE).any():
            numbers, unclear = np.arange(len(marks)), rows
        numbers_by_labels: dict[tuple[str, ...], int] = {}
        for row in unclear.tolist():
            labels = family.labels(self.layout.entities[part.start + row])
            key = tuple(map(encodable, labels))
            numbers[row] = numbers_by_labels.setdefault(key, numbers[row])
        shared = self._series[family] = rows, numbers[rows]
        return shared


def _marks(above: Entity | None, entity: Entity) -> int:
    """Return how an entity's names compare with those of the entity above it, as marks."""
    names = entity.tags or (entity.user, entity.client_id)
    marks = 0
    for name in (entity.broker, *names):
        # two names can only be written alike if one has half of a surrogate pair and the other its escape
        if encodable(name) != name or "\\ud" in name:
            marks = _STRANGE
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


def _and_above(marked: NDArray[np.int8]) -> Rows:
    """Return the rows that are marked, and the rows above them."""
    chosen = marked != 0
    chosen[:-1] |= chosen[1:]
    return np.flatnonzero(chosen)


class EntityLines:
    """
    The lines of a family with a series for each entity, as a part of one text after the other.

    Kept are the length of each line and of its number, not the lines. A text is the last one with some parts replaced:
    numbers that changed, lines that came and left.
    """

    def __init__(self, family: Family, reader: PerEntity, cluster: str | None) -> None:
        self._family = family
        self._reader = reader
        self._cluster = cluster
        self._labels: tuple[str, ...] | None = None
        self.at = 0
        """Position of the lines in the text; set by whatever writes them there."""
        self.forget()

    def forget(self) -> None:
        """Forget the last text, so that the next one takes nothing over from it."""
        self.length = 0
        """Length of all lines, in bytes."""
        self._rows = slice(0, 0)
        self._given: Floats | None = None
        self._values: Floats = np.empty(0)
        self._lengths = np.empty(0, np.int32)
        """Length of each line, 0 where the entity has none."""
        self._sizes = np.empty(0, np.int8)
        """Length of each number."""

    def pieces(self, view: Exposed, names: Names, text: bytes) -> Pieces | None:
        """
        Return the lines of a snapshot with these entities, None for those of the last ``text``.

        Afterwards ``length`` is theirs.
        """
        labels, layout = label_names(self._family, view.snapshot), names.layout
        rows = self._reader.rows(layout)
        column = layout.absent
        if rows.start < rows.stop:
            column = self._reader.values(view.snapshot)
        if column is layout.absent:
            had = self.length
            self.forget()
            return () if had else None
        if labels != self._labels:
            self.forget()
            self._labels = labels
            self._start = line_starts(self._family.name, labels, self._cluster)
        same_rows = names.before is None and self._given is not None
        if same_rows and column is self._given:
            return None
        values, series = column[rows], names.series(self._reader)
        if series is not None:
            # the first row with a value shows the series that rows share
            sharing, numbers = series
            finite = np.isfinite(values[sharing])
            sharing, first_of_series = sharing[finite], np.unique(numbers[finite], return_index=True)[1]
            values = values.copy()
            values[np.delete(sharing, first_of_series)] = np.nan
        if same_rows and np.array_equal(values.view(np.int64), self._values.view(np.int64)):
            return None
        pieces = self._patch(text, layout, values, *self._carry(rows, names))
        self._given = column
        return pieces

    def _carry(self, rows: slice, names: Names) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """
        Move to the rows of this snapshot, with what there is of the last one.

        Returns:
            Where each entity's line ended, of new ones that of the one above; and from where to where lines were of
            entities that are gone. Places are counted from the first line.

        """
        ends = np.cumsum(self._lengths, dtype=np.int64)
        nothing = ends[:0]
        last_rows, self._rows = self._rows, rows
        if self._given is None:
            self._values = np.full(rows.stop - rows.start, np.nan)
            ends = np.zeros(len(self._values), np.int64)
            self._lengths, self._sizes = ends.astype(np.int32), ends.astype(np.int8)
            return ends, nothing, nothing
        if names.before is None:
            return ends, nothing, nothing
        old_rows = names.before[rows]
        inside = (old_rows >= last_rows.start) & (old_rows < last_rows.stop)
        old_rows = np.where(inside, old_rows - last_rows.start, -1)
        removed = np.delete(np.arange(len(ends)), old_rows[inside])
        removed = removed[self._lengths[removed] > 0]
        starts, stops = ends[removed] - self._lengths[removed], ends[removed]
        self._values = taken(self._values, old_rows, np.nan)
        self._lengths = taken(self._lengths, old_rows, 0)
        self._sizes = taken(self._sizes, old_rows, 0)
        if self._reader.by_rule:
            # neither the number nor the start of the line is kept
            remade = names.remade[rows]
            self._values = np.where(remade, np.inf, self._values)
            self._sizes = np.where(remade, np.int8(0), self._sizes)
        return taken(ends, np.maximum.accumulate(old_rows), 0), starts, stops

    def _patch(
        self, text: bytes, layout: Layout, values: Floats, ends: NDArray[np.int64], *removed: NDArray[np.int64]
    ) -> Pieces:
        """
        Return the last lines, with others put in the places of those that changed.

        ``ends`` and ``removed`` are what ``_carry`` returns.
        """
        changed = np.flatnonzero(values.view(np.int64) != self._values.view(np.int64))
        new_texts = texts(values[changed])
        lengths, sizes = self._lengths.copy(), self._sizes.copy()
        stops, old_sizes = ends[changed], sizes[changed]
        new_sizes = np.fromiter(map(len, new_texts), np.int64, len(new_texts))
        sizes[changed] = new_sizes
        # only the number if the line was there before and still is, else the whole line
        whole = (old_sizes == 0) | (new_sizes == 0)
        starts = stops - np.where(whole, lengths[changed], old_sizes)
        for index in np.flatnonzero(whole & (new_sizes > 0)).tolist():
            entity = layout.entities[self._rows.start + changed[index]]
            new_texts[index] = self._start(self._reader.labels(entity)) + new_texts[index]
            new_sizes[index] = len(new_texts[index])
        lengths[changed] += new_sizes - (stops - starts)
        self._values, self._lengths, self._sizes = values, lengths, sizes
        if removed[0].size:
            starts = np.concatenate([starts, removed[0]])
            stops = np.concatenate([stops, removed[1]])
            new_texts += [b""] * len(removed[0])
            # new lines stand before a line that is gone
            order = np.argsort(starts, kind="stable")
            starts, stops = starts[order], stops[order]
            new_texts = [new_texts[index] for index in order.tolist()]
        begin, end = self.at, self.at + self.length
        self.length = int(lengths.sum())
        if begin == end:
            return new_texts
        begins = np.concatenate([[begin], begin + stops]).tolist()
        to = np.concatenate([begin + starts, [end]]).tolist()
        small = end - begin < _SMALL * len(begins)
        source: Any = text if small else memoryview(text)
        unchanged = map(source.__getitem__, map(slice, begins, to))
        return chain.from_iterable(zip(unchanged, chain(new_texts, (b"",)), strict=True))


class RowLines:
    """
    The lines of a family that is read series by series.

    Each line's start is kept for as long as its series is there.
    """

    def __init__(self, family: Family, cluster: str | None) -> None:
        self._family = family
        self._cluster = cluster
        self.at = self.length = 0
        self._names: tuple[str, ...] | None = None
        self._rows: list[Row] = []
        self._starts: dict[tuple[str, ...], bytes] = {}
        self._text = b""

    def pieces(self, view: Exposed, *_rest: object) -> Pieces | None:
        """Return the lines of a snapshot, None for those of the last one; afterwards ``length`` is theirs."""
        rows = view.rows.get(self._family.name, [])
        names = label_names(self._family, view.snapshot)
        if (rows, names) == (self._rows, self._names):
            return None
        if names != self._names:
            self._names, self._starts = names, {}
            self._start = line_starts(self._family.name, names, self._cluster)
        starts, self._rows = self._starts, rows
        self._starts = {labels: starts.get(labels) or self._start(labels) for labels, _ in rows}
        lines: dict[bytes, bytes] = {}
        numbers = texts(np.array([value for _, value in rows], np.float64))
        for (labels, _), number in zip(rows, numbers, strict=True):
            if number:
                begin = self._starts[labels]
                lines.setdefault(begin, begin + number)
        text = b"".join(lines.values())
        if text == self._text:
            return None
        self._text, self.length = text, len(text)
        return (text,)


class TeamLines:
    """
    The lines of a family of teams.

    Lines are kept for as long as the teams are the same, and written again where their value changes.
    """

    def __init__(self, family: Family, cluster: str | None) -> None:
        self._family = family
        self._start = line_starts(family.name, family.labels, cluster)
        self.at = self.length = 0
        self._names: tuple[str, ...] = ()
        self._starts: list[bytes] = []
        self._lines: list[bytes] = []
        self._values: Floats = np.empty(0)
        """Value of each line; NaN for a line that is empty."""

    def pieces(self, view: Exposed, *_rest: object) -> Pieces | None:
        """Return the lines of a snapshot, None for those of the last one; afterwards ``length`` is theirs."""
        sums = view.snapshot.teams
        if sums is None:
            if not self.length:
                return None
            self.length, self._names = 0, ()
            return (b"",)
        columns = view.team_columns[self._family]
        values = columns[0][1] if len(columns) == 1 else np.concatenate([column for _, column in columns])
        if sums.names is not self._names:
            self._names = sums.names
            self._starts = [self._start((*labels, name)) for labels, _ in columns for name in sums.names]
            self._lines, self._values = [b""] * len(self._starts), np.full(len(self._starts), np.nan)
        changed = np.flatnonzero((values != self._values) & ~(np.isnan(values) & np.isnan(self._values)))
        if not changed.size:
            return None
        self._values = values
        for place, number in zip(changed.tolist(), texts(values[changed]), strict=True):
            self._lines[place] = self._starts[place] + number if number else b""
        text = b"".join(self._lines)
        self.length = len(text)
        return (text,)


def line_starts(family: str, labels: Sequence[str], cluster: str | None) -> LineStart:
    """
    Return a function that makes the start of a line of label values: the end of the line before, name and labels.

    Labels are sorted by name, as prometheus_client does; values come in the order of ``labels``. ``cluster`` is one
    more label.
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


def texts(values: Floats) -> list[bytes]:
    """
    Return the text of each number, equal to prometheus_client's ``floatToGoString``.

    The text is empty for NaN and infinities, which are not shown. -0 is written as 0.
    """
    if not values.size:
        return []
    together = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    # Go's %g, which has an exponent where Python's repr has none yet
    exponents = np.searchsorted(_LARGE, values, side="right")
    exponents[exponents == len(_LARGE)] = 0  # numbers that have an exponent in Python, and NaN
    large = np.flatnonzero(exponents)
    if not large.size:
        number_texts = together.split(b",")
    else:
        number_texts = _with_point_first(together, large, exponents[large]).split(b",")
        for place in large[values[large] % 1 == 0].tolist():
            number_texts[place] = number_texts[place].rstrip(b"0.")
        number_texts = list(map(add, number_texts, _EXPONENTS[exponents].tolist()))
    as_in_python = (values >= _LEAST) & (values < _LARGE[-1]) | (values.view(np.int64) == 0)
    for place in np.flatnonzero(~as_in_python).tolist():
        number_texts[place] = _rare(values.item(place), number_texts[place])
    return number_texts


def _with_point_first(together: bytes, places: Rows, exponents: Rows) -> bytes:
    """
    Return numbers, joined by commas, of which some get their point after the first digit.

    That is where it stands before an exponent. ``exponents`` are places in ``_EXPONENTS``.
    """
    characters = np.frombuffer(together, np.uint8).copy()
    begins = np.concatenate([[0], np.flatnonzero(characters == _COMMA) + 1])[places]
    for exponent in np.flatnonzero(np.bincount(exponents)).tolist():
        firsts = begins[exponents == exponent, np.newaxis]
        moved = firsts + np.arange(1, exponent + 6)
        characters[moved + 1] = characters[moved]
        characters[firsts + 1] = _POINT
    return characters.tobytes()


def _rare(value: float, written: bytes) -> bytes:
    if value == 0:
        return b"0.0"
    mantissa, _, exponent = written.partition(b"e-")
    if 0 < value < _LEAST and exponent:
        # an exponent of at least two digits
        return written if len(exponent) > 1 else mantissa + b"e-0" + exponent
    return repr(value).encode() if isfinite(value) else b""
