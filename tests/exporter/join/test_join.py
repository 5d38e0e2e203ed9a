"""What one snapshot is made of, when sources fail or say odd things."""

from tests.exporter.join.world import Rules, World, entity, limits
from tests.exporter.recorded import read

from quotascope.exporter.mapping import Bean, BeanColumn
from quotascope.exporter.snapshot import LimitsHealth, SourceHealth, SourceRead
from quotascope.metrics import QuotaEntity, QuotaType

PRODUCE = QuotaType.PRODUCE
RULES: Rules = {PRODUCE: {QuotaEntity("a"): 10.0}}


def test_a_failed_source_leaves_the_others() -> None:
    """One node down at three in the morning: the rest is shown, and what is wrong."""
    world = World(limits(RULES))
    down = SourceHealth(
        name="b", dialect="jolokia", up=False, duration_seconds=5.0, error="no answer"
    )
    reads = [
        SourceRead(health=down, table=None),
        read(world.table("1", entity(PRODUCE, "a", usage=1.0))),
    ]
    snapshot = world.join.snapshot(reads, world.limits, LimitsHealth(), 1.0)
    assert [health.up for health in snapshot.sources] == [False, True]
    assert len(snapshot.entities) == len(snapshot.nodes) == 1
    assert snapshot.taken_at == 1.0
    assert snapshot.limits is world.limits


def test_a_source_that_comes_back_is_compared_with_its_last_read() -> None:
    """A bean that was there before the outage is no new one."""
    world = World(limits(RULES))
    world.collect_one(entity(PRODUCE, "", "c", usage=10.0))
    world.collect({})
    assert world.collect_one(entity(PRODUCE, "", "c", usage=10.0)).entities == ()


def test_a_number_that_is_none_stays_away_from_the_node() -> None:
    """NaN in the node's own numbers is absence."""
    bean = Bean.of("kafka.server", {"type": "Request"})
    snapshot = World(limits(RULES)).collect_one(
        {
            BeanColumn(bean, "queue-size"): float("nan"),
            BeanColumn(bean, "exempt-request-time"): float("inf"),
        }
    )
    (node,) = snapshot.nodes
    assert node.delay_queue_size == {}
    assert node.exempt_request_threads is None
    assert node.active_controller is None


def test_limits_of_other_nodes_do_not_matter() -> None:
    """A node whose settings could not be read has no capacity, but limits."""
    world = World(limits(RULES, nodes=("9",)))
    snapshot = world.collect_one(entity(PRODUCE, "a", usage=5.0))
    assert snapshot.nodes[0].request_capacity_threads is None
    assert snapshot.entities[0].utilization == 0.5


def test_nodes_that_are_gone_are_forgotten() -> None:
    """Nodes that get a new id with each start do not add up: what is large goes in minutes, totals in an hour."""
    world = World()
    beans = entity(QuotaType.PRODUCE, "alice", usage=1.0)
    for number in range(50):
        world.collect({str(number): [beans], "stays": [beans]}, after=600.0)
    kept = world.join
    world.collect(
        {"stays": [beans]}, after=60.0
    )  # one that is missed for a minute is not gone
    for large in (kept._placing._nodes, kept._staleness.read_under):
        assert set(large) == {"stays", "49"}
    assert kept._placing._layout.entities.size == 2
    for totals in (kept._read_at, kept._nodes.sums):
        assert set(totals) == {"stays", *map(str, range(44, 50))}
