"""
Time by which stages would be shorter without throttle times.

It is no more than they took, and no more than all throttle times together.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.spark_listener.report.critical_path import Saving, Slots, critical_seconds

Attempt = tuple[str, float, float, float | None]
"""Executor, when it began and ended, and the throttle time that it noted."""


def slots(*attempts: Attempt) -> Slots:
    """A stage's attempts, in the order in which they ended."""
    calls = Slots()
    for attempt in sorted(attempts, key=lambda attempt: attempt[2]):
        calls.add(*attempt)
    return calls


@pytest.mark.parametrize(
    ("attempts", "share", "saved"),
    [
        pytest.param([("1", 0, 10, 4.0)], 0, 4, id="one attempt"),
        pytest.param([("1", 0, 10, 99.0)], 0, 10, id="several clients waited at once"),
        pytest.param([("1", 0, 10, None)], 0.4, 4, id="by its share"),
        pytest.param([("1", 0, 10, 4.0), ("1", 0, 9, 4.0)], 0, 4, id="two cores wait at the same time"),
        pytest.param([("1", 0, 10, 4.0), ("2", 0, 10, 0.0)], 0, 0, id="another executor takes as long"),
        pytest.param([("1", 0, 10, 4.0), ("2", 0, 8, 0.0)], 0, 2, id="another executor is the longest then"),
        pytest.param([("1", 0, 5, 2.0), ("1", 5, 10, 3.0)], 0, 5, id="one after the other"),
        pytest.param([("1", 0, 10, None), ("2", 0, 9, 0.0)], 0.5, 1, id="with and without notes"),
        pytest.param([("1", 0, 10, None), ("1", 5, 20, None), ("1", 10, 12, None)], 0.2, 3, id="the longest chain"),
        pytest.param([], 0.5, 0, id="no attempt"),
    ]
)  # fmt: skip
def test_stage(attempts: list[Attempt], share: float, saved: float) -> None:
    """The longest chain of attempts on a core decides, with and without their throttle times."""
    assert slots(*attempts).saved(share) == pytest.approx(saved)


@pytest.mark.parametrize(
    ("stages", "seconds"),
    [
        pytest.param([(0, 10, 4)], 4, id="one"),
        pytest.param([(0, 10, 4), (10, 20, 3)], 7, id="one after the other"),
        pytest.param([(0, 10, 4), (0, 10, 3)], 4, id="at the same time"),
        pytest.param([(0, 10, 10), (5, 15, 5)], 12.5, id="at the same time for a while"),
        pytest.param([(0, 10, 4), (50, 60, 4), (3, 4, 0)], 8, id="with a pause"),
        pytest.param([(0, 10, 99)], 10, id="never more than it took"),
        pytest.param([(10, 0, 4), (5, 5, 1)], 0, id="a clock that was set"),
        pytest.param([], 0, id="none"),
    ]
)  # fmt: skip
def test_stages(stages: list[tuple[float, float, float]], seconds: float) -> None:
    """Stages that ran at the same time are not added up."""
    assert critical_seconds(Saving(*stage) for stage in stages) == pytest.approx(seconds)


_TIMES = st.floats(0, 1_000)
_ATTEMPT = st.builds(
    lambda executor, began, took, throttled: (executor, began, began + took, throttled and throttled * took),
    st.sampled_from(["1", "2", "3"]),
    _TIMES,
    _TIMES,
    st.none() | st.floats(0, 1),
)


@given(st.lists(st.lists(_ATTEMPT, min_size=1, max_size=8), max_size=6), st.floats(0, 1))
def test_never_more_than_the_wall_time_nor_the_sum(stages: list[list[Attempt]], share: float) -> None:
    """The saved time is never less than what one of the stages saves."""
    savings = [
        Saving(min(attempt[1] for attempt in stage), max(attempt[2] for attempt in stage), slots(*stage).saved(share))
        for stage in stages
    ]  # fmt: skip
    found = critical_seconds(savings)
    throttled = sum(
        (ended - began) * share if noted is None else noted for stage in stages for _, began, ended, noted in stage
    )
    wall = critical_seconds(row._replace(saved=row.ended - row.began) for row in savings)
    most = max((row.ended for row in savings), default=0.0) - min((row.began for row in savings), default=0.0)
    for limit in (throttled, sum(row.saved for row in savings), wall, most):
        assert found <= limit + 1e-6
    for row in savings:
        assert 0 <= row.saved <= row.ended - row.began + 1e-6
        assert found >= row.saved - 1e-6


@given(st.lists(_ATTEMPT, max_size=30), st.floats(0, 1))
def test_a_stage_that_is_over_saves_as_much(attempts: list[Attempt], share: float) -> None:
    """An attempt that is forgotten at its end decides nothing."""
    closed, attempts = slots(*attempts), sorted(attempts, key=lambda attempt: attempt[2])
    chains: dict[str, list[list[Attempt]]] = {}
    for attempt in attempts:
        own = chains.setdefault(attempt[0], [])
        fitting = [chain for chain in own if chain[-1][2] <= attempt[1]]
        if fitting:
            max(fitting, key=lambda chain: chain[-1][2]).append(attempt)
        else:
            own.append([attempt])
    lengths, without = [0.0], [0.0]
    for chain in (chain for own in chains.values() for chain in own):
        took = [(ended - began, noted) for _, began, ended, noted in chain]
        lengths.append(sum(seconds for seconds, _ in took))
        without.append(sum(seconds * (1 - share) if noted is None else seconds - noted for seconds, noted in took))
    closed.close()
    closed.close()
    assert closed.saved(share) == pytest.approx(max(lengths) - max(without), abs=1e-6)


def test_any_number_of_attempts_at_once() -> None:
    """Attempts of more cores than an executor can have take bounded space; the longest counts."""
    slots = Slots()
    for number in range(2_000):
        slots.add("1", 0.0, 10.0 + number / 1_000, None)
        slots.add(str(number), 0.0, 10.0, None)
    assert slots.saved(0.5) == pytest.approx(6, abs=0.001)
    assert len(slots._candidates) == 1
