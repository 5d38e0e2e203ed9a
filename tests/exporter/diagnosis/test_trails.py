from dataclasses import replace

from tests.exporter.examples import NOW, snapshot, usage

from quotascope.exporter.diagnosis.trails import Trails, used_part
from quotascope.exporter.snapshot import EntityUsage
from quotascope.metrics import QuotaType

START = NOW - NOW % 60


def noted(trails: Trails, seconds: float, *entities: EntityUsage) -> None:
    """A snapshot so long after the start."""
    trails.note(replace(snapshot(*entities), taken_at=START + seconds))


def used(ratio: float, user: str = "alice", broker: str = "1") -> EntityUsage:
    """Somebody who uses so much of a limit."""
    return usage(user=user, broker=broker, usage=ratio * 1000, limit=1000.0)


def test_the_greatest_of_each_stretch_is_kept() -> None:
    """The latest last; what was not seen is unknown, not zero."""
    trails = Trails(steps=4, step_seconds=10.0)
    noted(trails, 0, used(0.5))
    noted(trails, 9, used(0.25))
    noted(trails, 20, used(1.5))
    assert trails.of(used(0.0)) == [None, 0.5, None, 1.5]
    noted(trails, 45, used(0.125))
    assert trails.of(used(0.0)) == [None, 1.5, None, 0.125]


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    """What came before stays before, and nothing waits until the old time has come again."""
    trails = Trails(steps=4, step_seconds=10.0)
    noted(trails, 3_600, used(0.5))
    noted(trails, 0, used(0.25))
    noted(trails, 10, used(1.5))
    assert trails.of(used(0.0)) == [None, None, 0.5, 1.5]
    noted(trails, 3_600, used(0.125))
    assert trails.of(used(0.0)) == [None, None, None, 0.125]


def test_each_entity_of_each_node_has_its_own() -> None:
    """And each quota type; a stranger has none."""
    trails = Trails(steps=2, step_seconds=10.0)
    noted(trails, 0, used(0.5), used(0.75, broker="2"))
    assert trails.of(used(0.0, broker="2")) == [None, 0.75]
    assert trails.of(usage(QuotaType.FETCH)) == [None, None]


def test_who_is_not_seen_any_more_is_forgotten() -> None:
    """Churning clients do not fill the memory."""
    trails = Trails(steps=3, step_seconds=10.0)
    for second in range(0, 1_000, 5):
        noted(trails, second, used(0.5, user=f"user-{second}"))
    assert len(trails._trails) <= 6


def test_who_has_no_limit_has_no_trail() -> None:
    """There is nothing to be full."""
    trails = Trails()
    noted(trails, 0, usage(usage=5.0))
    assert set(trails.of(usage())) == {None}


def test_an_empty_bucket_counts_as_much_as_a_full_rate() -> None:
    """Mutations are refused by their bucket."""
    broke = usage(
        QuotaType.CONTROLLER_MUTATION,
        usage=0.5,
        limit=1.0,
        tokens=-1.0,
        burst_tokens=10.0,
    )
    assert used_part(broke) == 1.1
    assert used_part(usage(usage=5.0)) is None


def test_only_the_fullest_have_a_trail() -> None:
    """However many clients there are, what is remembered of them stays small."""
    trails = Trails(steps=2, step_seconds=10.0, most=1)
    noted(trails, 0, used(0.5, user="bob"), used(0.75), used(0.25, user="carol"))
    assert trails.of(used(0.0)) == [None, 0.75]
    assert trails.of(used(0.0, user="bob")) == [None, None]
