from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.examples import NOW, snapshot, usage
from tests.strategies import examples

from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.snapshot import EntityUsage
from quotascope.metrics.kafka.entities import QuotaType

START = NOW - NOW % 60


def noted(trails: Trails, seconds: float, *entities: EntityUsage) -> None:
    trails.note(replace(snapshot(*entities), taken_at=START + seconds))


def used(ratio: float, user: str = "alice", broker: str = "1") -> EntityUsage:
    return usage(user=user, broker=broker, usage=ratio * 1000, limit=1000.0)


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    """Earlier values stay earlier, and no value waits until the old time has come again."""
    trails = Trails(steps=4, step_seconds=10.0)
    noted(trails, 3_600, used(0.5))
    noted(trails, 0, used(0.25))
    noted(trails, 10, used(1.5))
    assert trails.utilization(used(0.0)) == [None, None, 0.5, 1.5]
    noted(trails, 3_600, used(0.125))
    assert trails.utilization(used(0.0)) == [None, None, None, 0.125]


@pytest.mark.parametrize("step", [3_600.5, -3_600.5, 86_400.0])
def test_a_clock_that_is_set_moves_no_step(step: float) -> None:
    """A clock that is set leaves the age of each step, and their times follow the new clock."""
    trails = Trails(steps=4, step_seconds=10.0)
    for steady, ratio in ((100.0, 0.5), (110.0, 0.25)):
        trails.note(replace(snapshot(used(ratio)), taken_at=START + steady, boot_seconds=steady))
    trails.note(replace(snapshot(used(1.5)), taken_at=START + step + 120, boot_seconds=120.0))
    assert trails.utilization(used(0.0)) == [None, 0.5, 0.25, 1.5]
    trail = trails.trail(used(0.0).entity)
    assert trail is not None
    assert trail.times.tolist() == [START + step + seconds for seconds in (90, 100, 110, 120)]


def test_who_is_not_seen_any_more_is_forgotten() -> None:
    """Clients that are not seen any more are forgotten and do not fill the memory."""
    trails = Trails(steps=3, step_seconds=10.0)
    for second in range(0, 1_000, 5):
        noted(trails, second, used(0.5, user=f"user-{second}"))
    assert len(trails) <= 6


def test_who_has_no_limit_has_a_trail_of_usage_and_throttles() -> None:
    """An entity without a limit has a trail of its usage and throttles, without utilization."""
    trails = Trails(steps=2, step_seconds=10.0)
    noted(trails, 0, usage(usage=5.0, throttle_time_seconds=0.5))
    noted(trails, 10, usage(usage=6.0, throttle_time_seconds=None))
    assert set(trails.utilization(usage())) == {None}
    trail = trails.trail(usage().entity)
    assert trail is not None
    assert trail.times.tolist() == [START, START + 10]
    assert trail.usage.tolist() == [5.0, 6.0]
    assert trail.throttle_time[0] == 0.5
    assert np.isnan(trail.throttle_time[1])
    assert trails.trail(usage(QuotaType.FETCH).entity) is None


def test_an_empty_bucket_presses_as_much_as_a_full_rate() -> None:
    """Mutations are refused by their bucket; used is the rate alone, as in the metrics."""
    broke = usage(QuotaType.CONTROLLER_MUTATION, usage=0.5, limit=1.0, tokens=-1.0, burst_tokens=10.0)
    assert (broke.used, broke.burst_used, broke.pressure) == (0.5, 1.1, 1.1)
    assert usage(usage=5.0).used is None


def test_only_the_throttled_and_the_fullest_have_a_trail() -> None:
    """Throttled and fullest clients have a trail, up to a maximum; the ones that were seen longest ago make room."""
    trails = Trails(steps=3, step_seconds=10.0, max_entities=2)
    slow = usage(user="dave", usage=1.0, throttle_time_seconds=1.0)
    noted(trails, 0, used(0.5, user="bob"), used(0.75), used(0.25, user="carol"), slow)
    assert trails.utilization(used(0.0)) == [None, None, 0.75]
    assert trails.utilization(used(0.0, user="bob")) == [None, None, None]
    assert trails.trail(slow.entity) is not None
    noted(trails, 10, used(0.5, user="bob"), used(0.75), used(0.25, user="carol"))
    assert trails.utilization(used(0.0, user="bob")) == [None, None, 0.5]
    assert trails.utilization(used(0.0)) == [None, 0.75, 0.75]
    assert (trails.trail(slow.entity), len(trails)) == (None, 2)


class Plain:
    """Trails in a dictionary for each step, to compare with."""

    def __init__(self) -> None:
        self.steps: dict[int, dict[tuple[str, str], float]] = {}

    def note(self, step: int, seen: Mapping[tuple[str, str], float]) -> None:
        values = self.steps.setdefault(step, {})
        for name, ratio in seen.items():
            values[name] = max(ratio, values.get(name, ratio))

    def of(self, name: tuple[str, str], last_step: int, count: int) -> list[float | None]:
        steps = range(last_step - count + 1, last_step + 1)
        return [self.steps.get(step, {}).get(name) for step in steps]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.dictionaries(
                st.tuples(st.sampled_from("abcde"), st.sampled_from("12")), st.sampled_from([0.0, 0.25, 0.5, 1.5])
            ),
        ),
        max_size=12,
    )
)
@settings(max_examples=examples(100))
def test_trails_are_those_of_a_plain_model(snapshots: list[tuple[int, dict[tuple[str, str], float]]]) -> None:
    """Entities come, leave, come again, and nothing may be seen for long."""
    trails, plain, step = Trails(steps=4, step_seconds=10.0), Plain(), 0
    for later, seen in snapshots:
        step += later
        noted(trails, 10 * step, *(used(ratio, *name) for name, ratio in seen.items()))
        plain.note(step, seen)
    for name in product("abcde", "12"):
        assert trails.utilization(used(0.0, *name)) == (plain.of(name, step, 4) if snapshots else [None] * 4)
