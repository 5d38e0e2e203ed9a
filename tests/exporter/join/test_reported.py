"""Utilization as brokers report it themselves. No released broker does: the numbers follow the text of KIP-1373."""

from math import nan

import pytest
from tests.exporter.exposition.oracle import lines
from tests.exporter.join.world import Numbers, World, entity, limits, only

from quotascope.exporter.mapping import Bean, BeanColumn
from quotascope.metrics import QuotaEntity, QuotaType

REQUEST = QuotaType.REQUEST
RULES = {REQUEST: {QuotaEntity("alice"): 200.0}}


def reported(percent: float, usage: float = 100.0) -> Numbers:
    """The bean of a client that uses ``usage`` of its 200 percent, with what the broker makes of it."""
    bean = Bean.of("kafka.server", {"type": "Request", "user": "alice"})
    return entity(REQUEST, "alice", usage=usage) | {BeanColumn(bean, "quota-utilization"): percent}


def test_it_is_shown_beside_ours() -> None:
    """Percent become a ratio, and ours stays what it is."""
    snapshot = World(limits(RULES)).collect_one(reported(50.5))
    assert only(snapshot).utilization == 0.5
    assert only(snapshot).reported_utilization == 0.505
    assert lines(snapshot, "kafka_quota_reported") == [
        'kafka_quota_reported_utilization_ratio{broker="1",client_id="",quota_type="request",user="alice"} 0.505'
    ]


@pytest.mark.parametrize(
    ("percent", "usage", "disagreements"),
    [
        (50.0, 100.0, 0),
        (51.9, 100.0, 0),
        (52.1, 100.0, 1),
        (47.9, 100.0, 1),
        (0.0, 0.0, 0),
        (1_015.0, 2_000.0, 0),
        (1_025.0, 2_000.0, 1),
        (nan, 100.0, 1),
        (50.0, nan, 0),
    ],
)
def test_two_points_or_two_percent_apart_is_too_far(percent: float, usage: float, disagreements: int) -> None:
    """A broker that enforces another limit, or none, is reported; a rate that moved between two readings is not."""
    snapshot = World(limits(RULES)).collect_one(reported(percent, usage))
    assert snapshot.nodes[0].utilization_disagreements == disagreements
    assert lines(snapshot, "quotascope_utilization") == [
        f'quotascope_utilization_disagreements{{broker="1"}} {disagreements}.0'
    ]


def test_a_broker_that_enforces_a_limit_we_do_not_know() -> None:
    """NaN agrees with no limit; a number does not."""
    everybody = {REQUEST: {QuotaEntity("alice"): 200.0, QuotaEntity("bob"): 0.0}}
    other = Bean.of("kafka.server", {"type": "Request", "user": "bob"})
    for percent, disagreements in ((nan, 0), (10.0, 1)):
        numbers = entity(REQUEST, "bob", usage=1.0)
        numbers[BeanColumn(other, "quota-utilization")] = percent
        snapshot = World(limits(everybody)).collect_one(numbers)
        assert snapshot.nodes[0].utilization_disagreements == disagreements


def test_nothing_is_compared_without_the_attribute_or_the_limits() -> None:
    """Today's brokers; and limits that no one could read, where the broker's own account is all there is."""
    silent = World(limits(RULES)).collect_one(entity(REQUEST, "alice", usage=100.0))
    assert silent.nodes[0].utilization_disagreements is None
    assert only(silent).reported_utilization is None
    unknown = World().collect_one(reported(50.0))
    assert unknown.nodes[0].utilization_disagreements is None
    assert only(unknown).reported_utilization == 0.5
    for snapshot in (silent, unknown):
        assert lines(snapshot, "quotascope_utilization") == []


def test_unlimited_is_not_shown() -> None:
    """There is no NaN on a page."""
    snapshot = World().collect_one(reported(nan))
    assert only(snapshot).reported_utilization is None
    assert lines(snapshot, "kafka_quota_reported") == []
