"""What `quotascope status` and `quotascope doctor` show of untrusted names, and how `doctor` ends."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from tests.cli.conftest import Run
from tests.cli.usages import rendered, usage_of
from tests.exporter.examples import health, snapshot, usage
from tests.strategies import texts

from quotascope.cli import doctor
from quotascope.cli.doctor_view import as_json, as_table
from quotascope.cli.status_view import view
from quotascope.exporter.diagnosis import Finding, FindingSeverity
from quotascope.exporter.snapshot import EntityUsage, Folds
from quotascope.metrics import QuotaType

WIDTHS = [80, 100, 160, 250]


def lines(width: int, *entities: EntityUsage) -> list[str]:
    """The table of entities with its header."""
    text = rendered(view(snapshot(*entities), [], 10), width)
    whole = [line.rstrip() for line in text.splitlines()]
    return whole[whole.index(next(line for line in whole if "usage / limit" in line)) :]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_name_leaves_room_for_the_numbers(width: int) -> None:
    """One client with ten thousand characters takes no column from the others."""
    long = usage_of("alice", "x" * 10_000, throttle_time_seconds=1.0)
    head, first, second, *_ = lines(width, long, usage_of("bob", "app"))
    assert head.split() == ["node", "entity", "quota", "usage", "/", "limit", "used", "delay", "rule"]
    assert 'produce 0.50 / 1.00 kB/s  50% 1.00 s 1 alice / "x' in first
    assert second.startswith("1    bob / app")
    assert max(map(len, (head, first, second))) <= min(width, 150)


def test_a_burst_that_is_used_up_is_no_small_use() -> None:
    """As on the page and in `top`: of a controller mutation quota, the used part of the burst counts where it is higher."""
    broke = usage(QuotaType.CONTROLLER_MUTATION, limit=1.0, usage=0.5, tokens=-2.0, burst_tokens=10.0)
    text = rendered(view(snapshot(broke), [], 10), 160)
    assert "0.50 / 1.00 mut/s 120%" in " ".join(text.split())


def test_a_folded_entity_is_shown_all_the_same() -> None:
    """The terminal shows what matters, whatever the metrics leave out."""
    waits = usage_of("bob", "app", throttle_time_seconds=1.0)
    shown = snapshot(left_out=(waits,), folds=Folds(overflow=1))
    text = rendered(view(shown, [], 10), 160)
    assert "1 quota entity (1 folded: not one by one in the metrics)" in text
    assert "bob / app" in text


def test_entities_are_unknown_where_no_source_is_read() -> None:
    """No agent reports any, which does not mean that there is none."""
    unread = snapshot(nodes=(), sources=(health(up=False, error="refused"),))
    assert "quota entities: unknown" in rendered(view(unread, [], 10), 160)
    assert "0 quota entities" in rendered(view(snapshot(), [], 10), 160)


def test_unknown_throttle_times_are_not_none() -> None:
    """An agent may not export them: then it is unknown whether an entity is throttled."""
    blind, other = usage_of("bob", limit=None), usage_of("carol", usage=900.0)
    blind.throttle_time_seconds = other.throttle_time_seconds = None
    text = rendered(view(snapshot(blind), [], 10), 160)
    assert "none of them known to be throttled; throttle times of 1 unknown" in text
    text = rendered(view(snapshot(blind, other), [], 10), 160)
    assert "closest to the limit (throttle times of 2 unknown):" in text
    assert "90% unknown" in " ".join(text.split())


@given(name=texts)
def test_no_name_breaks_a_line_or_moves_the_cursor(name: str) -> None:
    """Sources, findings, nodes and entities come from outside; markup in them is only text."""
    hostile = f"[/][bold]{name}"
    shown = snapshot(usage_of(hostile, hostile), sources=(health(hostile, dialect=hostile),))
    finding = Finding(code="x", check="agents", severity=FindingSeverity.ERROR, text=hostile, advice=hostile)
    text = rendered(view(shown, [finding], 10), 5_000)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("[/][bold]") >= 5


@given(texts)
def test_no_name_can_forge_a_line_of_doctor(text: str) -> None:
    """Markup, line ends and control characters are shown, not obeyed; as JSON they are kept."""
    warning = FindingSeverity.WARNING
    found = Finding(code="x", check="agents", subject=text, severity=warning, text=text, advice=f"a{text}")
    shown = rendered(as_table([found]), 1_000_000)
    assert len(shown.splitlines()) == len(("header", "text", "advice", "", "summary"))
    (document,) = json.loads(json.dumps(as_json([found])))["findings"]
    assert (document["subject"], document["severity"]) == (text, "warning")


@pytest.mark.parametrize(
    ("severities", "code"),
    [
        ("", 0),
        ("ok", 0),
        ("ok note", 0),
        ("warning ok", 1),
        ("note warning ok", 1),
        ("error ok", 2),
        ("warning error note", 2),
    ],
)
def test_exit_codes_of_doctor(severities: str, code: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst severity decides, as docs/operation.md has it: 0 works, 1 shows less than it could, 2 does not work."""

    async def examined(*_: object) -> list[Finding]:
        found = map(FindingSeverity, severities.split())
        return [Finding(code="x", check="agents", severity=severity, text="") for severity in found]

    monkeypatch.setattr(doctor, "examined", examined)
    assert run("doctor", "--source", "jolokia=http://127.0.0.1:1/jolokia")[0] == code
