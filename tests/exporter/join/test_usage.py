"""Numbers in base units, sums of histograms, and utilization as brokers report it."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.exposition.oracle import lines
from tests.exporter.join.world import Numbers, Rules, World, bean, entity, leads, only
from tests.exporter.recorded import limits, read

from quotascope.exporter.join.usage import NodeCounters
from quotascope.exporter.snapshot import Entity, EntityUsage, LimitsHealth
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

PRODUCE, _, REQUEST, MUTATION = QuotaType
RULES: Rules = {kind: {QuotaEntity("a"): 50.0} for kind in QuotaType}


@pytest.mark.parametrize("tokens", [4e18, 1.0145709240540253e20, inf, nan])
def test_a_bucket_that_just_lost_its_limit_has_no_tokens(tokens: float) -> None:
    """Recorded: within a second of the removal bob's 22 tokens were 1.1e19, and no limit of ours was wrong yet."""
    entity_usage = only(World(limits(RULES)).collect_one(entity(MUTATION, "a", tokens=tokens)))
    assert (entity_usage.tokens, entity_usage.burst_used) == (None, None)


@pytest.mark.parametrize("limit", [None, 0.0])
def test_no_ratio_without_something_to_divide_by(limit: float | None) -> None:
    """Unlimited is not zero percent, and a limit of nothing is none of Kafka's."""
    entity_ = Entity(broker="1", quota_type=MUTATION, user="a", client_id="", limit=limit, burst_tokens=limit)
    usage = EntityUsage(entity=entity_, usage=1.0, tokens=1.0)
    assert (usage.utilization, usage.burst_used) == (None, None)


def test_a_throttle_that_no_node_measures_is_not_zero() -> None:
    """A mutation's throttle time, which no node measures under KRaft, is not shown as zero."""
    world = World()
    seen = [
        world.collect_one(entity(kind, "bob", usage=1.0, throttle_ms=throttle_ms))
        for kind in (PRODUCE, MUTATION)
        for throttle_ms in (nan, 0.0)
    ]
    rows = [lines(state, "kafka_quota_throttle_time_seconds{") for state in seen]
    assert [only(state).throttle_time_seconds for state in seen] == [0.0, 0.0, None, 0.0]
    assert list(map(len, rows)) == [1, 1, 0, 1]


@pytest.mark.parametrize(("rate", "expected"), [(0.0, None), (0.02, 0.02)])
def test_a_node_that_has_just_started_is_not_saturated(rate: float, expected: float | None) -> None:
    """A node is not called saturated in its first 5 s, when Kafka's meters still have a rate of 0."""
    pools = [
        bean("KafkaRequestHandlerPool", {"OneMinuteRate": rate}, name=f"{pool}RequestHandlerAvgIdlePercent")
        for pool in ("", "Broker")
    ]
    (node,) = World().collect_one(*pools).nodes
    of_pool = node.by_name(catalog.REQUEST_HANDLER_POOL_IDLE).get("broker")
    assert (node.number(catalog.REQUEST_HANDLER_IDLE), of_pool, node.handlers_idle) == (expected,) * 3


@pytest.mark.parametrize(
    ("numbers", "expected"), [({"StartTimeMs": 1.79e12}, 1.79e9), ({"StartTimeMs": nan}, None), ({}, None)]
)
def test_the_start_of_a_node_is_that_which_it_reports(numbers: dict[str, float], expected: float | None) -> None:
    """Kafka has it in milliseconds; without a number it is unknown."""
    (node,) = World().collect_one(bean("app-info", numbers, id="1"), entity(PRODUCE, "a", usage=1.0)).nodes
    assert node.started_at == expected


@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=50))
def test_the_sum_of_a_histogram_is_exact(throttles: list[int]) -> None:
    """A sum that is computed from mean and count is exact, for each request alone."""
    sums = NodeCounters()
    for count in range(1, len(throttles) + 1):
        mean = sum(throttles[:count]) / count
        assert sums.sum_ms("Produce", mean, count) == sum(throttles[:count])
    assert sums.sum_ms("Fetch", 1.0, 5) == 5


def test_the_sum_of_a_histogram_does_not_go_back_until_a_restart() -> None:
    """A histogram's sum that is too high, as mean and count are read apart, does not go back until a restart."""
    sums = NodeCounters()
    readings = [
        (1.0, 100.0, 11, 1_100),
        (1.0, 1_000 / 11, 11, 1_100),
        (1.0, 100.0, 12, 1_200),
        (1.0, 1.0, 3, 1_200),  # an older answer
        (2.0, 1.0, 20, 20),
        (2.0, 1.0, 21, 21),
    ]
    for started_at, mean, count, total in readings:
        sums.begin(started_at, 0.0)
        assert (count, sums.sum_ms("Fetch", mean, count)) == (count, total)


