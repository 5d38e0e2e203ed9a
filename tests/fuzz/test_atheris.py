"""A short run of each target, so that none of them rots; `make fuzz` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fuzz.named import NAMES, target
from tests.fuzz.running import Outcome, Run

EXECUTIONS = 2_000


def quiet(_outcome: Outcome) -> None:
    """No one watches."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_in_a_short_run(name: str, tmp_path: Path) -> None:
    """The same inputs each time: whatever is found here was broken by a change."""
    run = Run(target=target(name), kept=tmp_path, findings=tmp_path / "found", executions=EXECUTIONS, seed=1)
    outcome = run.outcome(quiet)
    assert not outcome.found, "\n".join(outcome.lines)
    assert outcome.executions >= EXECUTIONS


@pytest.mark.slow
def test_a_mistake_is_found(tmp_path: Path) -> None:
    """A reader that raises something else than it should; its input is kept, and reported."""
    fuzzed = target("page_query")
    run = Run(
        target=fuzzed,
        kept=tmp_path,
        findings=tmp_path / "found",
        executions=20_000,
        seed=1,
        program="tests.fuzz.planted",
    )
    outcome = run.outcome(quiet)
    assert outcome.found
    assert "LookupError" in "\n".join(outcome.lines)
    (kept,) = (tmp_path / "found").iterdir()
    fuzzed.feed(kept.read_bytes())
