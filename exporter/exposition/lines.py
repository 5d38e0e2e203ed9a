"""
Writes the lines of a family by patching the lines of the last text.

Unchanged parts of the text are copied in pieces that are as large as possible.
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
"""Function from label values to the start of a line."""
Pieces: TypeAlias = Iterable[bytes | memoryview]
"""Parts of a text, in order."""

_SAME_NAME, _OTHER_RULE, _AMBIGUOUS = 1, 2, 4
"""
Marks of an entity, which may have several: it has the names of the entity above, it has another rule than that, and
other entities may have the same labels.
"""
_SMALL: Final = 2000
"""Mean length in bytes of a piece, below which it is faster to copy pieces than to view them in place."""
_SMALLEST: Final = 1e-4
"""Number below which orjson and Prometheus write different exponents."""
_POWERS: Final = 10.0 ** np.arange(6, 17)
"""Powers of ten. Prometheus writes an exponent from the first on, Python's ``repr`` from the last on."""
_EXPONENTS: Final = np.array([b"", *(b"e+%02d" % exponent for exponent in range(6, 16))], object)
_COMMA, _POINT = b",."


class Names:
    """
    The entities of a text: their rows in the last text, and the entities that share a series.

    Entities that have the same neighbors as in the ``previous`` text are not compared again.
    """

    def __init__(self, layout: Layout, previous: Names | None = None) -> None:
        self.layout = layout
        self._shared_series: dict[PerEntity, tuple[Rows, Rows] | None] = {}
        self.marks = np.zeros(len(layout), np.int8)
        """Marks of each entity."""
        self.previous_rows: Rows | None = None
        """Row of each entity in the last text, -1 for a new one; None while the layout stays the same."""
        self.remade = np.ones(len(layout), np.bool_)
        """Mask of the entities that were made again, with another rule or limit."""
        self.in_order = True
        """True if the entities of the last text have the same order, so that their lines can stay in their places."""
        to_compare = self.remade
        if previous is not None:
            self.previous_rows = previous_rows = layout.rows_in(previous.layout)
            self.in_order = bool((np.diff(previous_rows[previous_rows >= 0]) > 0).all())
            self.remade = (previous_rows >= 0) & (layout.unchanged_in(previous.layout) < 0)
            self.marks = taken(previous.marks, previous_rows, 0).copy()
            # an entity is compared if it or the one above is another one than before, or was made again
            row_or_new = np.where(previous_rows < 0, -2, previous_rows)  # -2 is next to no row
            row_above = np.append([-1], row_or_new[:-1])[: len(row_or_new)]
            to_compare = (row_or_new != row_above + 1) | self.remade
            to_compare[1:] |= self.remade[:-1]
        entities = layout.entities
        for row in np.flatnonzero(to_compare).tolist():
            above = entities[row - 1] if row else None
            self.marks[row] = _marks(above, entities[row])

    def shared_series(self, family: PerEntity) -> tuple[Rows, Rows] | None:
        """
        Return the rows of a family that may share a series, and the number of the series of each.

        Rows are counted from the first row of the family. Return None if every row has a series of its own.
        """
        if family in self._shared_series:
            return self._shared_series[family]
        family_rows = family.rows(self.layout)
        marks, same_name = self.marks[family_rows], _SAME_NAME if family.shared else 0
        rows = _with_rows_above(marks & (_AMBIGUOUS | same_name))
        if not rows.size:
            self._shared_series[family] = None
            return None
        # a row without the mark begins a series; in a family that nodes do not share, every row does
        series = np.cumsum(marks & same_name == 0)
        ambiguous_rows = _with_rows_above(marks & _AMBIGUOUS)
        if family.by_rule and (marks & _OTHER_RULE).any():  # nodes may differ in the rule, and so in labels
            series, ambiguous_rows = np.arange(len(marks)), rows
        # of ambiguous rows, only the labels themselves show which are of one series
        series_by_labels: dict[tuple[str, ...], int] = {}
        for row in ambiguous_rows.tolist():
            labels = family.labels(self.layout.entities[family_rows.start + row])
            key = tuple(map(encodable, labels))
            series[row] = series_by_labels.setdefault(key, series[row])
        shared = self._shared_series[family] = rows, series[rows]
        return shared


