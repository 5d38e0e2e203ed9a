"""What `quotascope doctor` shows of untrusted texts, and how it ends."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from tests.cli.conftest import Run
from tests.cli.usages import rendered
from tests.strategies import texts

from quotascope.cli import doctor
from quotascope.cli.doctor_view import as_json, as_table
from quotascope.exporter.diagnosis import Finding, FindingSeverity


@given(texts)
def test_no_name_can_forge_a_line(text: str) -> None:
    """Markup, line ends and control characters are shown, not obeyed; as JSON they are kept."""
    found = Finding(
        code="x", check="agents", subject=text, severity=FindingSeverity.WARNING, text=text, advice=f"a{text}"
    )
    shown = rendered(as_table([found]), 1_000_000)
    assert len(shown.splitlines()) == len(("header", "text", "advice", "", "summary"))
    (document,) = json.loads(json.dumps(as_json([found])))["findings"]
    assert (document["subject"], document["severity"]) == (text, "warning")


@pytest.mark.parametrize(
    ("severities", "code"),
    [
        ([], 0),
        (["ok"], 0),
        (["ok", "note"], 0),
        (["warning", "ok"], 1),
        (["note", "warning", "ok"], 1),
        (["error", "ok"], 2),
        (["warning", "error", "note"], 2),
    ],
)
def test_exit_codes(severities: list[str], code: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst severity decides, as docs/operation.md has it: 0 works, 1 shows less than it could, 2 does not work."""

    async def examined(*_: object) -> list[Finding]:
        return [
            Finding(code="x", check="agents", severity=FindingSeverity(severity), text="") for severity in severities
        ]

    monkeypatch.setattr(doctor, "examined", examined)
    ended, *_ = run("doctor", "--source", "jolokia=http://127.0.0.1:1/jolokia")
    assert ended == code
