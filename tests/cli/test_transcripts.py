"""
Input and output of users: a file for each story in ``transcripts/``.

A file begins with a sentence, then come files (``--- NAME``) and commands (``$ quotascope …``), each with its output,
standard error last and marked ``! ``, and its exit code when that is not 0. ``{broker}`` and ``{controller}`` stand for
agents that answer as recorded, ``{no one}`` for one that does not. ``pytest --update-golden tests/cli`` rewrites the
outputs: read the diff.
"""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Serve
from tests.cli.scripted import Cluster

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
VOLATILE = re.compile(r"\d\.\d{3} s\b")


@pytest.fixture
def places(agent: Serve) -> Iterator[dict[str, str]]:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # taken, but no one listens
        yield {
            "broker": agent("split/throttled.1.jolokia2.json").url,
            "controller": agent("split/throttled.100.jolokia2.json").url,
            "nobody": f"http://127.0.0.1:{silent.getsockname()[1]}/jolokia",
        }


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(
    path: Path,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    request: pytest.FixtureRequest,
) -> None:
    """Every command of a story prints what the story shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("quotascope.cli.compose.open_quota_admin", Cluster)
    monkeypatch.setattr(Cluster, "altered", {})
    story, *steps = re.split(r"^(?=--- |\$ )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    reported = story
    for step in steps:
        head, _, body = step.partition("\n")
        if head.startswith("--- "):
            (tmp_path / head[4:]).write_text(_filled(body, places))
            reported += step
            continue
        _, *words = shlex.split(_filled(head[2:], places))
        code, out, err = run(*words)
        marked = "".join(f"! {line}\n" for line in err.splitlines())
        reported += f"{head}\n{_stable(out + marked, places)}" + (f"exit code {code}\n" if code else "")
    if request.config.getoption("--update-golden"):
        path.write_text(reported, encoding="utf-8")
    assert reported == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_no_word_is_broken_in_a_narrow_terminal(
    path: Path, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """In 80 columns, a command prints no part of a word: all its words are those that a wide terminal shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quotascope.cli.compose.open_quota_admin", Cluster)
    monkeypatch.setattr(Cluster, "altered", {})
    for step in re.split(r"^(?=--- |\$ )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = step.partition("\n")
        if head.startswith("--- "):
            (tmp_path / head[4:]).write_text(_filled(body, places))
            continue
        words = shlex.split(_filled(head[2:], places))[1:]
        printed = []
        for columns in (80, 1_000):
            monkeypatch.setenv("COLUMNS", str(columns))
            altered = dict(Cluster.altered)
            printed.append(VOLATILE.sub("", run(*words)[1]))
            if columns == 80:
                monkeypatch.setattr(Cluster, "altered", altered)
        narrow, wide = ({word.rstrip(":,") for word in text.split() if word.strip("─")} for text in printed)
        assert narrow - wide == set(), head


def _filled(text: str, places: dict[str, str]) -> str:
    for name, url in places.items():
        text = text.replace(f"{{{name}}}", url)
    return text


def _stable(text: str, places: dict[str, str]) -> str:
    for name, url in places.items():
        text = text.replace(url, f"{{{name}}}")
        text = text.replace(url.split("/")[2], f"{{{name}}}")
        text = text.replace(url.split(":")[2].split("/")[0], "PORT")
    lines = (line.rstrip() for line in VOLATILE.sub("0.000 s", text).splitlines())
    return "".join(f"{line}\n" for line in lines)


def test_there_are_transcripts() -> None:
    """The folder has transcripts: without any, no story would be tried."""
    assert len(TRANSCRIPTS) >= 8
