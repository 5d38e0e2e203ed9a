"""
What a user types and sees: one file for each story in ``transcripts/``.

A file begins with a sentence, then come files (``--- NAME``) and commands (``$ quotascope …``), each with its output, standard
error last and marked ``! ``, and its exit code when that is not 0. ``{broker}`` and ``{controller}`` stand for agents that
answer as recorded, ``{no one}`` for one that does not. ``pytest --update-golden tests/cli`` rewrites the outputs: read the diff.
"""

from __future__ import annotations

import re
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from tests.cli.conftest import Serve
from tests.exporter.limits.test_admin import ScriptedAdmin
from tests.exporter.recorded import SPLIT_RULES

from quotascope.cli.main import main
from quotascope.clients.errors import PermissionMissing
from quotascope.clients.quota_admin import ConfiguredQuota, QuotaChange
from quotascope.clients.security import Connection
from quotascope.metrics import DEFAULT, DefaultType

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
VOLATILE = re.compile(r"\d\.\d{3} s\b")


@dataclass(frozen=True)
class Step:
    """A file to write, or a command with what it is expected to say."""

    head: str
    body: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        return self.head.startswith("--- ")


def steps(text: str) -> tuple[str, list[Step]]:
    """The story and its steps."""
    story, *rest = re.split(r"^(?=--- |\$ )", text, flags=re.MULTILINE)
    parts = [part.partition("\n") for part in rest]
    return story, [Step(head, body) for head, _, body in parts]


class Cluster(ScriptedAdmin):
    """The quotas that were in force when the captures were taken, and what a story has made of them."""

    altered: ClassVar[dict[tuple[str, ...], tuple[ConfiguredQuota, ...]]] = {}
    """By the servers that were asked, until the story ends."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._servers = tuple(connection.bootstrap_servers)
        self.quotas = tuple(
            ConfiguredQuota(entity=dict(_named(entity.user, entity.client_id)), key=kind.quota_key, value=bound)
            for kind, rules in SPLIT_RULES.items()
            for entity, bound in rules.items()
        )
        if connection.bootstrap_servers == ("guarded:9092",):
            self.errors["quotas"] = PermissionMissing(
                request="DescribeClientQuotas", operation="DescribeConfigs", username="me"
            )
        if connection.bootstrap_servers == ("empty:9092",):
            self.quotas = ()
        self.quotas = self.altered.get(self._servers, self.quotas)

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        """As a controller does; the next command sees it."""
        quotas = {(_key(quota.entity), quota.key): quota for quota in self.quotas}
        for change in changes:
            place = _key(change.entity), change.key
            quotas.pop(place, None)
            if change.value is not None:
                quotas[place] = ConfiguredQuota(entity=change.entity, key=change.key, value=change.value)
        self.quotas = self.altered[self._servers] = tuple(quotas.values())


def _key(entity: Mapping[str, str | None]) -> frozenset[tuple[str, str | None]]:
    return frozenset(entity.items())


def _named(user: str | DefaultType | None, client_id: str | DefaultType | None) -> Iterator[tuple[str, str | None]]:
    for kind, name in (("user", user), ("client-id", client_id)):
        if name is not None:
            yield kind, None if name is DEFAULT else str(name)


@pytest.fixture
def places(agent: Serve) -> Iterator[dict[str, str]]:
    """What the names in braces stand for."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # taken, but no one listens
        yield {
            "broker": agent("split/throttled.1.jolokia2.json").url,
            "controller": agent("split/throttled.100.jolokia2.json").url,
            "nobody": f"http://127.0.0.1:{silent.getsockname()[1]}/jolokia",
        }


def run(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Output, errors and exit code of one command, as a transcript has them."""
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    out, err = capsys.readouterr()
    marked = "".join(f"! {line}\n" for line in err.splitlines())
    return out + marked + (f"exit code {code}\n" if code else "")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(
    path: Path,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """Every command of the story says what the story says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("quotascope.cli.compose.open_quota_admin", Cluster)
    monkeypatch.setattr(Cluster, "altered", {})
    story, expected = steps(path.read_text(encoding="utf-8"))
    reported = story
    for step in expected:
        if step.is_file:
            (tmp_path / step.head[4:]).write_text(_filled(step.body, places))
            reported += f"{step.head}\n{step.body}"
        else:
            said = run(_filled(step.head[2:], places), monkeypatch, capsys)
            reported += f"{step.head}\n{_stable(said, places)}"
    if request.config.getoption("--update-golden"):
        path.write_text(reported, encoding="utf-8")
    assert reported == path.read_text(encoding="utf-8")


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
    """A moved folder would silently try nothing."""
    assert len(TRANSCRIPTS) >= 8
