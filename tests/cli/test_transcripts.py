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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from tests.cli.conftest import Run, Serve
from tests.exporter.limits.test_admin import ScriptedAdmin
from tests.exporter.recorded import SPLIT_RULES

from quotascope.clients.errors import PermissionMissing
from quotascope.clients.quota_admin import ConfiguredQuota, QuotaChange
from quotascope.clients.security import Connection
from quotascope.quotas import to_admin

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
VOLATILE = re.compile(r"\d\.\d{3} s\b")


class Cluster(ScriptedAdmin):
    """The quotas that were in force when the captures were taken, and what a story has made of them."""

    altered: ClassVar[dict[tuple[str, ...], tuple[ConfiguredQuota, ...]]] = {}
    """By the servers that were asked, until the story ends."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._servers = tuple(connection.bootstrap_servers)
        self.quotas = tuple(
            ConfiguredQuota(entity=to_admin(entity), key=kind.quota_key, value=bound)
            for kind, rules in SPLIT_RULES.items()
            for entity, bound in rules.items()
        )
        if self._servers == ("guarded:9092",):
            missing = PermissionMissing(request="DescribeClientQuotas", operation="DescribeConfigs", username="me")
            self.errors["quotas"] = missing
        if self._servers == ("empty:9092",):
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
    """Every command of the story says what the story says."""
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
