"""The page about alerts, and what it says about agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.alerts.expressions import RECORDED, selectors
from tests.alerts.specification import SPECIFIED, WINDOWS_OF_RECORDS
from tools.alerts_page import GAPS, Gap, alerts_page

from quotascope.alerts import Site
from quotascope.alerts.book import alerts

DIALECTS = Path(__file__).parents[2] / "docs" / "dialects.md"
UNREAD = {
    "waits of the controller's events",
    "idle request handlers as a ratio (all agents: as a counter)",
}
"""What no alert reads."""
EXPRESSIONS = {alert.name.removeprefix("KafkaQuota"): alert.expr for alert in alerts(Site())}


def _families(expression: str, known: frozenset[str] = frozenset()) -> set[str]:
    """What an expression reads in the end, recorded series followed to where they come from."""
    names = {str(selector.name) for selector in selectors(expression)} - known
    found = {name for name in names if name not in RECORDED}
    return found.union(*(_families(RECORDED[name].expr, known | names) for name in names - found))


def missing() -> dict[str, tuple[str, ...]]:
    """Each row of the documentation's table, and the dialects that lack it."""
    lines = DIALECTS.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    dialects = [name.strip("`") for name in rows[0]]
    return {
        what: tuple(d for d, cell in zip(dialects, cells, strict=False) if "no" in cell) for what, *cells in rows[1:]
    }


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap.what)
def test_every_alert_that_needs_it_is_named(gap: Gap) -> None:
    """An alert is silent or weaker where an agent does not report what it reads; the page about dialects agrees."""
    names = {family.name for family in gap.families}
    readers = {name for name, expr in EXPRESSIONS.items() if names & _families(expr)}
    assert {*gap.silent} <= readers <= {*gap.silent, *gap.weaker}
    assert {*gap.weaker} <= set(EXPRESSIONS)
    assert missing()[gap.what] == gap.dialects


def test_every_gap_is_reported() -> None:
    """Whatever the other page marks as missing is here, but what no alert reads, each with its row."""
    lacking = {what: dialects for what, dialects in missing().items() if dialects and what not in UNREAD}
    assert {*lacking} == {gap.what for gap in GAPS}
    rows = [line.split(" | ") for line in lines("What agents leave out", "| ")[1:]]
    shown = {what: ", ".join(f"`{name}`" for name in dialects) for what, dialects in lacking.items()}
    assert {row[0]: row[1] for row in rows} == shown


def lines(title: str, begin: str) -> list[str]:
    """The rows of a table, without its head, or the items of a list below a heading."""
    part = alerts_page().split(f"## {title}\n")[1].partition("\n## ")[0]
    return [line.removeprefix(begin) for line in part.splitlines() if line.startswith(begin)]


def test_every_alert_is_listed() -> None:
    """With its runbook, its severity and when it fires."""
    found = [line.partition(": ") for line in lines("All alerts", "- ")]
    assert [head for head, _, _ in found] == [
        f"[{name}](../alerts/runbooks/{name}.md) ({alert.severity})" for name, alert in SPECIFIED.items()
    ]
    assert all(summary for _, _, summary in found)


def test_recorded_series_are_listed() -> None:
    """Those that look back among them, and what each means."""
    found = [line.partition("`: ") for line in lines("Recorded series", "- ")]
    assert {*WINDOWS_OF_RECORDS} <= {name.strip("`") for names, _, _ in found for name in names.split(", ")}
    assert all(meaning for _, _, meaning in found)
    assert alerts_page().startswith("# Alerts\n")
