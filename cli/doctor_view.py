"""Findings of `quotascope doctor` and `quotascope status` in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.catalog import Catalog, Finding, FindingSeverity, is_all_clear, worst
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.untrusted import one_line

from .quotas.misnamed_view import connected

_MARKS: Final = {
    FindingSeverity.OK: ("✓ ok", "green"),
    FindingSeverity.NOTE: ("i note", "cyan"),
    FindingSeverity.WARNING: ("! warning", "yellow"),
    FindingSeverity.ERROR: ("✗ error", "bold red"),
}
_SUMMARY: Final = {
    FindingSeverity.OK: "Everything works.",
    FindingSeverity.NOTE: "Everything works.",
    FindingSeverity.WARNING: "It works, but shows less than it could, or will stop working soon.",
    FindingSeverity.ERROR: "Something does not work.",
}
_UNCERTAIN: Final = (
    "Nothing is wrong as far as agents show: they may leave clients out, or no client has sent requests."
)


def configuration_findings(error: ConfigError) -> list[Finding]:
    """Return the problems of a configuration that cannot be used."""
    return [Catalog.CONFIG_INVALID.found(error.subject, problem=problem) for problem in error.problems]


def with_connection(findings: Sequence[Finding], connection: Sequence[str]) -> list[Finding]:
    """Return the findings with commands that name the connection to Kafka."""
    return [replace(finding, commands=tuple(connected(finding.commands, connection))) for finding in findings]


def commands(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the commands of findings, a line for each: a table would wrap them."""
    for finding in findings:
        if finding.commands:
            yield f"\nFor {one_line(finding.subject)}:"
            yield from (f"  {command}" for command in finding.commands)


def as_json(findings: Sequence[Finding]) -> dict[str, object]:
    """Return the findings, and the worst severity among them, for programs."""
    return {
        "severity": worst(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def as_table(findings: Sequence[Finding]) -> RenderableType:
    """Return a row for each finding, and a sentence about all."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("found", overflow="fold")
    last_check = ""
    for finding in findings:
        mark, style = _MARKS[finding.severity]
        text = Text(one_line(finding.text))
        if finding.advice:
            text.append(f"\n→ {one_line(finding.advice)}", "italic")
        check = "" if finding.check == last_check else finding.check
        table.add_row(Text(mark, style), check, text)
        last_check = finding.check
    severity = worst(findings)
    summary = _UNCERTAIN if severity is FindingSeverity.NOTE and not is_all_clear(findings) else _SUMMARY[severity]
    return Group(table, Text(), Text(summary, "bold"))
