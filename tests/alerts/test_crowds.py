"""Every alert in a crowd: clients and clusters of whom it must not take notice."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.alerts.crowds import crowds
from tests.alerts.promtool import RULES, Case, cases, try_case

_JOIN = re.compile(r"on \(([^)]*)\)")
CROWDS = {
    subject: list(crowds(list(group)))
    for subject, group in groupby(cases(), key=lambda case: case.subject)
    if subject != "records"
}


@pytest.mark.real
@pytest.mark.parametrize("subject", CROWDS)
def test_neighbors_change_nothing(subject: str, tmp_path: Path) -> None:
    """What fires alone fires amid others, too, and nothing else does."""
    said = "".join(try_case(case, tmp_path) for case in CROWDS[subject])
    assert said == "", said


@pytest.mark.real
def test_a_number_around_the_threshold_silences_no_alert(tmp_path: Path) -> None:
    """Where 50 clients are near their limits, and one more every few minutes, the 50 have their alerts."""
    often = " ".join(["0.95x5 stale _x3"] * 20)
    case = Case(
        subject="KafkaQuotaNearLimit",
        content={
            "case": "One client comes and goes.",
            "series": {
                f'kafka_quota_utilization_ratio{{quota_type="produce",broker="1",user="u{user}",client_id="c"}}': "0.95x180"
                if user < 50
                else often
                for user in range(51)
            },
            "fires": [
                {
                    "at": "2h",
                    "labels": {
                        "quota_type": "produce",
                        "user": f"u{user}",
                        "client_id": "c",
                    },
                    "description": f'Over half an hour, user "u{user}" with client-id "c" used 95% of its produce quota on its busiest broker and was not throttled: Kafka will throttle it there above 100%.',
                    "dashboard": f"quotascope-entity?var-cluster=&var-user=u{user}&var-client_id=c",
                }
                for user in range(50)
            ],
            "records": [
                {
                    "eval_time": time,
                    "expr": "count(entity:kafka_quota_utilization_ratio:avg30m and entity:kafka_quota_utilization_ratio:max) > 50",
                    "exp_samples": [{"labels": "{}", "value": "51"}] if often else [],
                }
                for time, often in (("110m", True), ("118m", False))
            ],
        },
    )
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
    group = RULES[subject]
    rule = group["rules"][0]
    expr = _JOIN.sub(lambda found: _forgets(found[1], label), rule["expr"])
    changed = {**group, "rules": [{**rule, "expr": expr}]}
    return {**RULES, subject: changed}


def _forgets(labels: str, label: str) -> str:
    kept = [each for each in labels.split(", ") if each != label]
    return f"on ({', '.join(kept)})"