def _marks(above: Entity | None, entity: Entity) -> int:
    """Return the marks of an entity, by its names and by a comparison with the entity in the row above."""
    names = entity.tags or (entity.user, entity.client_id)
    marks = 0
    for name in (entity.broker, *names):
        # two names can only be written alike if one has half of a surrogate pair and the other its escape
        if encodable(name) != name or "\\ud" in name:
            marks = _AMBIGUOUS
    if above is None or above.quota_type is not entity.quota_type:
        return marks
    if (above.tags or (above.user, above.client_id)) == names:
        marks |= _SAME_NAME
        if above.broker == entity.broker:
            marks |= _AMBIGUOUS
        if above.resolution != entity.resolution:
            marks |= _OTHER_RULE
    return marks


def _with_rows_above(marked: NDArray[np.int8]) -> Rows:
    """Return the rows that are marked, and the rows above them."""
    chosen = marked != 0
    chosen[:-1] |= chosen[1:]
    return np.flatnonzero(chosen)


class EntityLines:
    """
    Writes the lines of a family with a series for each entity, into successive texts.

    It keeps the lengths of the lines and of their numbers, not the lines. A text is the last one with some parts
    replaced: numbers that changed, and lines that came or left.
    """

    def __init__(self, family: Family, reader: PerEntity, cluster: str | None) -> None:
        self._family = family
        self._reader = reader
        self._cluster = cluster
        self._labels: tuple[str, ...] | None = None
        self.at = 0
        """Position of the lines in the text, which the writer of the text sets."""
        self.forget()

    def forget(self) -> None:
        """Forget the last text, so that the next one is written from scratch."""
        self.length = 0
        """Length of all lines, in bytes."""
        self._rows = slice(0, 0)
        self._column: Floats | None = None
        """The column of the last text; None without one."""
        self._values: Floats = np.empty(0)
        """The values of the lines; NaN for an entity without a line."""
        self._lengths = np.empty(0, np.int32)
        """Length of each line, 0 for an entity without a line."""
        self._number_lengths = np.empty(0, np.int8)
        """Length of the number of each line."""

    def pieces(self, view: Exposed, names: Names, text: bytes) -> Pieces | None:
        """
        Return the lines of a snapshot, and set ``length`` to their length.

        Args:
            view: The snapshot.
            names: Its entities.
            text: The last text.

        Returns:
            Parts of the last text and new parts, in order; None if all lines are the same as in the last text.

        """
        labels, layout = label_names(self._family, view.snapshot), names.layout
        rows = self._reader.rows(layout)
        column = layout.absent
        if rows.start < rows.stop:
            column = self._reader.values(view.snapshot)
        if column is layout.absent:
            had_lines = self.length > 0
            self.forget()
            return () if had_lines else None
        if labels != self._labels:
            self.forget()
            self._labels = labels
            self._start = line_starts(self._family.name, labels, self._cluster)
        same_rows = names.previous_rows is None and self._column is not None
        if same_rows and column is self._column:
            return None
        values, shared_series = column[rows], names.shared_series(self._reader)
        if shared_series is not None:
            # of the rows that share a series, the first one with a value has the line
            sharing, series = shared_series
            finite = np.isfinite(values[sharing])
            sharing = sharing[finite]
            _, first_of_series = np.unique(series[finite], return_index=True)
            values = values.copy()
            values[np.delete(sharing, first_of_series)] = np.nan
        # compared as integers, since NaN differs from itself
        if same_rows and np.array_equal(values.view(np.int64), self._values.view(np.int64)):
            return None
        pieces = self._patch(text, layout, values, *self._carry(rows, names))
        self._column = column
        return pieces

    def _carry(self, rows: slice, names: Names) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """
        Move values and lengths from the rows of the last text to the rows of this snapshot.

        Returns:
            Three arrays of positions in the last text, counted from the first line: the end of each entity's line (of
            a new entity, the end of the line above), and the starts and the ends of lines whose entities have left.

        """
        ends = np.cumsum(self._lengths, dtype=np.int64)
        no_lines = ends[:0]
        last_rows, self._rows = self._rows, rows
        if self._column is None:  # the last text has no line of this family
            self._values = np.full(rows.stop - rows.start, np.nan)
            ends = np.zeros(len(self._values), np.int64)
            self._lengths, self._number_lengths = ends.astype(np.int32), ends.astype(np.int8)
            return ends, no_lines, no_lines
        if names.previous_rows is None:
            return ends, no_lines, no_lines
        # first rows of the last layout, then counted from the first row of the family in it
        previous_rows = names.previous_rows[rows]
        had_row = (previous_rows >= last_rows.start) & (previous_rows < last_rows.stop)
        previous_rows = np.where(had_row, previous_rows - last_rows.start, -1)
        removed = np.delete(np.arange(len(ends)), previous_rows[had_row])
        removed = removed[self._lengths[removed] > 0]
        starts, stops = ends[removed] - self._lengths[removed], ends[removed]
        self._values = taken(self._values, previous_rows, np.nan)
        self._lengths = taken(self._lengths, previous_rows, 0)
        self._number_lengths = taken(self._number_lengths, previous_rows, 0)
        if self._reader.by_rule:
            # the labels may have changed, so the whole line is written again: infinity differs from any value
            remade = names.remade[rows]
            self._values = np.where(remade, np.inf, self._values)
            self._number_lengths = np.where(remade, np.int8(0), self._number_lengths)
        last_old_rows = np.maximum.accumulate(previous_rows)  # of a new entity, the row of the last old one above
        return taken(ends, last_old_rows, 0), starts, stops

    def _patch(
        self, text: bytes, layout: Layout, values: Floats, ends: NDArray[np.int64], *removed: NDArray[np.int64]
    ) -> Pieces:
        """
        Return the last lines with new texts in the places of lines and numbers that changed.

        Args:
            text: The last text.
            layout: The layout of the snapshot.
            values: The values of the snapshot.
            ends: Ends of the entities' lines, as ``_carry`` returns them.
            removed: Starts and ends of the lines whose entities have left, as ``_carry`` returns them.

        """
        changed = np.flatnonzero(values.view(np.int64) != self._values.view(np.int64))
        new_texts = texts(values[changed])
        lengths, number_lengths = self._lengths.copy(), self._number_lengths.copy()
        # from `starts` to `stops` are the parts of the last lines that the new texts replace
        stops, old_number_lengths = ends[changed], number_lengths[changed]
        new_lengths = np.fromiter(map(len, new_texts), np.int64, len(new_texts))
        number_lengths[changed] = new_lengths
        # if the line stays, only its number is replaced, which is at its end; else the whole line
        is_whole_line = (old_number_lengths == 0) | (new_lengths == 0)
        starts = stops - np.where(is_whole_line, lengths[changed], old_number_lengths)
        for index in np.flatnonzero(is_whole_line & (new_lengths > 0)).tolist():
            entity = layout.entities[self._rows.start + changed[index]]
            new_texts[index] = self._start(self._reader.labels(entity)) + new_texts[index]
            new_lengths[index] = len(new_texts[index])
        lengths[changed] += new_lengths - (stops - starts)
        self._values, self._lengths, self._number_lengths = values, lengths, number_lengths
        removed_starts, removed_stops = removed
        if removed_starts.size:
            starts = np.concatenate([starts, removed_starts])
            stops = np.concatenate([stops, removed_stops])
            new_texts += [b""] * len(removed_starts)
            # at the same position, a new line comes before a line that is removed
            order = np.argsort(starts, kind="stable")
            starts, stops = starts[order], stops[order]
            new_texts = [new_texts[index] for index in order.tolist()]
        begin, end = self.at, self.at + self.length  # of the last lines in the last text
        self.length = int(lengths.sum())
        if begin == end:
            return new_texts
        # one more unchanged part than new texts, which stand between them
        unchanged_begins = np.concatenate([[begin], begin + stops]).tolist()
        unchanged_ends = np.concatenate([begin + starts, [end]]).tolist()
        are_pieces_small = end - begin < _SMALL * len(unchanged_begins)
        source: Any = text if are_pieces_small else memoryview(text)
        unchanged_parts = map(source.__getitem__, map(slice, unchanged_begins, unchanged_ends))
        return chain.from_iterable(zip(unchanged_parts, chain(new_texts, (b"",)), strict=True))


