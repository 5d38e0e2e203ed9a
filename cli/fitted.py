"""Tables whose rows become blocks in a terminal that is too narrow for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

_NAME: Final = 16
"""Least width of a name, in columns of the terminal."""
_FIGURE: Final = 12
"""Least width of a figure that may be on two lines; Rich narrows the widest columns first."""
_LINES: Final = 3
"""Lines in a block for a cell that the table would cut."""


@dataclass(frozen=True, slots=True)
class Names:
    """
    Names on one line; those that do not fit are left out, and none is cut unless it is longer than the line.

    The texts around the names stay: they say what the names are, and which are unknown.
    """

    names: Sequence[str]
    before: str = ""
    """Words before the names, which have a line of their own if no name fits behind them."""
    behind: str = ""
    """Words behind the names, which have a line of their own if no name fits before them."""

    @property
    def whole(self) -> Text:
        """All names."""
        return Text(" ".join(filter(None, (self.before, ", ".join(self.names), self.behind))))

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the names that fit."""
        width = options.max_width
        shorter = (
            Names([*self.names[:count], "…"], self.before, self.behind) for count in range(len(self.names) - 1, 0, -1)
        )
        line = next((names.whole for names in (self, *shorter) if names.whole.cell_len <= width), None)
        if line is not None:
            yield line
        elif self.before:
            yield Text(self.before)
            yield Names(self.names, behind=self.behind)
        elif self.behind:
            yield Names(self.names)
            yield Text(self.behind, no_wrap=False, overflow="fold")
        else:
            yield Text(self.names[0] + (", …" if len(self.names) > 1 else ""))


@dataclass(frozen=True, slots=True)
class Fitted:
    """
    A table, or a block for each row if the table would cut figures.

    A block has the name of the row, and below it the other cells, with a colon behind their heads.
    """

    table: Table
    name: int = 0
    """Number of the column with the names of rows."""
    dense: bool = False
    """True if the table loses its lines before it becomes blocks."""
    narrow: RenderableType | None = None
    """Fewer columns that are shown in a narrow terminal in place of blocks."""

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or the blocks."""
        table = self.table
        padding = table.padding[1] + table.padding[3]
        width_of_cells = sum(_least_width(column) + padding for column in table.columns)
        width_of_lines = 0 if table.box is None else 1 + len(table.columns)
        if width_of_cells + width_of_lines <= options.max_width:
            yield table
            return
        if self.dense and width_of_cells <= options.max_width:
            table.box = None
            yield table
            return
        if self.narrow is not None:
            yield self.narrow
            return
        if table.title is not None:
            yield table.title
        for row in zip(*(column.cells for column in table.columns), strict=True):
            yield from self._block([_text(cell) for cell in row], options.max_width)
        if table.box is not None:
            yield ""  # like the end of the table
        if table.caption is not None:
            yield table.caption

    def _block(self, cells: Sequence[Text], width: int) -> Iterator[RenderableType]:
        """Yield the name of a row, and the other cells that are not empty, as many on a line as fit."""
        lines = [Text()]
        for column, cell in zip(self.table.columns, cells, strict=True):
            if column.no_wrap:
                cell.truncate(_LINES * width, overflow="ellipsis")
            if cell is cells[self.name]:
                yield cell
            elif cell:
                head = " ".join(_text(column.header).plain.split())
                words = [Text(f"{head}:")] if head else []
                entry = Text(" ").join([*words, *cell.split("\n")])
                if lines[-1] and lines[-1].cell_len + 3 + entry.cell_len > width - 2:
                    lines.append(Text())
                lines[-1] = Text("   ").join(filter(None, (lines[-1], entry)))
        yield Padding(Text("\n").join(lines), (0, 0, 0, 2))


def _text(cell: RenderableType) -> Text:
    """Return the text of a cell; an empty text for a drawing such as a bar."""
    if isinstance(cell, Names):
        cell = cell.whole
    if isinstance(cell, Text):
        text = cell
    else:
        text = Text(cell if isinstance(cell, str) else "")
    return Text("\n").join(text.split("\n"))


def _least_width(column: Column) -> int:
    """Return the least width of a column that shows figures in full, and enough of a name to recognize it."""
    if column.width is not None:
        return column.width
    texts = (_text(cell).plain for cell in (column.header, *column.cells))
    longest = max((cell_len(line) for text in texts for line in text.split("\n")), default=0)
    if column.no_wrap and column.ratio is None:
        return min(longest, column.max_width or longest)
    if column.justify == "right":
        return min(longest, _FIGURE)
    return max(column.min_width or 0, min(longest, _NAME, column.max_width or _NAME))
