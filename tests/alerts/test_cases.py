"""Every rule in front of the real `promtool test rules`: what makes it fire, what must not, and clients and clusters of whom it must not take notice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.alerts.expressions import RECORDED
from tests.alerts.promtool import ALERTS, RULES, Case, Labels, cases, try_case

from quotascope.alerts.rule import AlertScope

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


Move = Callable[[Labels], Labels]
_JOIN = re.compile(r"on \(([^)]*)\)")


def crowds(of_alert: Sequence[Case]) -> Iterator[Case]:
    """
    Each case that fires, amid all that never do.

    A join that forgot a label would take what belongs to a neighbor. A case is moved to another
    cluster, to other users and to other client-ids of the same user, as far as its ``alone`` does not
    name these: it may be silent only where nothing else is, or at another time.
    """
    silent = [case for case in of_alert if not case.fires]
    for one in of_alert:
        if one.fires and "alone" not in one.content:
            series = dict(one.content["series"])
            others = [each for each in silent if each.content.get("every") == one.content.get("every")]
            for number, other in enumerate(others):
                for what, move in _moves(one, other, number).items():
                    if what not in other.content.get("alone", []):
                        series |= _moved(other, move)
            together: dict[str, Any] = {"case": f"{one.content['case']} In a crowd.", "series": series}
            yield Case(subject=one.subject, content=one.content | together)


def _moves(one: Case, other: Case, number: int) -> dict[str, Move]:
    """Ways to make a neighbor of another case, by what they change."""
    name = f"another {number}"
    moves: dict[str, Move] = {
        "cluster": lambda labels: {**labels, "cluster": f"elsewhere {number} {labels.get('cluster', '')}"}
    }
    every = (*one.labels, *other.labels)
    of_clients = all(labels.get("user", "__overflow__") != "__overflow__" for labels in every)
    if ALERTS[one.subject].scope is AlertScope.ENTITY and of_clients:
        moves["user"] = lambda labels: {**labels, "user": f"{name} {labels['user']}"}
        if user := one.labels[0]["user"]:
            own = "{user} {client_id}"
            moves["client_id"] = lambda labels: {**labels, "user": user, "client_id": f"{name} {own.format(**labels)}"}
    return moves


def _moved(case: Case, move: Move) -> dict[str, str]:
    moved = {}
    for (series, values), labels in zip(case.content["series"].items(), case.labels, strict=True):
        inner = ",".join(f'{name}="{value}"' for name, value in move(labels).items())
        moved[f"{series.partition('{')[0]}{{{inner}}}"] = values
    return moved


CROWDS = {subject: [*crowds(group)] for subject, group in BY_SUBJECT.items() if subject != "records"}


@pytest.mark.real
@pytest.mark.parametrize("subject", CROWDS)
def test_neighbors_change_nothing(subject: str, tmp_path: Path) -> None:
    """What fires alone fires amid others, too, and nothing else does."""
    said = "".join(try_case(case, tmp_path) for case in CROWDS[subject])
    assert said == "", said


@pytest.mark.real
def test_a_number_around_the_threshold_silences_no_alert(tmp_path: Path) -> None:
    """Where 50 clients are near their limits, and one more every few minutes, the 50 have their alerts."""
    series = [
        f'kafka_quota_utilization_ratio{{quota_type="produce",broker="1",user="u{user}",client_id="c"}}'
        for user in range(51)
    ]
    fires = [
        {
            "at": "2h",
            "labels": {"quota_type": "produce", "user": f"u{user}", "client_id": "c"},
            "description": f'Over half an hour, user "u{user}" with client-id "c" used 95% of its produce quota on its busiest broker and was not throttled: Kafka will throttle it there above 100%.',
            "dashboard": f"quotascope-entity?var-cluster=&var-user=u{user}&var-client_id=c",
        }
        for user in range(50)
    ]
    expr = "count(entity:kafka_quota_utilization_ratio:avg30m and entity:kafka_quota_utilization_ratio:max) > 50"
    records = [
        {"eval_time": "110m", "expr": expr, "exp_samples": [{"labels": "{}", "value": "51"}]},
        {"eval_time": "118m", "expr": expr, "exp_samples": []},
    ]
    content = {
        "case": "One client comes and goes.",
        "series": {**dict.fromkeys(series[:50], "0.95x180"), series[50]: " ".join(["0.95x5 stale _x3"] * 20)},
        "fires": fires,
        "records": records,
    }
    case = Case(subject="KafkaQuotaNearLimit", content=content)
    said = try_case(case, tmp_path)
    assert said == "", said


@pytest.mark.real
@pytest.mark.parametrize(
    ("subject", "label"),
    [
        ("KafkaQuotaProduceThrottled", "cluster"),
        ("KafkaQuotaProduceThrottled", "user"),
        ("KafkaQuotaProduceThrottled", "client_id"),
        ("KafkaQuotaThrottleSpike", "cluster"),
    ],
)
def test_a_join_that_forgets_a_label_is_found(subject: str, label: str, tmp_path: Path) -> None:
    """Without a label in its joins, the alert takes its neighbors' values for its own."""
    forgetful = _without(subject, label)
    assert any(try_case(case, tmp_path, rules=forgetful) for case in CROWDS[subject])


def _without(subject: str, label: str) -> dict[str, Any]:
    def forget(found: re.Match[str]) -> str:
        return f"on ({', '.join(each for each in found[1].split(', ') if each != label)})"

    group = RULES[subject]
    rule = group["rules"][0]
    return {**RULES, subject: {**group, "rules": [{**rule, "expr": _JOIN.sub(forget, rule["expr"])}]}}