def test_a_smaller_count_is_a_restart_where_no_start_time_is_reported() -> None:
    """A smaller count is a restart where no start time is reported."""
    sums = NodeCounters()
    readings = [(100.0, 11, 1_100), (1.0, 3, 3), (100.0, 10, 1_000)]
    for mean, count, total in readings:
        sums.begin(None, 0.0)
        assert sums.sum_ms("Fetch", mean, count) == total
        assert sums.count("errors", count) == count


def test_counters_continue_after_an_older_answer_and_another_agent() -> None:
    """Counters continue by the node's start, after a second source's older answer and after a wrong agent."""
    counters = NodeCounters()
    readings = [
        (1.0, 50.0, 50.0),
        (1.0, 40.0, 50.0),
        (9.0, 3.0, 3.0),
        (1.0, 45.0, 50.0),
        (1.0, 51.0, 51.0),
        (2.0, 0.0, 0.0),
    ]
    for started_at, count, expected in readings:
        counters.begin(started_at, 0.0)
        held = counters.never_decreasing({catalog.THROTTLING_ERRORS: {("Produce",): count, ("Fetch",): None}})
        assert held == {catalog.THROTTLING_ERRORS: {("Produce",): expected, ("Fetch",): None}}
    for started_at in range(10, 100):
        counters.begin(float(started_at), 0.0)
    assert len(counters._starts) == 4


@pytest.mark.parametrize("absurd", [2.0**63, 1e300])
def test_an_absurd_reading_does_not_hold_a_counter_for_ever(absurd: float) -> None:
    """
    A reading that no other confirms holds a counter for five minutes, in case later ones are older answers.

    Then the counter goes on with what is read, and not back again.
    """
    counters = NodeCounters()
    counted = []
    for read_at, count in (
        (0, 50.0),
        (15, absurd),
        (30, 51.0),
        (300, 51.0),
        (330, 51.0),
        (345, 52.0),
        (360, 51.0),
        (375, 53.0),
    ):
        counters.begin(1.0, float(read_at))
        counted.append((counters.count("errors", count), counters.sum_ms("Fetch", 2.0, count)))
    assert [number for number, _ in counted] == [50.0, *[absurd] * 4, 52.0, 52.0, 53.0]
    assert [total for _, total in counted] == [100.0, *[2 * absurd] * 4, 104.0, 104.0, 106.0]


def test_an_answer_that_is_shown_again_confirms_no_reading() -> None:
    """An old answer in several collections counts as a single reading, also if it is wrong."""
    counters = NodeCounters()
    for read_at, asked_at, count in ((15, 10.0, 1e9), (30, 10.0, 1e9), (45, 40.0, 51.0), (345, 340.0, 52.0)):
        counters.begin(1.0, float(read_at), asked_at)
        last = counters.count("errors", count)
    assert last == 52.0


@pytest.mark.parametrize(
    ("readings", "counted"),
    [
        ([(15, 100.0), (30, 100.0), (345, 10.0), (360, 20.0)], 100.0),  # confirmed
        ([(15, 100.0), (345, 60.0), (360, 70.0)], 100.0),  # to count 70 again would be worse
        ([(15, 1_000.0), (345, 40.0), (900, 40.0)], 1_000.0),  # an agent that gives the same again and again
    ],
)
def test_a_counter_of_one_start_is_held(readings: list[tuple[int, float]], counted: float) -> None:
    """A counter is held, however long, until its node's reading reaches it or its start changes."""
    counters = NodeCounters()
    for read_at, count in readings:
        counters.begin(1.0, float(read_at))
        last = counters.count("errors", count)
    assert last == counted


def test_a_source_without_a_start_takes_over() -> None:
    """A lower reading without a start time makes the counter unknown until it is reached, or overdue and growing."""
    counters = NodeCounters()
    readings: list[tuple[int, float | None, float, float | None]] = [
        (0, 1.0, 50.0, 50.0),
        (15, None, 40.0, None),
        (30, None, 50.0, 50.0),
        (45, None, 55.0, 55.0),
        (60, 1.0, 54.0, 55.0),
        (75, 1.0, 60.0, 60.0),
        (90, None, 3.0, None),  # the node was started again
        (375, None, 3.0, None),
        (390, None, 5.0, 5.0),
        (405, None, 6.0, 6.0),
        (420, 2.0, 7.0, 7.0),
        (435, 2.0, 6.0, 7.0),
    ]
    for read_at, started_at, count, counted in readings:
        counters.begin(started_at, float(read_at))
        assert (read_at, counters.count("errors", count)) == (read_at, counted)


