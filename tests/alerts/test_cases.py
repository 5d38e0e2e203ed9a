"""Every rule in front of the real `promtool test rules`: what makes it fire, and what must not."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from tests.alerts.labels import RECORDED
from tests.alerts.promtool import ALERTS, RULES, Case, cases, try_case

BY_SUBJECT = {subject: list(group) for subject, group in groupby(cases(), key=lambda case: case.subject)}


@pytest.mark.real
@pytest.mark.parametrize("case", cases(), ids=str)
def test_case(case: Case, tmp_path: Path) -> None:
    """Each case comes out as it says, to the last letter of the annotations."""
    said = try_case(case, tmp_path)
    assert said == "", said


@pytest.mark.real
@pytest.mark.parametrize("subject", ["KafkaQuotaNearLimit", "records"])
def test_a_wrong_case_is_found(subject: str, tmp_path: Path) -> None:
    """A case that expects what does not happen fails: promtool really looks."""
    series = {'quotascope_build_info{version="1"}': "1x60"}
    fires = {"at": "1h", "description": "", "dashboard": ""}
    expected = {"expr": "quotascope_build_info", "eval_time": "1h", "exp_samples": []}
    of_subject = {"records": [expected]} if subject == "records" else {"fires": fires}
    content = {"case": "wrong", "series": series, **of_subject}
    assert try_case(Case(subject=subject, content=content), tmp_path) != ""


@pytest.mark.real
@pytest.mark.parametrize("subject", [name for name, group in RULES.items() if "keep_firing_for" in group["rules"][0]])
def test_a_missing_keep_firing_for_is_found(subject: str, tmp_path: Path) -> None:
    """A case of each such alert looks when its cause is over, and fails when the alert ends with it."""
    group = RULES[subject]
    rule = {**group["rules"][0]}
    del rule["keep_firing_for"]
    forgetful = {**RULES, subject: {**group, "rules": [rule]}}
    fires = [case for case in BY_SUBJECT[subject] if case.fires]
    assert any(try_case(case, tmp_path, rules=forgetful) for case in fires)


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_cases(name: str) -> None:
    """No alert goes untested: at least one case in which it fires, and one in which it never does."""
    of_alert = BY_SUBJECT.get(name, [])
    assert any(case.fires for case in of_alert), "never fires in a test"
    assert any(case.silent and not case.fires for case in of_alert), "no case in which it stays silent"


def test_every_case_has_an_alert() -> None:
    """The cases of an alert that was renamed would test nothing."""
    assert set(BY_SUBJECT) == {*ALERTS, "records"}


@pytest.mark.parametrize("name", [*RECORDED])
def test_every_recording_rule_has_cases(name: str) -> None:
    """Each recorded series is looked at once with a value and once where it must not be or be 0."""
    looks = [look for case in BY_SUBJECT["records"] for look in case.content["records"] if look["expr"] == name]
    values = [float(sample["value"]) for look in looks for sample in look.get("exp_samples", [])]
    assert any(values), "never has a value in a test"
    assert 0 in values or any(not look.get("exp_samples") for look in looks), "is never silent in a test"
