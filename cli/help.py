"""The help of all commands: as typer's, without the time that the import of rich takes, and without cut words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from shutil import get_terminal_size
from textwrap import wrap
from typing import Final

_NARROWEST: Final = 40
_BOLD: Final = "\x1b[1m"
_NAME: Final = "\x1b[1;36m"
_DIM: Final = "\x1b[2m"
_END: Final = "\x1b[0m"

_PLAIN: Final = str.maketrans("─│╭╮╰╯…", "-|++++.")
_COMMAND: Final = re.compile(r"(?:[A-Z_]+=\S+ |[a-z]+ .*\| )?(?:quotascope|spark-submit) ")
"""Pattern of the beginning of a line that readers copy."""
_WORD: Final = r"""(?:[^\s"']|"[^"]*"|'[^']*')+"""
_ARGUMENT: Final = re.compile(rf"#.*|(?:-\S+|\|) (?![-|>]){_WORD}|{_WORD}")
"""Pattern of a word of a shell, of an option or a pipe with the word behind it, or of a comment."""

Rows = Iterable[tuple[str, str]]


def help_text(usage: str, text: str, panels: Mapping[str, Rows], *, encoding: str, end: str = "") -> str:
    """
    Return a help as wide as the terminal, with escape sequences for colors unless the environment has ``NO_COLOR``.

    Typer removes them where the output is no terminal. No word is cut; a command that is longer than a line goes on
    behind a backslash, so that it can be copied.

    Args:
        usage: the line behind ``Usage:``.
        text: paragraphs about what the program does.
        panels: names with their texts, by the title of the panel.
        encoding: encoding of the output; one without characters for boxes gets other lines.
        end: paragraphs below the panels, which may be commands.

    """
    width = max(_NARROWEST, get_terminal_size().columns)
    bold, name, dim, off = (_BOLD, _NAME, _DIM, _END) if not os.environ.get("NO_COLOR") else ("",) * 4
    first, *others = _folded(usage, width - 9)
    lines = ["", f" {bold}Usage:{off} {first}", *(f"        {line}" for line in others)]
    lines += _paragraphs(text, width - 2)
    lines.append("")
    rows_by_title = {title: list(rows) for title, rows in panels.items()}
    longest = _names_width((left for rows in rows_by_title.values() for left, _ in rows), width)
    for title, rows in rows_by_title.items():
        is_short = len(title) <= width - 6
        if is_short:
            lines.append(f"{dim}╭─{off} {title} {dim}{'─' * (width - len(title) - 5)}╮{off}")
        else:
            lines.append(f"{dim}╭{'─' * (width - 2)}╮{off}")
            lines += (f"{dim}│{off} {line:<{width - 4}} {dim}│{off}" for line in _folded(title, width - 4))
        for left, right in rows:
            for label, line in _row(left, right, longest, width - 4):
                lines.append(f"{dim}│{off} {name}{label}{off}{line:<{width - 4 - len(label)}} {dim}│{off}")
        lines.append(f"{dim}╰{'─' * (width - 2)}╯{off}")
    lines += _paragraphs(end, width - 2)
    drawn = "\n".join((*lines, ""))
    try:
        drawn.encode(encoding)
    except UnicodeEncodeError:
        return drawn.translate(_PLAIN)
    return drawn


def _names_width(names: Iterable[str], width: int) -> int:
    """Return the width of the column of names; a name that is longer has a line of its own."""
    return max((len(name) for name in names if len(name) <= width * 2 // 5), default=0)


def _row(name: str, text: str, longest: int, width: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of a name and its text: the name's part, and the rest."""
    indent = longest + 2
    if any(len(word) > width - indent for word in text.split()):
        indent = 4  # such as an address
    lines = _folded(text, width - indent) or [""]
    if len(name) + 2 > indent:
        first, *others = _folded(name, width)
        yield first, ""
        yield from ((other, "") for other in others)
    else:
        yield f"{name:<{indent}}", lines.pop(0)
    yield from ((" " * indent, line) for line in lines)


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """Yield the lines of paragraphs, with an empty one before each."""
    for paragraph in filter(None, map(str.strip, text.split("\n\n"))):
        yield ""
        lines = _continued if _COMMAND.match(paragraph) else _folded
        yield from (f" {line}" for line in lines(paragraph, width))


def _continued(command: str, width: int) -> list[str]:
    r"""
    Return a command on lines that a shell joins.

    >>> _continued("quotascope explain --user 'the sales' --json", 26)
    ['quotascope explain \\', "    --user 'the sales' \\", '    --json']
    """
    lines = [""]
    for word in _ARGUMENT.findall(command):
        if lines[-1].strip() and len(lines[-1]) + len(word) + 3 > width:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def _folded(text: str, width: int) -> list[str]:
    """Return text on lines; only a word that is longer than a line is broken."""
    return wrap(" ".join(text.split()), width, break_on_hyphens=False)