class RowLines:
    """
    Writes the lines of a family that is read series by series.

    The start of a line is kept as long as its series exists.
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
        """Return the lines of a snapshot, and set ``length``; None if they are the same as the last ones."""
        rows = view.rows.get(self._family.name, [])
        names = label_names(self._family, view.snapshot)
        if (rows, names) == (self._rows, self._names):
            return None
        if names != self._names:
            self._names, self._starts = names, {}
            self._start = line_starts(self._family.name, names, self._cluster)
        last_starts, self._rows = self._starts, rows
        self._starts = {labels: last_starts.get(labels) or self._start(labels) for labels, _ in rows}
        # of rows with the same start, as two names may be escaped alike, the first has the line
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
    Writes the lines of a family of teams.

    Lines are kept as long as the teams are the same, and written again if their value changes.
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
        """Return the lines of a snapshot, and set ``length``; None if they are the same as the last ones."""
        sums = view.snapshot.teams
        if sums is None:
            if not self.length:
                return None
            self.length, self._names = 0, ()
            return (b"",)
        columns = view.team_columns[self._family]  # one, or one for each quota type
        values = columns[0][1] if len(columns) == 1 else np.concatenate([column for _, column in columns])
        # `_starts` has the same order as `values`: all teams of the first column, then of the second
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
    Return a function from label values to the start of a line: the end of the line before, the name and the labels.

    Labels are sorted by name, as prometheus_client sorts them.

    Args:
        family: The name of the family.
        labels: The names of the labels, in the order of the values.
        cluster: The value of a further label ``cluster``; None for no such label.

    """
    fixed = {} if cluster is None else {"cluster": _escaped(cluster).replace("%", "%%")}
    index_of = {name: index for index, name in enumerate(labels)}
    names = sorted({*labels, *fixed})
    indexes = [index_of[name] for name in names if name not in fixed]
    in_order = itemgetter(*indexes) if indexes else lambda _values: ()  # from label values to those sorted by name
    # a template for Python's operator %, with a place for each value: \nfamily{cluster="a",user="%s"}
    pairs = ",".join(f'{name}="{fixed.get(name, "%s")}"' for name in names)
    template = f"\n{family}{{{pairs}}} " if names else f"\n{family} "

    def start(values: Sequence[str]) -> bytes:
        text = "".join(values)
        if not (text.isascii() and text.isprintable()) or '"' in text or "\\" in text:
            values = list(map(_escaped, values))  # most values need no escape, and are not looked at one by one
        return (template % in_order(values)).encode()

    return start


