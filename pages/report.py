"""
A report as a value, and its forms as a page and as CSV.

Each question has one function that makes a `Report` of the answer. `html` writes it as a page, `quotascope.cli.report`
in a terminal: neither adds a word of its own, so both say the same.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from xml.etree.ElementTree import Element

from .charts import share_bar
from .markup import BAR, Child, element, framed, head_of, scrolling, table
from .words import shown, text_cell

PAGE_ROWS: Final = 100
"""Number of rows of a table on a page."""
TERMINAL_ROWS: Final = 20
"""Number of rows of a table in a terminal."""
_TURNED_ON_PAGE: Final = 6
"""Number of rows up to which a page shows rows as columns."""
_LONGEST_LINE: Final = 100_000
"""Number of characters of a line that readers copy."""


class Mark(StrEnum):
    """The look of a cell; the value is its class on a page."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UP = "up"
    DOWN = "down"
    TOTAL = "total"
    """The sum of the rows below it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with a look."""

    text: str
    mark: Mark

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table with its title. Cells are safe to show (`words.shown`)."""

    heads: Sequence[str]
    """Heads of the columns, with the prefixes of `markup.head_of`."""
    rows: Sequence[Sequence[str | Cell]]
    title: str = ""
    level: int = 2
    """Level of the heading on a page, 2 or 3."""
    empty: str = ""
    """A sentence in place of a table without rows; without it, the block is left out."""
    legend: str = ""
    """A sentence below the table."""
    shares: Sequence[float | None] = ()
    """Share of each row, 0 to 1, which a page draws as a bar before the first column of numbers; None for no bar."""
    color: str = "var(--c0)"
    """Color of these bars."""
    page_only: Sequence[str] = ()
    """Heads of columns for which a terminal has no room."""
    terminal_rows: int = TERMINAL_ROWS
    """Number of rows in a terminal."""
    page_rows: int = PAGE_ROWS
    """Number of rows on a page."""
    name: int = 0
    """Number of the column that identifies a row."""
    below: str = ""
    """Head of a column that a terminal shows below the name of its row."""
    short: Sequence[str] = ()
    """The head of each row, where rows are shown as columns: in a terminal, and on a page if they are few."""
    folded: bool = False
    """True if a page shows the table only when its title is clicked."""
    detail: bool = False
    """True if only a page has room for the block."""

    def filled(self) -> Rows:
        """Return the table without the columns that have a text in no row; what is unknown has one."""
        places = [place for place, _ in enumerate(self.heads) if any(str(row[place]) for row in self.rows)]
        return replace(
            self,
            heads=[self.heads[place] for place in places],
            rows=[[row[place] for place in places] for row in self.rows],
            name=places.index(self.name) if self.name in places else 0,
            below=self.below if self.below in {self.heads[place] for place in places} else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Sentences, or lines that readers copy."""

    lines: Sequence[str]
    title: str = ""
    level: int = 2
    copied: bool = False
    """True if readers copy the lines: a terminal does not wrap them."""
    faint: bool = False
    detail: bool = False
    """True if only a page has room for the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Drawings of a page, and the rows that a terminal shows in their place."""

    elements: Sequence[Element]
    """SVG elements and their explanations."""
    title: str = ""
    level: int = 2
    rows: Rows | None = None
    """Rows of a terminal; without them, it leaves the chart out."""
    folded: bool = False
    """True if a page shows the chart only when its title is clicked."""


