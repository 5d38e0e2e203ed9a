"""The pages about the pipeline say what the code does, and name only commands and programs that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.pipeline.log_lines import CAPTURE, captured
from tests.pipeline.recommend.rows import make_folder, produced

from quotascope.cli.main import app
from quotascope.pipeline.releases import LAYOUTS
from quotascope.pipeline.request_log.schema import QUARANTINE, REQUESTS, Reason

ROOT = Path(__file__).parents[2]
REQUEST_LOG = (ROOT / "docs" / "guides" / "request-log.md").read_text(encoding="utf-8")
PAGES = (
    *(f"guides/{name}.md" for name in ("pipeline", "request-log", "history", "whatif", "recommend")),
    "engineering/scale.md",
)
SCRIPT = '"$(quotascope spark submit-script)" '


def commands(page: str) -> list[list[str]]:
    """Return the command lines of quotascope on a page, also those under spark-submit, without the name."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    fences = re.findall(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    blocks = [block for language, block in fences if language in ("", "sh", "bash")]
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    parts = (part.strip() for line in lines for part in re.split(r" \| | && ", line))
    named = (
        part.removeprefix("quotascope ") if part.startswith("quotascope ") else part.partition(SCRIPT)[2]
        for part in parts
    )
    return [shlex.split(each, comments=True) for each in named if each]


def test_pages_have_commands() -> None:
    """The documentation shows each command of the pipeline."""
    commands_shown = {words[0] for page in PAGES for words in commands(page)}
    assert commands_shown >= {"ingest", "request-topic", "whatif", "recommend", "history"}


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_understood(page: str) -> None:
    """Every option on a page exists, and no required one is missing."""
    for words in commands(page):
        command: Any = typer.main.get_command(app)
        remaining = words
        while hasattr(command, "commands"):
            assert remaining[0] in command.commands, f"no command {remaining[0]}: {words}"
            command, remaining = command.commands[remaining[0]], remaining[1:]
        assert command.make_context("quotascope", list(remaining)).params


@pytest.mark.parametrize("library", ["duckdb", "polars"])
def test_tables_in_other_libraries(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code of the page says which users were throttled most."""
    page = (ROOT / "docs" / "guides" / "history.md").read_text(encoding="utf-8")
    (code,) = re.findall(rf"```python\n(import {library}.*?)```", page, re.DOTALL)
    rows = [
        produced(offset_ms, 1, user=user, throttle_ms=offset_ms)
        for user, offset_ms in (("bob", 3), ("alice", 4), ("bob", 5))
    ]
    make_folder(tmp_path / "usage", rows)
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # noqa: S102 - of ours
    assert re.findall(r"[│┆]\s*(\w+)\s*[│┆]\s*(\d+)\s*[│┆]", capsys.readouterr().out) == [("bob", "8"), ("alice", "4")]


def test_columns() -> None:
    """The documentation lists each column in the order of the table."""
    lines = [f"- `{column.name}`: {(column.metadata or {})[b'description'].decode()}" for column in REQUESTS]
    assert "\n".join(lines) in REQUEST_LOG


def test_reasons_and_layouts() -> None:
    """The documentation explains each reason for quarantine and each layout."""
    for reason in Reason:
        assert f"\n- `{reason}`: " in REQUEST_LOG
    for layout in LAYOUTS:
        assert f"`{layout.name}`" in REQUEST_LOG


def test_sizes() -> None:
    """The documented bytes of a line are those of the log in the tests."""
    count = len(captured())
    plain = sum(len(text) + 1 for text in captured()) / count
    packed = CAPTURE.stat().st_size / count
    assert f"a line takes {plain:,.0f} bytes, or {packed:.0f} compressed (gzip)" in REQUEST_LOG


def test_columns_are_described() -> None:
    """Each column of both tables has a description, with the unit of times and durations."""
    for column in (*REQUESTS, *QUARANTINE):
        description = (column.metadata or {})[b"description"]
        assert description.startswith(b"ms" if column.name.endswith(("_ms", "timestamp", "completed")) else b""), (
            column.name
        )
        assert description, column.name