def test_a_source_with_a_start_takes_over() -> None:
    """A counter continues when a source reports the node's start for the first time."""
    counters = NodeCounters()
    for read_at, started_at, count, counted in (
        (0, None, 50.0, 50.0),
        (15, 1.0, 45.0, None),
        (30, 1.0, 51.0, 51.0),
        (45, 1.0, 50.0, 51.0),
    ):
        counters.begin(started_at, float(read_at))
        assert (read_at, counters.count("errors", count)) == (read_at, counted)


def test_a_sum_that_no_number_holds_is_unknown() -> None:
    """An infinite sum of an agent's numbers is unknown, and other numbers and nodes are not affected."""
    sums = NodeCounters()
    sums.begin(1.0, 0.0)
    assert [sums.sum_ms("Produce", mean, 1e300) for mean in (1e300, -1e300)] == [None, None]
    assert sums.sum_ms("Produce", 2.0, 3.0) == 6.0
    histogram = {"Mean": 1e300, "Count": 1e300}
    hostile = [
        bean("RequestMetrics", histogram, "kafka.network", name="ThrottleTimeMs", request="Produce"),
        bean("ControllerEventManager", histogram, "kafka.controller", name="EventQueueTimeMs"),
        leads(1.0),
        entity(PRODUCE, "alice", usage=1.0),
    ]
    state = World().collect({"1": hostile, "2": [entity(PRODUCE, "alice", usage=2.0)]})
    assert [usage.usage for usage in state.entities] == [1.0, 2.0]
    assert state.nodes[0].by_name(catalog.REQUEST_THROTTLED_SECONDS) == {}
    assert state.nodes[0].number(catalog.CONTROLLER_EVENT_QUEUE_SECONDS) is None
    assert state.nodes[0].number(catalog.CONTROLLER_EVENTS) == 1e300


def test_names_that_never_end_are_forgotten() -> None:
    """Ever new names of an agent are forgotten, the oldest first."""
    sums = NodeCounters()
    for number in range(2_000):
        sums.sum_ms(str(number), 1.0, 10.0)
    assert len(sums._counters) == 2_000
    assert sums.sum_ms("1999", 1.0, 10.0) == 10
    assert len(sums._counters) == 2_000


ALICE = {REQUEST: {QuotaEntity("alice"): 200.0, QuotaEntity("bob"): 0.0}}
"""No released broker reports utilization: the numbers follow the text of KIP-1373."""


def reported(percent: float, usage: float = 100.0, user: str = "alice") -> Numbers:
    """Return the bean of a client that uses ``usage`` of 200 percent, with what the broker makes of it."""
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
    assert snapshot.nodes[0].number(catalog.UTILIZATION_DISAGREEMENTS) == disagreements
    series = f'quotascope_utilization_disagreements{{broker="1"}} {disagreements}.0'
    assert lines(snapshot, "quotascope_utilization") == [series]


def test_nodes_that_are_gone_are_forgotten() -> None:
    """Nodes that are gone are forgotten, their large tables within minutes and their totals within an hour."""
    world = World()
    beans = entity(PRODUCE, "alice", usage=1.0)
    for number in range(50):
        world.collect({str(number): [beans], "stays": [beans]}, seconds=600.0)
    join = world.join
    world.collect({"stays": [beans]}, seconds=60.0)  # one that is missed for a minute is not gone
    for large in (join._placing._nodes, join._staleness.read_under):
        assert set(large) == {"stays", "49"}
    assert join._placing._layout.entities.size == 2
    for totals in (join._with_totals._entries, join._nodes.counters):
        assert set(totals) == {"stays", *map(str, range(44, 50))}


@pytest.mark.parametrize("step", [7_200.0, -7_200.0])
def test_a_clock_that_is_set_forgets_no_node(step: float) -> None:
    """Totals of a node that was missed for a moment would begin again at 0."""
    world, beans = World(), entity(PRODUCE, "alice", usage=1.0)

    def collect(unix_seconds: float, boot_seconds: float, *nodes: str) -> None:
        reads = [read(world.table(node, beans)) for node in nodes]
        world.join.snapshot(reads, None, LimitsHealth(), unix_seconds, boot_seconds)

    collect(10_000.0, 50.0, "1", "2")
    collect(10_015.0 + step, 65.0, "1")
    assert set(world.join._with_totals._entries) == {"1", "2"}
    assert set(world.join._with_entities._entries) == {"1", "2"}
    collect(10_400.0, 450.0, "1")
    assert set(world.join._with_entities._entries) == {"1"}
