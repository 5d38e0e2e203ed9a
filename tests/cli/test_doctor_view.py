"""What `quotascope doctor` shows of texts from strangers, and while it waits."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from tests.cli.usages import rendered
from tests.strategies import texts

from quotascope.cli import doctor
from quotascope.cli.doctor_view import document, view
from quotascope.cli.main import main
from quotascope.cli.progress import waiting
from quotascope.exporter.doctor import Result, Verdict


@given(texts)
def test_no_name_can_forge_a_line(text: str) -> None:
    """Markup, line ends and control characters are shown, not obeyed; as JSON they are kept."""
    found = Result(
        check="agents", subject=text, verdict=Verdict.LOOK, text=text, advice=f"a{text}"
    )
    shown = rendered(view([found]), 1_000_000)
    assert len(shown.splitlines()) == len(("header", "text", "advice", "", "summary"))
    assert json.loads(document([found]))["results"][0]["subject"] == text


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Whether this is a terminal."""
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_who_waits_is_told_for_what(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, on standard error; a log of a CI gets nothing of it."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with waiting() as told:
        told(["kafka", "agents"])
    assert ("waiting for kafka, agents" in stream.getvalue()) is stream.isatty()


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], 0),
        (["fine"], 0),
        (["fine", "note"], 0),
        (["look", "fine"], 1),
        (["note", "look", "fine"], 1),
        (["broken", "fine"], 2),
        (["look", "broken", "note"], 2),
    ],
)
def test_exit_codes(
    verdicts: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst verdict decides, as docs/operation.md has it: 0 works, 1 shows less than it could, 2 does not work."""

    async def examined(*_: object) -> list[Result]:
        return [
            Result(check="agents", verdict=Verdict(verdict), text="")
            for verdict in verdicts
        ]

    monkeypatch.setattr(doctor, "examined", examined)
    words = ["quotascope", "doctor", "--source", "jolokia=http://127.0.0.1:1/jolokia"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code or 0) == code
