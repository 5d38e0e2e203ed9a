"""The page about alerts, and what it says about agents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.alerts.expressions import RECORDED, selectors
from tools.alerts_page import CORE_REASONS, GAPS, GapOfAlerts, alerts_page

from quotascope.alerts import Site
from quotascope.alerts.render import alerts, profiles_of
from quotascope.alerts.settings import Profile

DIALECTS = Path(__file__).parents[2] / "docs" / "start" / "dialects.md"
UNREAD = {
    "waits of the controller's events",
    "idle request handlers as a ratio (every agent has the counter)",
}
"""Rows of the table that no alert needs."""
ALERTS = {rule["alert"]: rule for rule in alerts(Site(profile=Profile.ALL))}
EXPRESSIONS = {name.removeprefix("KafkaQuota"): rule["expr"] for name, rule in ALERTS.items()}


def _families(expression: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Return the scraped families that an expression reads, itself or through recorded series."""
    names = {str(selector.name) for selector in selectors(expression)} - seen
    scraped = {name for name in names if name not in RECORDED}
    return scraped.union(*(_families(RECORDED[name]["expr"], seen | names) for name in names - scraped))


def missing() -> dict[str, tuple[str, ...]]:
    """Return the rows of the documentation's table, and the dialects that lack them, in the order of detection."""
    page = DIALECTS.read_text(encoding="utf-8")
    table = page[page.index("\n| ") + 1 :].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    dialects = [name.strip("`") for name in rows[0]]
    return {
        what: tuple(d for d, cell in zip(dialects, cells, strict=False) if "no" in cell) for what, *cells in rows[1:]
    }


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap.what)
def test_every_alert_that_needs_it_is_named(gap: GapOfAlerts) -> None:
    """Alerts that an agent's gap makes silent or weaker are listed; the page about dialects has the same gaps."""
    names = {family.name for family in gap.families}
    readers = {name for name, expr in EXPRESSIONS.items() if names & _families(expr)}
    assert {*gap.silent} <= readers <= {*gap.silent, *gap.weaker}
    assert {*gap.weaker} <= set(EXPRESSIONS)
    assert missing()[gap.what] == gap.dialects


def test_every_gap_is_reported() -> None:
    """Each gap on the page about dialects that affects an alert has a row."""
    lacking = {what: dialects for what, dialects in missing().items() if dialects and what not in UNREAD}
    assert {*lacking} == {gap.what for gap in GAPS}
    rows = [line.split(" | ") for line in lines("What agents leave out", "| ")[1:]]
    gaps = {what: [f"`{name}`" for name in dialects] for what, dialects in lacking.items()}
    assert {row[0]: row[1].split(", ") for row in rows} == gaps


def lines(title: str, begin: str) -> list[str]:
    """Return the rows of a table, without its head, or the items of a list below a heading."""
    part = alerts_page().split(f"## {title}\n")[1].partition("\n## ")[0]
    return [line.removeprefix(begin) for line in part.splitlines() if line.startswith(begin)]


def test_every_alert_is_listed() -> None:
    """Each alert is listed with its runbook, its severity and its summary."""
    alerts_listed = [
        re.fullmatch(r"(\S+ \(\w+\))(?:, (?:only )?\*core\*)?: (.+)", line) for line in lines("All alerts", "- ")
    ]
    assert [match and match[1] for match in alerts_listed] == [
        f"[{name}](../../alerts/runbooks/{name}.md) ({rule['labels']['severity']})" for name, rule in ALERTS.items()
    ]


def test_every_alert_of_the_core_profile_has_a_reason() -> None:
    """Each alert of the core has a reason on the page; alerts on budgets, which objectives explain, need none."""
    core = {name.removeprefix("KafkaQuota") for name in ALERTS if Profile.CORE in profiles_of(name)}
    assert {name for name in core if not name.startswith("BudgetBurns")} == {*CORE_REASONS}
    names = [line.partition("`: ")[0].strip("`") for line in lines("Profiles", "- ")]
    assert names == [f"KafkaQuota{name}" for name in CORE_REASONS]


def test_recorded_series_are_listed() -> None:
    """Each recorded series is listed with its meaning."""
    series = [line.partition("`: ") for line in lines("Recorded series", "- ")]
    assert {*RECORDED} == {name.strip("`") for names, _, _ in series for name in names.split(", ")}
    assert all(meaning for _, _, meaning in series)
    assert alerts_page().startswith("# Alerts\n")
