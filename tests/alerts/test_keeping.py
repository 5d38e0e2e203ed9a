"""Alerts that go on for a while after their cause, so that they do not come and go."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.alerts.promtool import RULES, cases, try_case

KEPT = [name for name, group in RULES.items() if "keep_firing_for" in group["rules"][0]]


@pytest.mark.real
@pytest.mark.parametrize("subject", KEPT)
def test_a_missing_keep_firing_for_is_found(subject: str, tmp_path: Path) -> None:
    """A case of each such alert looks when its cause is over, and fails when the alert ends with it."""
    group = RULES[subject]
    rule = {**group["rules"][0]}
    del rule["keep_firing_for"]
    forgetful = {**RULES, subject: {**group, "rules": [rule]}}
    fires = [case for case in cases() if case.subject == subject and case.fires]
    assert any(try_case(case, tmp_path, rules=forgetful) for case in fires)
