"""Every alert in a crowd: clients and clusters of whom it must not take notice."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

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
    first, *others = CROWDS[subject]
    said = try_case(first, tmp_path, *others)
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
def test_a_join_that_forgets_a_label_is_found(
    subject: str, label: str, tmp_path: Path
) -> None:
    """Without a label in its joins, the alert takes its neighbors' values for its own."""
    assert _without(subject, label, CROWDS[subject], tmp_path) != ""


def _without(subject: str, label: str, crowd: list[Case], folder: Path) -> str:
    group = RULES[subject]
    rule = group["rules"][0]
    expr = _JOIN.sub(lambda found: _forgets(found[1], label), rule["expr"])
    changed = {**group, "rules": [{**rule, "expr": expr}]}
    return try_case(crowd[0], folder, *crowd[1:], rules={**RULES, subject: changed})


def _forgets(labels: str, label: str) -> str:
    kept = [each for each in labels.split(", ") if each != label]
    return f"on ({', '.join(kept)})"
