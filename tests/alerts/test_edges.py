"""Releases of Prometheus agree about rules in other steps of scrapes and evaluations than those of the cases."""

from pathlib import Path

import pytest
from tests.alerts.edges import differences
from tests.alerts.promtool import RULES, cases

pytestmark = pytest.mark.real

SUBJECTS = ("KafkaQuotaSourceDown", "KafkaQuotaRuleChanged")
"""Alerts on a lowest value, an average and an increase; `python -m tests.alerts.edges` tries all alerts."""
CASES = [case for case in cases() if case.subject in SUBJECTS]


@pytest.mark.parametrize("step", ["15s", "1m"])
def test_releases_agree(step: str, tmp_path: Path) -> None:
    """Alerts and recorded series are the same at all times."""
    assert [str(difference) for case in CASES for difference in differences(case, step, tmp_path)] == []


def test_a_range_of_whole_minutes_is_found(tmp_path: Path) -> None:
    """A range of whole minutes is a difference: one release counts the sample at its older end."""
    subject = SUBJECTS[0]
    group = RULES[subject]
    rule = {**group["rules"][0]}
    rule["expr"] = rule["expr"].replace("[2m59s]", "[3m]")
    assert rule != group["rules"][0]
    changed = {**RULES, subject: {**group, "rules": [rule]}}
    wrong = [difference for case in CASES for difference in differences(case, "1m", tmp_path, changed)]
    assert {difference.case.subject for difference in wrong} == {subject}
