"""Every rule in the real `promtool test rules`: causes, situations without an alert, and neighbors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.alerts.expressions import RECORDED
from tests.alerts.promtool import ALERTS, CORE_RULES, RULES, Case, Labels, cases, try_case
from tests.prometheus.releases import NEWEST, RELEASES, Release

ENTITY_PERSISTENTLY_THROTTLED = "entity:kafka_quota_throttled:persistent"
BY_SUBJECT = {subject: list(group) for subject, group in groupby(cases(), key=lambda case: case.subject)}


@pytest.mark.real
@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_case(case: Case, release: Release, tmp_path: Path) -> None:
    """Alerts of a case are as expected, to the last letter of their annotations, in each release of Prometheus."""
    output = try_case(case, tmp_path, release=release)
    assert output == "", output


@pytest.mark.real
@pytest.mark.parametrize("subject", ["KafkaQuotaNearLimit", "records"])
def test_a_wrong_case_is_found(subject: str, tmp_path: Path) -> None:
    """A case with wrong expectations fails."""
    series = {'quotascope_build_info{version="1"}': "1x60"}
    fires = {"at": "1h", "description": "", "dashboard": ""}
    expected = {"expr": "quotascope_build_info", "eval_time": "1h", "exp_samples": []}
    of_subject = {"records": [expected]} if subject == "records" else {"fires": fires}
    content = {"case": "wrong", "series": series, **of_subject}
    assert try_case(Case(subject=subject, content=content), tmp_path) != ""


@pytest.mark.real
@pytest.mark.parametrize("subject", [name for name, group in RULES.items() if "keep_firing_for" in group["rules"][0]])
def test_a_missing_keep_firing_for_is_found(subject: str, tmp_path: Path) -> None:
    """A case fails if its alert ends with its cause."""
    group = RULES[subject]
    rule = {**group["rules"][0]}
    del rule["keep_firing_for"]
    forgetful = {**RULES, subject: {**group, "rules": [rule]}}
    fires = [case for case in BY_SUBJECT[subject] if case.fires]
    assert any(try_case(case, tmp_path, rules=forgetful) for case in fires)


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_cases(name: str) -> None:
    """Each alert fires in at least one case, and never fires in at least one."""
    of_alert = BY_SUBJECT.get(name, [])
    assert any(case.fires for case in of_alert), "never fires in a test"
    assert any(case.silent and not case.fires for case in of_alert), "no case in which it stays silent"


def test_every_case_has_an_alert() -> None:
    """The cases of an alert that was renamed would test nothing."""
    assert set(BY_SUBJECT) == {*ALERTS, "records"}


@pytest.mark.parametrize("name", [*RECORDED])
def test_every_recording_rule_has_cases(name: str) -> None:
    """Each recorded series has a case with a value and a case with 0 or without a sample."""
    records = [
        record
        for case in BY_SUBJECT["records"]
        for record in case.content["records"]
        if record["expr"].removeprefix("round(").partition(",")[0] == name
    ]
    values = [float(sample["value"]) for record in records for sample in record.get("exp_samples", [])]
    assert any(values), "never has a value in a test"
    assert 0 in values or any(not record.get("exp_samples") for record in records), "is never silent in a test"


Move = Callable[[Labels], Labels]
_JOIN = re.compile(r"on \(([^)]*)\)")


def crowds(of_alert: Sequence[Case]) -> Iterator[Case]:
    """
    Yield each case that fires, together with all cases that never fire.

    A join without one of its labels would take the series of a neighbor. A silent case is moved to another cluster, to
    other users and to other client-ids of the same user, unless its ``alone`` names these: such a case is silent only
    without other series, or at another time.
    """
    silent = [case for case in of_alert if not case.fires]
    for firing in of_alert:
        if firing.fires and "alone" not in firing.content:
            series = dict(firing.content["series"])
            neighbors = [
                neighbor for neighbor in silent if neighbor.content.get("every") == firing.content.get("every")
            ]
            for number, neighbor in enumerate(neighbors):
                for what, move in _moves(firing, neighbor, number).items():
                    if what not in neighbor.content.get("alone", []):
                        series |= _moved(neighbor, move)
            together: dict[str, Any] = {"case": f"{firing.content['case']} In a crowd.", "series": series}
            yield Case(subject=firing.subject, content=firing.content | together)


def _moves(firing: Case, neighbor: Case, number: int) -> dict[str, Move]:
    """Return functions that make a neighbor of another case, by the label that they change."""
    name = f"another {number}"
    moves: dict[str, Move] = {
        "cluster": lambda labels: {**labels, "cluster": f"elsewhere {number} {labels.get('cluster', '')}"}
    }
    all_labels = (*firing.labels, *neighbor.labels)
    of_clients = all(labels.get("user", "__overflow__") != "__overflow__" for labels in all_labels)
    if ALERTS[firing.subject]["labels"]["scope"] == "entity" and of_clients:
        moves["user"] = lambda labels: {**labels, "user": f"{name} {labels['user']}"}
        if user := firing.labels[0]["user"]:
            client_id = f"{name} {{user}} {{client_id}}"
            moves["client_id"] = lambda labels: {**labels, "user": user, "client_id": client_id.format(**labels)}
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
    """An alert fires amid neighbors as it does alone, and no neighbor has an alert."""
    output = "".join(try_case(case, tmp_path, release=NEWEST) for case in CROWDS[subject])
    assert output == "", output


@pytest.mark.real
def test_a_number_around_the_threshold_silences_no_alert(tmp_path: Path) -> None:
    """Fifty clients near their limits have their alerts, even if one more client comes every few minutes."""
    series = [
        f'kafka_quota_utilization_ratio{{quota_type="produce",broker="1",user="u{user}",client_id="c"}}'
        for user in range(51)
    ]
    produce = {"quota_type": "produce"}
    fires = [
        {
            "at": "2h",
            "labels": {"severity": "warning", "scope": "entity", **produce, "user": f"u{user}", "client_id": "c"},
            "description": f'Over half an hour, user "u{user}" with client-id "c" used 95% of its produce quota on its '
            "busiest broker; whether it was throttled is unknown.",
            "dashboard": f"quotascope-entity?var-user=u{user}&var-client_id=c",
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
    output = try_case(case, tmp_path)
    assert output == "", output


@pytest.mark.real
def test_many_clients_near_their_limits_are_one_alert_of_the_core(tmp_path: Path) -> None:
    """In the core profile, 51 clients near their limits are one alert with their number, and no alert for each."""
    many = next(case for case in BY_SUBJECT["KafkaQuotaManyNearLimit"] if case.fires)
    content = {"case": many.content["case"], "series": many.content["series"], "silent": ["1h"]}
    paris = {name: values for name, values in many.content["series"].items() if 'cluster="paris"' in name}
    single = Case(subject="KafkaQuotaNearLimit", content={**content, "series": paris})
    output = "".join(try_case(case, tmp_path, rules=CORE_RULES) for case in (many, single))
    assert output == "", output


@pytest.mark.real
@pytest.mark.parametrize(
    ("subject", "rule", "label"),
    [
        ("KafkaQuotaProduceThrottled", "KafkaQuotaProduceThrottled", "cluster"),
        ("KafkaQuotaProduceThrottled", ENTITY_PERSISTENTLY_THROTTLED, "user"),
        ("KafkaQuotaProduceThrottled", ENTITY_PERSISTENTLY_THROTTLED, "client_id"),
        ("KafkaQuotaThrottleSpike", "KafkaQuotaThrottleSpike", "cluster"),
    ],
)
def test_a_join_that_forgets_a_label_is_found(subject: str, rule: str, label: str, tmp_path: Path) -> None:
    """An alert without a label in its joins, or in those of its recorded series, fires for its neighbors' values."""
    forgetful = _without(rule, label)
    assert any(try_case(case, tmp_path, rules=forgetful) for case in CROWDS[subject])


