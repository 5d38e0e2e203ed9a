"""How `quotascope doctor` shows what it found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.doctor import Result, Verdict, worst
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.untrusted import one_line

_MARKS: Final = {
    Verdict.FINE: ("✓ fine", "green"),
    Verdict.NOTE: ("i note", "cyan"),
    Verdict.LOOK: ("! look", "yellow"),
    Verdict.BROKEN: ("✗ broken", "bold red"),
}
_SUMMARY: Final = {
    Verdict.FINE: "Everything works.",
    Verdict.NOTE: "Everything works.",
    Verdict.LOOK: "It works; something shows less than it could, or not for long.",
    Verdict.BROKEN: "Something does not work.",
}


def broken_configuration(error: ConfigError) -> list[Result]:
    """What is told when there is no configuration to try."""
    return [
        Result(
            check="configuration",
            subject=error.subject,
            verdict=Verdict.BROKEN,
            text=problem,
            advice="`quotascope config example` prints every key with what it means.",
        )
        for problem in error.problems
    ]


def show(results: Sequence[Result], *, as_json: bool) -> None:
    """Print them on standard output."""
    if as_json:
        typer.echo(document(results))
    else:
        Console().print(view(results))


def document(results: Sequence[Result]) -> str:
    """The results as JSON."""
    listed = [
        {
            "check": each.check,
            "subject": each.subject,
            "verdict": each.verdict.value,
            "text": each.text,
            "advice": each.advice,
        }
        for each in results
    ]
    whole = {"verdict": worst(results).value, "results": listed}
    return json.dumps(whole, indent=2)


def view(results: Sequence[Result]) -> RenderableType:
    """A table, and the whole in one line."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("found", overflow="fold")
    last = ""
    for each in results:
        mark, style = _MARKS[each.verdict]
        check = "" if each.check == last else each.check
        table.add_row(Text(mark, style), check, Text("\n").join(_lines(each)))
        last = each.check
    return Group(table, Text(), Text(_SUMMARY[worst(results)], "bold"))


def _lines(result: Result) -> Iterator[Text]:
    subject = (f"{one_line(result.subject)}: ", "bold") if result.subject else ""
    yield Text.assemble(subject, one_line(result.text))
    if result.advice:
        yield Text(f"→ {one_line(result.advice)}", "italic")
