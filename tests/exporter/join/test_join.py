"""What one snapshot is made of, when sources fail or say odd things."""

from tests.exporter.join.world import Rules, World, entity, limits
from tests.exporter.recorded import read

from quotascope.exporter.snapshot import LimitsHealth, SourceHealth, SourceRead
from quotascope.metrics import QuotaEntity, QuotaType

PRODUCE = QuotaType.PRODUCE
RULES: Rules = {PRODUCE: {QuotaEntity("a"): 10.0}}


def test_a_failed_source_leaves_the_others() -> None:
    """One node down at three in the morning: the rest is shown, and what is wrong."""
    world = World(limits(RULES))
    down = SourceHealth(name="b", dialect="jolokia", up=False, duration_seconds=5.0, error="no answer")
    reads = [
        SourceRead(health=down, table=None),
        read(world.table("1", entity(PRODUCE, "a", usage=1.0))),
    ]
    snapshot = world.join.snapshot(reads, world.limits, LimitsHealth(), 1.0)
    assert [health.up for health in snapshot.sources] == [False, True]
    assert len(snapshot.entities) == len(snapshot.nodes) == 1
    assert snapshot.taken_at == 1.0
    assert snapshot.limits is world.limits


def test_nodes_that_are_gone_are_forgotten() -> None:
    """Nodes that get a new id with each start do not add up: what is large goes in minutes, totals in an hour."""
    world = World()
    beans = entity(QuotaType.PRODUCE, "alice", usage=1.0)
    for number in range(50):
        world.collect({str(number): [beans], "stays": [beans]}, after=600.0)
    kept = world.join
    world.collect({"stays": [beans]}, after=60.0)  # one that is missed for a minute is not gone
    for large in (kept._placing._nodes, kept._staleness.read_under):
        assert set(large) == {"stays", "49"}
    assert kept._placing._layout.entities.size == 2
    for totals in (kept._with_totals._entries, kept._nodes.sums):
        assert set(totals) == {"stays", *map(str, range(44, 50))}