Block = Rows | Lines | Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to a question, with all words that a reader sees."""

    title: str
    where: str
    """Origin and period of the figures (`words.period`)."""
    headline: Sequence[str] = ()
    """The answer, as sentences."""
    caveats: Sequence[str] = ()
    """Gaps in the figures, a sentence or two each."""
    blocks: Sequence[Block] = ()
    notes: Sequence[str] = ()
    """Facts about the figures that a reader needs, a sentence or two each."""
    chart_notes: Sequence[str] = ()
    """Notes about parts that only a page shows."""


def html(report: Report) -> str:
    """Return a report as a page that needs no other file; untrusted names are nothing but text in it."""
    return framed(report.title, _sections(report))


def csv_of(names: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """
    Write records as CSV with a head.

    Args:
        names: of the columns.
        records: the rows. Keys that are no column are left out. Text is written by `words.text_cell`; None and missing
            values are empty.

    """
    sink = io.StringIO()
    writer = csv.DictWriter(sink, names, lineterminator="\n")
    writer.writeheader()
    for record in records:
        cells = ((name, record.get(name)) for name in names)
        writer.writerow({name: text_cell(cell) if isinstance(cell, str) else cell for name, cell in cells})
    return sink.getvalue()


def _sections(report: Report) -> Iterator[Element]:
    yield element("h1", report.title)
    yield element("p", report.where, class_="where")
    for sentence in report.headline:
        yield element("p", sentence, class_="headline")
    if report.caveats:
        yield _items(report.caveats)
    for block in report.blocks:
        yield from _block(block)
    if notes := (*report.notes, *report.chart_notes):
        yield _items(notes)


def _items(sentences: Iterable[str]) -> Element:
    return element("ul", *(element("li", sentence) for sentence in sentences))


def _block(block: Block) -> Iterator[Element]:
    if isinstance(block, Rows):
        yield from _rows(block)
        return
    if isinstance(block, Chart) and block.folded:
        heading = element(f"h{block.level}", block.title)
        yield element("details", element("summary", heading), *scrolling(block.elements))
        return
    if block.title:
        yield element(f"h{block.level}", block.title)
    if isinstance(block, Chart):
        yield from block.elements
    elif block.copied:
        yield element("pre", "\n".join(shown(line, _LONGEST_LINE) for line in block.lines))
    else:
        yield from (element("p", line, **({"class_": "where"} if block.faint else {})) for line in block.lines)


def _rows(block: Rows) -> Iterator[Element]:
    if not (block.rows or block.empty):
        return
    heading = element(f"h{block.level}", block.title)
    content = list(_table(block))
    if block.folded and block.rows:
        yield element("details", element("summary", heading), *content)
        return
    if block.title:
        yield heading
    yield from content


def _table(block: Rows) -> Iterator[Element]:
    if not block.rows:
        yield element("p", block.empty)
        return
    block = block.filled()
    heads, rows, caption = cut(block, block.page_rows)
    if block.short and len(rows) <= _TURNED_ON_PAGE:
        heads, rows = turned(heads, rows, block.short)
    cells: list[list[Child]] = [[_child(cell) for cell in row] for row in rows]
    if block.shares:
        place = next(place for place, head in enumerate(heads) if head_of(head)[0] == "number")
        heads.insert(place, BAR)
        for row, share in zip(cells, block.shares, strict=False):
            row.insert(place, "" if share is None else share_bar(share, block.color))
    yield table(heads, cells, caption)
    if block.legend:
        yield element("p", block.legend, class_="where")


def cut(block: Rows, max_rows: int) -> tuple[list[str], list[list[str | Cell]], str]:
    """Return the heads, the first `max_rows` rows, and a caption with the number of rows left out, if any."""
    more = len(block.rows) - max_rows
    caption = f"and {more:,} more: --json has all" if more > 0 else ""
    return list(block.heads), [list(row) for row in block.rows[:max_rows]], caption


def turned(
    heads: Sequence[str], rows: Sequence[Sequence[str | Cell]], short: Sequence[str]
) -> tuple[list[str], list[list[str | Cell]]]:
    """
    Return heads and rows with a column for each row.

    >>> turned(["candidate", "#limited"], [["tight", "3"], ["wide", "0"]], ["A", "B"])
    (['', '#A', '#B'], [['limited', '3', '0']])
    """
    names = ["", *(f"#{name}" for name, _ in zip(short, rows, strict=False))]
    lines = [[head_of(head)[1], *(row[place] for row in rows)] for place, head in enumerate(heads) if place]
    return names, lines


def _child(cell: str | Cell) -> Child:
    if isinstance(cell, str) or not cell.text:
        return str(cell)
    return element("b", cell.text) if cell.mark is Mark.TOTAL else element("span", cell.text, class_=cell.mark.value)
