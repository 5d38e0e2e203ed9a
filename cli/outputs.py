"""Files and JSON that a command writes, and the bar that it shows meanwhile."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated

import typer

from quotascope.pages import files

from . import options

STDOUT = Path("-")
"""Stands for standard output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where results are written; without any of these, tables are shown."""

    html: options.Html = None
    csv: Annotated[Path | None, options.output_option(metavar="FILE", help="The rows as CSV; - prints them.")] = None
    json: options.Json = False
    json_file: Annotated[Path | None, options.output_option(metavar="FILE", help="The same JSON in a file.")] = None

    @property
    def documents(self) -> tuple[Path, ...]:
        """The files for JSON; standard output with ``--json``."""
        printed = (STDOUT,) if self.json else ()
        return printed if self.json_file is None else (*printed, self.json_file)

    @property
    def files(self) -> tuple[Path | None, ...]:
        """All of them."""
        return self.html, self.csv, *self.documents


def printed(*outputs: Path | None) -> bool:
    """Whether one of the files is standard output, which then holds nothing else."""
    return STDOUT in outputs


def check(*outputs: Path | None) -> None:
    """
    See whether files can be written, before hours of work are done for them; nothing is left where nothing was.

    Raises ``FileNotWritten``.
    """
    from quotascope.pipeline.errors import FileNotWritten

    named = [file for file in outputs if file is not None]
    for file in named:
        if file != STDOUT:
            with reported():
                files.check(file)
    twice = next((file for file in named if named.count(file) > 1), None)
    if twice is not None:
        raise FileNotWritten(f"{twice}: two outputs cannot be one file")


def put(file: Path | None, content: files.Content) -> None:
    """
    Write a file as a whole or not at all, or print a text for ``-``; a terminal gets no control characters, which names may hold.

    Raises ``FileNotWritten``; a file that was there before is then as it was.
    """
    if file is None:
        return
    if file == STDOUT and isinstance(content, str):
        shown = content
        if sys.stdout.isatty():
            shown = "".join(
                char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
                for char in content
            )
        typer.echo(shown, nl=not content.endswith("\n"))
        return
    put_all({file: content})


def put_all(contents: Mapping[Path, files.Content]) -> None:
    """Write several files, none of them when one cannot be written. Raises ``FileNotWritten``."""
    with reported():
        files.put_all(contents)


def put_json(document: object, file: Path = STDOUT, indent: int | None = 2) -> None:
    """
    Write values as JSON.

    It has no infinity, which a quota may be (Kafka up to 4.3 stores it): that is `"Infinity"`. NaN is null, as what is unknown.

    Raises ``FileNotWritten``.
    """
    put(file, json.dumps(_finite(document), allow_nan=False, indent=indent, default=date.isoformat))


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if not isinstance(value, float) or isfinite(value):
        return value
    return None if isnan(value) else "Infinity" if value > 0 else "-Infinity"


@contextmanager
def reported() -> Iterator[None]:
    """A file that cannot be written is a message, not a traceback. Raises ``FileNotWritten``."""
    from quotascope.pipeline.errors import FileNotWritten

    try:
        yield
    except OSError as error:
        raise FileNotWritten(f"{error.filename} cannot be written: {error.strerror}") from error


@contextmanager
def bar(name: str, first: str = "") -> Iterator[Callable[[int, int], None]]:
    """
    Show a bar on standard error until the block ends; nothing where that is no terminal.

    What it gives is called with the part that is done, and the whole. Before its first call a moving bar has the name of what comes ``first``.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(first or name, total=None)
        yield lambda done, total: progress.update(task, description=name, completed=done, total=total)
