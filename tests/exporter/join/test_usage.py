"""Numbers in base units, sums of histograms, and utilization as brokers report it."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.exposition.oracle import lines
from tests.exporter.join.world import Numbers, Rules, World, bean, entity, only
from tests.exporter.recorded import limits

from quotascope.exporter.join.usage import HistogramSums
from quotascope.exporter.snapshot import Entity, EntityUsage
from quotascope.metrics import QuotaEntity, QuotaType

PRODUCE, _, REQUEST, MUTATION = QuotaType
RULES: Rules = {kind: {QuotaEntity("a"): 50.0} for kind in QuotaType}


@pytest.mark.parametrize("tokens", [4e18, 1.0145709240540253e20, inf, nan])
def test_a_bucket_that_just_lost_its_limit_has_no_tokens(tokens: float) -> None:
    """Recorded: within a second of the removal bob's 22 tokens were 1.1e19, and no limit of ours was wrong yet."""
    found = only(World(limits(RULES)).collect_one(entity(MUTATION, "a", tokens=tokens)))
    assert (found.tokens, found.burst_used) == (None, None)


@pytest.mark.parametrize("limit", [None, 0.0])
def test_no_ratio_without_something_to_divide_by(limit: float | None) -> None:
    """Unlimited is not zero percent, and a limit of nothing is none of Kafka's."""
    entity_ = Entity(broker="1", quota_type=MUTATION, user="a", client_id="", limit=limit, burst_tokens=limit)
    usage = EntityUsage(entity=entity_, usage=1.0, tokens=1.0)
    assert (usage.utilization, usage.burst_used) == (None, None)


def test_a_throttle_that_no_node_measures_is_not_zero() -> None:
    """Under KRaft the controller never records one for mutations, although clients wait: nothing is shown."""
    world = World()
    seen = [
        world.collect_one(entity(kind, "bob", usage=1.0, throttle_ms=throttle_ms))
        for kind in (PRODUCE, MUTATION)
        for throttle_ms in (nan, 0.0)
    ]
    rows = [lines(each, "kafka_quota_throttle_time_seconds{") for each in seen]
    assert [only(each).throttle_time_seconds for each in seen] == [0.0, 0.0, None, 0.0]
    assert list(map(len, rows)) == [1, 1, 0, 1]


@pytest.mark.parametrize(("rate", "expected"), [(0.0, None), (0.02, 0.02)])
def test_a_node_that_has_just_started_is_not_saturated(rate: float, expected: float | None) -> None:
    """Measured: for 5 s Kafka's meters have a rate of 0, whatever they have counted."""
    pools = [
        bean("KafkaRequestHandlerPool", {"OneMinuteRate": rate}, name=f"{pool}RequestHandlerAvgIdlePercent")
        for pool in ("", "Broker")
    ]
    load = World().collect_one(*pools).nodes[0].load
    assert (load.handlers_idle, load.pools_idle.get("broker"), load.idle) == (expected,) * 3


@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=50))
def test_the_sum_of_a_histogram_is_exact(throttles: list[int]) -> None:
    """The division for the mean and the multiplication lose nothing, and each request is counted alone."""
    sums = HistogramSums()
    for count in range(1, len(throttles) + 1):
        mean = sum(throttles[:count]) / count
        assert sums.sum_ms("Produce", mean, count) == sum(throttles[:count])
    assert sums.sum_ms("Fetch", 1.0, 5) == 5


def test_the_sum_of_a_histogram_does_not_go_back_until_a_restart() -> None:
    """A request between the readings of mean and count makes it too high; a restart shows in start time or count."""
    sums = HistogramSums()
    readings = [
        (1.0, 100.0, 11, 1_100),
        (1.0, 1_000 / 11, 11, 1_100),
        (1.0, 100.0, 12, 1_200),
        (1.0, 1.0, 3, 3),
        (1.0, 100.0, 10, 1_000),
        (2.0, 1.0, 20, 20),
    ]
    for started_at, mean, count, total in readings:
        sums.began(started_at)
        assert (count, sums.sum_ms("Fetch", mean, count)) == (count, total)


def test_names_that_never_end_are_forgotten() -> None:
    """An agent may make names up; those that came first go first."""
    sums = HistogramSums()
    for number in range(2_000):
        sums.sum_ms(str(number), 1.0, 10.0)
    assert len(sums._sums) == 1_000
    assert sums.sum_ms("1999", 1.0, 10.0) == 10
    assert len(sums._sums) == 1_000


ALICE = {REQUEST: {QuotaEntity("alice"): 200.0, QuotaEntity("bob"): 0.0}}
"""No released broker reports utilization: the numbers follow the text of KIP-1373."""


def reported(percent: float, usage: float = 100.0, user: str = "alice") -> Numbers:
    """The bean of a client that uses ``usage`` of 200 percent, with what the broker makes of it."""
    return entity(REQUEST, user, usage=usage) | bean("Request", {"quota-utilization": percent}, user=user)


@pytest.mark.parametrize(
    ("beans", "disagreements"),
    [
        (reported(50.0), 0),
        (reported(51.9), 0),
        (reported(52.1), 1),
        (reported(47.9), 1),
        (reported(0.0, usage=0.0), 0),
        (reported(1_015.0, usage=2_000.0), 0),
        (reported(1_025.0, usage=2_000.0), 1),
        (reported(nan), 1),
        (reported(50.0, usage=nan), 0),
        # no limit of ours to compare with: NaN agrees, a number does not
        (reported(nan, 1.0, "bob"), 0),
        (reported(10.0, 1.0, "bob"), 1),
    ],
)
def test_two_points_or_two_percent_apart_is_too_far(beans: Numbers, disagreements: int) -> None:
    """A broker that enforces another limit, or none, is reported; a rate that moved between two readings is not."""
    snapshot = World(limits(ALICE)).collect_one(beans)
    assert snapshot.nodes[0].utilization_disagreements == disagreements
    shown = f'quotascope_utilization_disagreements{{broker="1"}} {disagreements}.0'
    assert lines(snapshot, "quotascope_utilization") == [shown]


def test_nodes_that_are_gone_are_forgotten() -> None:
    """Nodes that get a new id with each start do not add up: what is large goes in minutes, totals in an hour."""
    world = World()
    beans = entity(PRODUCE, "alice", usage=1.0)
    for number in range(50):
        world.collect({str(number): [beans], "stays": [beans]}, after=600.0)
    kept = world.join
    world.collect({"stays": [beans]}, after=60.0)  # one that is missed for a minute is not gone
    for large in (kept._placing._nodes, kept._staleness.read_under):
        assert set(large) == {"stays", "49"}
    assert kept._placing._layout.entities.size == 2
    for totals in (kept._with_totals._entries, kept._nodes.sums):
        assert set(totals) == {"stays", *map(str, range(44, 50))}