def _escaped(label: str) -> str:
    """Return a label value with backslashes, quotes and line ends escaped."""
    text = encodable(label).replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace('"', '\\"')


def texts(values: Floats) -> list[bytes]:
    """
    Return the text of each number, as prometheus_client's ``floatToGoString`` writes it.

    The text is empty for NaN and infinities, which are not shown. -0 is written as 0.
    """
    if not values.size:
        return []
    joined = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    # Go's %g writes an exponent from 1e6 on, Python from 1e16 on: index in _EXPONENTS, 0 for none
    exponents = np.searchsorted(_POWERS, values, side="right")
    exponents[exponents == len(_POWERS)] = 0  # numbers with an exponent in Python, and NaN
    with_exponent = np.flatnonzero(exponents)
    if not with_exponent.size:
        number_texts = joined.split(b",")
    else:
        number_texts = _with_point_first(joined, with_exponent, exponents[with_exponent]).split(b",")
        # a whole number ends in zeros now, such as 1.50000000 for 15000000.0
        for index in with_exponent[values[with_exponent] % 1 == 0].tolist():
            number_texts[index] = number_texts[index].rstrip(b"0.")
        number_texts = list(map(add, number_texts, _EXPONENTS[exponents].tolist()))
    # 0, and positive numbers whose text is right by now; -0 is not among them
    is_usual = (values >= _SMALLEST) & (values < _POWERS[-1]) | (values.view(np.int64) == 0)
    for index in np.flatnonzero(~is_usual).tolist():
        number_texts[index] = _unusual_text(values.item(index), number_texts[index])
    return number_texts


def _with_point_first(joined: bytes, indexes: Rows, exponents: Rows) -> bytes:
    """
    Return numbers in which the decimal point of some is moved behind the first digit, as before an exponent.

    Args:
        joined: The numbers, joined by commas.
        indexes: The indexes of the numbers to change.
        exponents: The indexes of their exponents in ``_EXPONENTS``.

    """
    characters = np.frombuffer(joined, np.uint8).copy()
    begins = np.concatenate([[0], np.flatnonzero(characters == _COMMA) + 1])[indexes]
    for exponent in np.flatnonzero(np.bincount(exponents)).tolist():
        first_digits = begins[exponents == exponent, np.newaxis]
        # the digits between the first one and the point, which move by one place: `exponent` + 5 of them
        moved_digits = first_digits + np.arange(1, exponent + 6)
        characters[moved_digits + 1] = characters[moved_digits]
        characters[first_digits + 1] = _POINT
    return characters.tobytes()


def _unusual_text(value: float, json_text: bytes) -> bytes:
    """Return the text of a negative, tiny, huge or not finite number, from its text in JSON."""
    if value == 0:
        return b"0.0"
    mantissa, _, exponent = json_text.partition(b"e-")
    if 0 < value < _SMALLEST and exponent:
        # Prometheus writes at least two digits of an exponent
        return json_text if len(exponent) > 1 else mantissa + b"e-0" + exponent
    return repr(value).encode() if isfinite(value) else b""
