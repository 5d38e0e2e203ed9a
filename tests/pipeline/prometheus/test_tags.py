from __future__ import annotations

import pytest

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.pipeline.prometheus.tags import Names, measured_as
from quotascope.quotas import QuotaSet

PAIRS = {("alice", "a"), ("alice", "b"), ("bob", "a")}


def rules_of(*entities: QuotaEntity) -> RuleTable:
    quotas = QuotaSet({entity: {"producer_byte_rate": 1000.0} for entity in entities})
    return quotas.tables()[QuotaType.PRODUCE]


@pytest.mark.parametrize(
    ("entities", "names", "measured", "expected"),
    [
        # as brokers measured them
        ([QuotaEntity("alice", "a")], ("alice", "a"), PAIRS, ("alice", "a")),
        ([QuotaEntity("alice")], ("alice", ""), {("alice", "")}, ("alice", "")),
        ([QuotaEntity(None, "a")], ("", "a"), {("", "a")}, ("", "a")),
        # added up
        ([QuotaEntity("alice")], ("alice", "a"), PAIRS, ("alice", "")),
        ([QuotaEntity(DEFAULT)], ("alice", "b"), PAIRS, ("alice", "")),
        ([QuotaEntity(None, "a")], ("alice", "a"), PAIRS, ("", "a")),
        # in part measured otherwise
        ([QuotaEntity("alice")], ("alice", "a"), {*PAIRS, ("alice", "")}, None),
        ([QuotaEntity("alice"), QuotaEntity("alice", "b")], ("alice", "a"), PAIRS, None),
        # measured together, limited apart
        ([QuotaEntity("alice", "a")], ("alice", ""), {("alice", "")}, None),
        ([QuotaEntity("alice"), QuotaEntity("alice", "a")], ("alice", ""), {("alice", "")}, None),
        ([QuotaEntity("alice")], ("", "a"), {("", "a")}, None),
        ([QuotaEntity("alice"), QuotaEntity(None, "a")], ("", "a"), {("", "a")}, None),
    ],
)
def test_what_samples_tell_of_a_candidate(
    entities: list[QuotaEntity], names: Names, measured: set[Names], expected: Names | None
) -> None:
    """A candidate's entity is what brokers measured, or a sum of all of it; otherwise it is unknown, with a reason."""
    tags, reason = measured_as(rules_of(*entities), names, measured)
    assert tags == expected
    assert bool(reason) is (expected is None)
