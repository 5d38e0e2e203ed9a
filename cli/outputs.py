"""Files and JSON of commands, and the bar of their progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .errors import FileNotWritten

if TYPE_CHECKING:
    from quotascope.pages import files
    from quotascope.pages.report import Report

STDOUT = Path("-")
"""Path that stands for standard output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Files for the answer to a question; unless one of these is standard output, the report is shown."""

    html: options.Html = None
    csv: Annotated[Path | None, options.output_option(metavar="FILE", help="The rows as CSV; - prints them.")] = None
    json: options.Json = False
    json_file: Annotated[Path | None, options.output_option(metavar="FILE", help="The same JSON in a file.")] = None

    @property
    def documents(self) -> tuple[Path, ...]:
        """Files for JSON; standard output with ``--json``."""
        printed = (STDOUT,) if self.json else ()
        return printed if self.json_file is None else (*printed, self.json_file)

    @property
    def files(self) -> tuple[Path | None, ...]:
        """All files."""
        return self.html, self.csv, *self.documents


def write(
    results: Results,
    *other_files: Path | None,
    report: Callable[[], Report],
    document: Callable[[], object],
    csv: Callable[[], str],
) -> None:
    """
    Write the answer to a question in each requested form, and show the report unless one of them is printed.

    Args:
        results: the files.
        other_files: other files of the command, one of which may be standard output.
        report: makes the report.
        document: makes the JSON.
        csv: makes the CSV.

    Raises:
        FileNotWritten: a file cannot be written.

    """
    if results.html is not None:
        from quotascope.pages.report import html

        put(results.html, html(report()))
    if results.csv is not None:
        put(results.csv, csv())
    for file in results.documents:
        put_json(document(), file)
    if not is_printed(*results.files, *other_files):
        from rich.console import Console

        from .report import show

        show(Console(), report())


def is_printed(*outputs: Path | None) -> bool:
    """Return whether one of the files is standard output, which then has nothing else."""
    return STDOUT in outputs


def check(*outputs: Path | None) -> None:
    """
    Check that files can be written, before hours of work are done for them; no file is created.

    Raises ``FileNotWritten``.
    """
    from quotascope.pages import files

    named = [file for file in outputs if file is not None]
    for file in named:
        if file != STDOUT:
            with report_failures():
                files.check(file)
    twice = next((file for file in named if named.count(file) > 1), None)
    if twice is not None:
        raise FileNotWritten(f"{twice}: two outputs cannot be one file")


def put(file: Path | None, content: files.Content) -> None:
    """
    Write a file completely or not at all, or print a text for ``-``.

    A terminal gets no control characters, which names may have. Raises ``FileNotWritten``; an existing file is then
    unchanged.
    """
    if file is None:
        return
    if file == STDOUT and isinstance(content, str):
        text = content
        if sys.stdout.isatty():
            text = "".join(
                char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
                for char in content
            )
        typer.echo(text, nl=not content.endswith("\n"))
        return
    put_all({file: content})


def put_all(contents: Mapping[Path, files.Content]) -> None:
    """Write several files, or none if one cannot be written. Raises ``FileNotWritten``."""
    from quotascope.pages import files

    with report_failures():
        files.put_all(contents)


def put_json(document: object, file: Path = STDOUT, indent: int | None = 2) -> None:
    """
    Write values as JSON.

    JSON has no infinity, which a quota may be (Kafka up to 4.3 stores it): it becomes `"Infinity"`. NaN becomes null.

    Raises ``FileNotWritten``.
    """
    put(file, json.dumps(_finite(document), allow_nan=False, indent=indent, default=date.isoformat))


def _finite(value: object) -> object:
    """Return a value with texts in place of infinity, and None in place of NaN, at any depth."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if not isinstance(value, float) or isfinite(value):
        return value
    if isnan(value):
        return None
    return "Infinity" if value > 0 else "-Infinity"


@contextmanager
def report_failures() -> Iterator[None]:
    """Raise ``FileNotWritten``, with a message for users, if the block cannot write a file."""
    try:
        yield
    except OSError as error:
        raise FileNotWritten(f"{error.filename} cannot be written: {error.strerror}") from error


@contextmanager
def bar(name: str, initial_name: str = "") -> Iterator[Callable[[int, int], None]]:
    """
    Show a bar on standard error until the block ends, if it is a terminal.

    It yields a function of the completed part and the total. Before the first call, a moving bar has ``initial_name``.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(initial_name or name, total=None)
        yield lambda done, total: progress.update(task, description=name, completed=done, total=total)
