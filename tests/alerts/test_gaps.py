"""Which alerts have no data with which agents: as the rules are, and as the agents are known to be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.alerts.expressions import selectors
from tests.alerts.labels import RECORDED

from quotascope.alerts import Site
from quotascope.alerts.book import alerts
from quotascope.alerts.page import GAPS, Gap

DIALECTS = Path(__file__).parents[2] / "docs" / "dialects.md"
EXPRESSIONS = {
    alert.name.removeprefix("KafkaQuota"): alert.expr for alert in alerts(Site())
}


def _families(expression: str) -> set[str]:
    """What an expression reads in the end, recorded series followed to where they come from."""
    names = {str(selector.name) for selector in selectors(expression)}
    found = {name for name in names if name not in RECORDED}
    return found.union(*(_families(RECORDED[name].expr) for name in names - found))


def missing() -> dict[str, tuple[str, ...]]:
    """Each row of the documentation's table, and the dialects that lack it."""
    lines = DIALECTS.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    dialects = [name.strip("`") for name in rows[0]]
    return {
        what: tuple(d for d, cell in zip(dialects, cells, strict=False) if "no" in cell)
        for what, *cells in rows[1:]
    }


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap.what)
def test_every_alert_that_needs_it_is_named(gap: Gap) -> None:
    """An alert that reads what an agent does not tell is silent or weaker there."""
    names = {family.name for family in gap.families}
    readers = {name for name, expr in EXPRESSIONS.items() if names & _families(expr)}
    assert readers <= {*gap.silent, *gap.weaker}
    assert {*gap.silent} <= readers
    assert {*gap.weaker} <= set(EXPRESSIONS)


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap.what)
def test_dialects_are_those_of_the_documentation(gap: Gap) -> None:
    """The page about alerts and the one about dialects say the same."""
    assert missing()[gap.what] == gap.dialects


def test_every_gap_is_told() -> None:
    """Whatever the other page marks as missing is here; no alert is about the controller's events."""
    told = {what for what, dialects in missing().items() if dialects}
    assert told - {"waits of the controller's events"} == {gap.what for gap in GAPS}
