"""
The exposition of recorded nodes, kept as files next to this one.

``pytest --update-golden tests/exporter/exposition`` rewrites them: read the diff.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.exporter.examples import NOW, snapshot, usage
from tests.exporter.recorded import TAKEN_AT

from quotascope.exporter.exposition import OPENMETRICS, TEXT, Renderer, TextFormat
from quotascope.exporter.snapshot import Snapshot

GOLDEN = Path(__file__).parent / "golden"
VOLATILE = re.compile(r"^(# \w+ )?quotascope_build_info\b.*\n", re.MULTILINE)
SNAPSHOTS = (
    *("combined_throttled", "combined_idle", "combined_without_quotas"),
    *("split_throttled", "split_removed", "split_forwarded"),
    *("pair_throttled", "pair_removed", "tiered_throttled"),
)


@pytest.mark.parametrize(
    ("file", "text_format", "cluster"),
    [*((f"{name}.txt", TEXT, None) for name in SNAPSHOTS), ("split_throttled.openmetrics.txt", OPENMETRICS, "prod")],
)
def test_text_is_as_recorded(
    file: str, text_format: TextFormat, cluster: str | None, request: pytest.FixtureRequest
) -> None:
    """The exposition equals the recorded text, so that any change for Prometheus shows up in a diff."""
    state: Snapshot = request.getfixturevalue(file.partition(".")[0])
    text = Renderer(cluster).render(state, TAKEN_AT + 1, text_format).decode()
    stable = VOLATILE.sub("", text)
    if request.config.getoption("--update-golden"):
        (GOLDEN / file).write_text(stable, encoding="utf-8")
    assert stable == (GOLDEN / file).read_text(encoding="utf-8")


def lint(text: bytes) -> str:
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode() or f"exit code {done.returncode}"


@pytest.mark.real
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_promtool_finds_nothing(name: str) -> None:
    """Prometheus's own linter accepts names, types, units and help texts."""
    assert lint((GOLDEN / f"{name}.txt").read_bytes()) == "exit code 0"


@pytest.mark.real
@pytest.mark.parametrize("name", ['"\\\n\r\t\x00{}=,', "\ud800\u202e\U0001f600", "x" * 10_000])
def test_promtool_parses_hostile_names(name: str) -> None:
    """Hostile names that our parser accepts are accepted by promtool."""
    state = snapshot(usage(user=name, client_id=name, usage=1.0))
    assert lint(Renderer().render(state, NOW)) == "exit code 0"
