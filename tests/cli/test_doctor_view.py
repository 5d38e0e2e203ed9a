"""What `quotascope doctor` shows of untrusted texts, and while it waits."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from tests.cli.usages import rendered
from tests.strategies import texts

from quotascope.cli import doctor
from quotascope.cli.doctor_view import as_json, as_table
from quotascope.cli.main import main
from quotascope.cli.terminal import waiting
from quotascope.exporter.diagnosis import Finding, FindingSeverity


@given(texts)
def test_no_name_can_forge_a_line(text: str) -> None:
    """Markup, line ends and control characters are shown, not obeyed; as JSON they are kept."""
    found = Finding(
        code="x",
        check="agents",
        subject=text,
        severity=FindingSeverity.WARNING,
        text=text,
        advice=f"a{text}",
    )
    shown = rendered(as_table([found]), 1_000_000)
    assert len(shown.splitlines()) == len(("header", "text", "advice", "", "summary"))
    (document,) = json.loads(json.dumps(as_json([found])))["findings"]
    assert (document["subject"], document["severity"]) == (text, "warning")


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Whether this is a terminal."""
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_terminal_shows_what_is_waited_for(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, on standard error; a log of a CI gets nothing of it."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with waiting() as progress:
        progress(["kafka", "agents"])
    assert ("waiting for kafka, agents" in stream.getvalue()) is stream.isatty()


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
def test_exit_codes(
    severities: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst severity decides, as docs/operation.md has it: 0 works, 1 shows less than it could, 2 does not work."""

    async def examined(*_: object) -> list[Finding]:
        return [
            Finding(
                code="x", check="agents", severity=FindingSeverity(severity), text=""
            )
            for severity in severities
        ]

    monkeypatch.setattr(doctor, "examined", examined)
    words = ["quotascope", "doctor", "--source", "jolokia=http://127.0.0.1:1/jolokia"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code or 0) == code
