"""Reports in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.pages.markup import head_of
from quotascope.pages.report import Block, Cell, Chart, Lines, Mark, Report, Rows, cut, turned

from .fitted import Fitted

_TURNED: Final = 4
"""Number of rows up to which rows become columns: 80 characters have room for four."""
_NAME: Final = 14
"""Least width of the name of a row, in characters."""
_WORD: Final = 10
"""Width of a column of words that is wider than `_WORDS`, if none of its words is longer than this."""
_WORDS: Final = 16
_STYLES: Final = {
    Mark.BETTER: "green",
    Mark.WORSE: "red",
    Mark.SAME: "",
    Mark.UP: "",
    Mark.DOWN: "",
    Mark.TOTAL: "bold",
}


def show(console: Console, report: Report) -> None:
    """Print a report; names in it are no markup, and lines for copying are not wrapped."""
    console.print(Text(report.title, style="bold"))
    console.print(Text(report.where, style="dim"))
    for sentence in report.headline:
        console.print(Text(sentence, style="bold"))
    for sentence in report.caveats:
        console.print(Text(sentence, style="yellow"))
    for block in report.blocks:
        for part in _parts(block):
            console.print(part, soft_wrap=isinstance(block, Lines) and block.copied)
    if report.notes:
        console.print()
    for note in report.notes:
        console.print(Text(f"• {note}", style="dim"))


def _parts(block: Block) -> Iterator[RenderableType]:
    """Yield what a terminal shows of a block: a chart as its rows, and nothing of details, which only pages have."""
    if isinstance(block, Chart):
        if block.rows is not None:
            yield from _parts(block.rows)
        return
    if block.detail or (isinstance(block, Rows) and not (block.rows or block.empty)):
        return
    yield Text(f"\n{block.title}" if block.title else "", style="bold")
    if isinstance(block, Lines):
        yield from (Text(line, style="dim" if block.faint else "") for line in block.lines)
    elif block.rows:
        yield _table(block)
    else:
        yield Text(block.empty)


def _table(block: Rows) -> Fitted:
    """Return the rows as a table, or as a block each if the terminal is too narrow."""
    block = block.filled()
    heads, rows, caption = cut(block, _TURNED if block.short else block.terminal_rows)
    if block.short:
        heads, rows = turned(heads, rows, block.short)
    kinds = [head_of(head)[0] for head in heads]
    cells = [[_text(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in rows]
    left_out = {place for place, head in enumerate(heads) if head in block.page_only}
    if block.below:  # a column whose cells stand below the names of the rows
        place = heads.index(block.below)
        left_out.add(place)
        heads[block.name] = f"{heads[block.name]}, {head_of(block.below)[1]}"
        for row in cells:
            row[block.name] = Text("\n ").join(filter(None, (row[block.name], row[place])))
    places = [place for place in range(len(heads)) if place not in left_out]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place in places:
        _add_column(table, heads[place], [row[place] for row in cells], is_name=place == block.name)
    for row in cells:
        table.add_row(*(row[place] for place in places))
    lines_below = [text for text in (caption, block.legend) if text]
    # untrusted names: a caption that is a str would be markup
    table.caption = Text("\n".join(lines_below)) if lines_below else None
    table.caption_justify = "left"
    return Fitted(table, name=places.index(block.name), dense=True)


def _add_column(table: Table, head: str, cells: Sequence[Text], *, is_name: bool) -> None:
    """Add a column: figures and words stay whole, names are folded. ``is_name`` is that of the names of the rows."""
    kind, name = head_of(head)
    longest = max((line.cell_len for cell in cells for line in cell.split("\n")), default=0)
    if kind == "name":
        min_width = min(_NAME, max(longest, len(name))) if is_name else None
        table.add_column(name, overflow="fold", min_width=min_width)
        return
    least_width = max(longest, *map(len, name.split()), 1)
    if kind == "number":
        table.add_column("\n".join(wrap(name, least_width)), justify="right", no_wrap=True)
        return
    if longest > _WORDS and all(len(word) <= _WORD for cell in cells for word in cell.plain.split()):
        table.add_column(name, max_width=_WORD)
        return
    table.add_column("\n".join(wrap(name, least_width)), no_wrap=True)


def _text(cell: str | Cell, kind: str) -> Text:
    """Return a cell as it is shown; words of a fixed vocabulary, such as causes of a failure, are below each other."""
    text = str(cell).replace(", ", "\n") if kind == "word" else str(cell)
    return Text(text, style=_STYLES[cell.mark] if isinstance(cell, Cell) else "")
