"""How `quotascope doctor` and `quotascope status` show findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis import Catalog, Finding, FindingSeverity, worst
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.untrusted import one_line

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


def configuration_findings(error: ConfigError) -> list[Finding]:
    """The problems of a configuration that cannot be used."""
    return [Catalog.CONFIG_INVALID.found(error.subject, problem=problem) for problem in error.problems]


def as_json(findings: Sequence[Finding]) -> dict[str, object]:
    """The findings, and the worst severity among them."""
    return {
        "severity": worst(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def as_table(findings: Sequence[Finding]) -> RenderableType:
    """A row for each finding, and a sentence about all."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("found", overflow="fold")
    last = ""
    for finding in findings:
        mark, style = _MARKS[finding.severity]
        text = Text(one_line(finding.text))
        if finding.advice:
            text.append(f"\n→ {one_line(finding.advice)}", "italic")
        check = "" if finding.check == last else finding.check
        table.add_row(Text(mark, style), check, text)
        last = finding.check
    return Group(table, Text(), Text(_SUMMARY[worst(findings)], "bold"))
