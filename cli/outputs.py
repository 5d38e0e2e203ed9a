"""Where a command writes what it was told to write."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EISDIR
from pathlib import Path
from typing import Annotated

import typer

STDOUT = Path("-")
"""Stands for standard output."""
_OUTPUTS = "What is written"

Html = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A page with plots that needs nothing else.",
        rich_help_panel=_OUTPUTS,
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The rows as CSV; - prints them.", rich_help_panel=_OUTPUTS
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="All of it as JSON; - prints it.",
        rich_help_panel=_OUTPUTS,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where results are written; without any of these, tables are shown."""

    html: Html = None
    csv: Csv = None
    json: Json = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """All three."""
        return self.html, self.csv, self.json


def printed(*files: Path | None) -> bool:
    """Whether one of the files is standard output, which then holds nothing else."""
    return STDOUT in files


def check(*files: Path | None) -> None:
    """
    See whether files can be written, before hours of work are done for them; nothing is left where nothing was.

    Raises ``FileNotWritten``.
    """
    from quotascope.pipeline.errors import FileNotWritten

    named = [file for file in files if file is not None]
    for file in named:
        if file != STDOUT:
            with _told(file):
                _try(file)
    twice = next((file for file in named if named.count(file) > 1), None)
    if twice is not None:
        raise FileNotWritten(f"{twice}: two outputs cannot be one file")


def put(file: Path | None, text: str) -> None:
    """
    Write a text as a whole or not at all, or print it for ``-``; a terminal gets no control characters, which names may hold.

    Raises ``FileNotWritten``; a file that was there before is then as it was.
    """
    if file is None:
        return
    if file == STDOUT:
        shown = _harmless(text) if sys.stdout.isatty() else text
        typer.echo(shown, nl=not text.endswith("\n"))
        return
    with _told(file):
        if file.exists() and not file.is_file():  # a pipe or /dev/stdout
            file.write_text(text, encoding="utf-8", errors="replace")
        else:
            _replace(file.resolve(), text)


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """A file that cannot be written is a message, not a traceback."""
    from quotascope.pipeline.errors import FileNotWritten

    try:
        yield
    except OSError as error:
        raise FileNotWritten(f"{file}: {error.strerror or error}") from error


def _try(file: Path) -> None:
    if file.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not file.exists():
        with _beside(file.resolve()):
            return
    if file.is_file():
        with file.open("ab"):
            return


def _replace(file: Path, text: str) -> None:
    with _beside(file) as part:
        part.write_text(text, encoding="utf-8", errors="replace")
        if file.exists():
            shutil.copymode(file, part)
        part.replace(file)


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """A new, empty file in the same folder, which is gone afterwards unless it got another name."""
    part = file.with_name(f".{file.name[:64]}.{os.getpid()}.part")
    part.touch(exist_ok=False)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _harmless(text: str) -> str:
    return "".join(
        char
        if char.isprintable() or char == "\n"
        else char.encode("unicode_escape").decode()
        for char in text
    )
