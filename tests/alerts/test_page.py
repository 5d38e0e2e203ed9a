"""The page about alerts says what the tables of the specification say."""

from __future__ import annotations

from tests.alerts.specification import SPECIFIED, THRESHOLDS, WINDOWS_OF_RECORDS
from tests.alerts.test_gaps import missing

from quotascope.alerts.page import alerts_page


def tables() -> dict[str, list[list[str]]]:
    """The rows of the table below each heading, without its own head."""
    made: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in alerts_page().splitlines():
        if line.startswith("## "):
            rows = made.setdefault(line.removeprefix("## "), [])
        elif line.startswith("| ") and not line.startswith("|---"):
            rows.append(line.replace("\\|", "¦").strip("| ").split(" | "))
    return {title: rows[1:] for title, rows in made.items() if rows}


def test_every_alert_has_its_row() -> None:
    """With its runbook, its severity and how long it waits."""
    rows = {row[0]: row[1:3] for row in tables()["All alerts"]}
    assert rows == {
        f"[{name}](../alerts/runbooks/{name}.md)": [
            alert.severity,
            f"{alert.wait}, keeps firing {alert.keep}" if alert.keep else alert.wait,
        ]
        for name, alert in SPECIFIED.items()
    }
    assert all(len(row) == 5 for row in tables()["All alerts"])


def test_every_threshold_has_its_row() -> None:
    """With its value and unit; each is of some alert."""
    rows = {row[0].strip("`"): row for row in tables()["Thresholds"]}
    found = {name: row[1] for name, row in rows.items()}
    assert found == {
        name: f"{value:g} {unit}" for name, (value, unit) in THRESHOLDS.items()
    }
    assert all(row[-1] for row in rows.values())
    assert rows["NEAR_LIMIT"][-1] == "NearLimit, LimitPredicted"
    assert rows["SPIKE_FACTOR"][-1] == "ThrottleSpike"


def test_what_agents_leave_out_has_its_rows() -> None:
    """As the page about dialects has them."""
    rows = {row[0]: row[1] for row in tables()["What agents leave out"]}
    lacking = {what: dialects for what, dialects in missing().items() if dialects}
    del lacking["waits of the controller's events"]
    assert rows == {
        what: ", ".join(f"`{name}`" for name in dialects)
        for what, dialects in lacking.items()
    }


def test_recorded_series_have_their_rows() -> None:
    """Those that look back among them, and what each means."""
    rows = {row[0].strip("`"): row[1] for row in tables()["Recorded series"]}
    assert {*WINDOWS_OF_RECORDS} <= {*rows}
    assert all(rows.values())
    assert alerts_page().startswith("# Alerts\n")