def _without(subject: str, label: str) -> dict[str, Any]:
    def forget(join: re.Match[str]) -> str:
        return f"on ({', '.join(name for name in join[1].split(', ') if name != label)})"

    group = RULES[subject]
    rule = group["rules"][0]
    return {**RULES, subject: {**group, "rules": [{**rule, "expr": _JOIN.sub(forget, rule["expr"])}]}}


STORM = "unless on (cluster) cluster:kafka_quota_throttle_storm:count\n"


@pytest.mark.real
@pytest.mark.parametrize(
    "change",
    [
        {STORM: "\n"},
        {"storm:count\n": "storm:count[25m])\n", "on (cluster) cluster": "on (cluster) max_over_time(cluster"},
    ],
    ids=["none", "too long"],
)
def test_a_wrong_guard_against_storms_is_found(change: dict[str, str], tmp_path: Path) -> None:
    """A guard without the current storm is found, and one with storms that have long ended."""
    subject = "KafkaQuotaThrottleBeyondClientTimeout"
    group = RULES[subject]
    rule = {**group["rules"][0]}
    for right, wrong in change.items():
        assert rule["expr"].count(right) == 1
        rule["expr"] = rule["expr"].replace(right, wrong)
    changed = {**RULES, subject: {**group, "rules": [rule]}}
    assert any(try_case(case, tmp_path, rules=changed) for case in BY_SUBJECT[subject])
