"""The help of the whole command line: as typer's of a command, without the time that the import of rich takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from shutil import get_terminal_size
from textwrap import wrap
from typing import Final

_NARROWEST: Final = 40
_BOLD: Final = "\x1b[1m"
_NAME: Final = "\x1b[1;36m"
_DIM: Final = "\x1b[2m"
_END: Final = "\x1b[0m"

_PLAIN: Final = str.maketrans("─│╭╮╰╯…", "-|++++.")

Rows = Iterable[tuple[str, str]]


def help_text(usage: str, text: str, panels: Mapping[str, Rows], *, encoding: str) -> str:
    """
    Return a help as wide as the terminal, with escape sequences for colors unless the environment has ``NO_COLOR``.

    Typer removes them where the output is no terminal.

    Args:
        usage: the line behind ``Usage:``.
        text: text about what the program does.
        panels: names with their texts, by the title of the panel.
        encoding: encoding of the output; one without characters for boxes gets other lines.

    """
    width = max(_NARROWEST, get_terminal_size().columns)
    bold, name, dim, end = (_BOLD, _NAME, _DIM, _END) if not os.environ.get("NO_COLOR") else ("",) * 4
    lines = ["", f" {bold}Usage:{end} {usage}", "", *(f" {line}" for line in wrap(text, width - 2)), ""]
    rows_by_title = {title: list(rows) for title, rows in panels.items()}
    longest = max(len(left) for rows in rows_by_title.values() for left, _ in rows)
    for title, rows in rows_by_title.items():
        lines.append(_top(title, width, dim, end))
        for left, right in rows:
            for place, line in enumerate(wrap(right, width - longest - 6) or [""]):
                label = left if place == 0 else ""
                lines.append(f"{dim}│{end} {name}{label:<{longest}}{end}  {line:<{width - longest - 6}} {dim}│{end}")
        lines.append(f"{dim}╰{'─' * (width - 2)}╯{end}")
    drawn = "\n".join((*lines, ""))
    try:
        drawn.encode(encoding)
    except UnicodeEncodeError:
        return drawn.translate(_PLAIN)
    return drawn


def _top(title: str, width: int, dim: str, end: str) -> str:
    longest = width - 6
    title = title if len(title) <= longest else f"{title[: longest - 1]}…"
    return f"{dim}╭─{end} {title} {dim}{'─' * (width - len(title) - 5)}╮{end}"
