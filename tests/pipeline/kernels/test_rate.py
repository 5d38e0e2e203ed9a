"""The windowed rate of the kernels is the engine's, record by record."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.pipeline.kernels.ways import WAYS, kernels
from tests.strategies import EPOCH_MS, examples

from quotascope.metrics import (
    INT_MAX,
    ClientQuotaManager,
    KafkaRelease,
    ManagerConfig,
    Principal,
    QuotaEntity,
    QuotaType,
    Registry,
    RequestQuotaManager,
)
from quotascope.metrics.request_quota_manager import PERCENT_PER_NANO
from quotascope.pipeline.kernels import (
    CHECKED,
    UNCHECKED,
    WITHHELD,
    Events,
    Measured,
    empty_windows,
    narrowed_times,
    observe,
    throttle_times,
)

USERS = ("alice", "bob", "carol")


@dataclass(frozen=True)
class Step:
    """One request of a trace."""

    after_ms: int
    user: int
    cost: int
    treatment: int


steps = st.builds(
    Step,
    # most follow at once or after a while; clocks go back; gaps outlast all windows
    after_ms=st.one_of(
        st.integers(0, 300),
        st.integers(-3_000, 3_000),
        st.sampled_from((999, 1_000, 1_001, 10_000, 11_000, 60_000, -20_000)),
    ),
    user=st.integers(0, len(USERS) - 1),
    cost=st.one_of(st.integers(0, 100_000), st.sampled_from((3_000_000, 10**12))),
    treatment=st.sampled_from((CHECKED, CHECKED, UNCHECKED, WITHHELD)),
)
traces = st.lists(steps, min_size=1, max_size=60)
limits = st.sampled_from((0.5, 1.0, 100.0, 1024.0, 33_333.0, 1e6))
configs = st.builds(
    ManagerConfig,
    samples=st.integers(1, 12),
    window_seconds=st.integers(1, 3),
    release=st.sampled_from((KafkaRelease(4, 3), KafkaRelease(4, 4))),
)


def times_of(trace: list[Step]) -> list[int]:
    """The epoch ms of each step."""
    times: list[int] = np.cumsum([step.after_ms for step in trace]).tolist()
    return [EPOCH_MS + time_ms for time_ms in times]


def events_of(trace: list[Step], values: list[float]) -> Events:
    """The trace as the kernels take it."""
    return Events(
        sensors=np.array([step.user for step in trace], np.int32),
        times=np.array(times_of(trace), np.int64),
        values=np.array(values, np.float64),
        treatments=np.array([step.treatment for step in trace], np.int8),
    )


def by_engine(
    manager: ClientQuotaManager, trace: list[Step], values: list[float]
) -> list[int]:
    """The throttle that a quota manager asks for at each check."""
    throttles = []
    whole = zip(trace, times_of(trace), values, strict=True)
    for step, now_ms, value in whole:
        client = Principal(USERS[step.user]), "app"
        if step.treatment == UNCHECKED:
            manager.record_no_throttle(*client, value, now_ms)
            continue
        throttles.append(manager.record_and_get_throttle_time(*client, value, now_ms))
        if step.treatment == WITHHELD:
            manager.unrecord(*client, value, now_ms)
    return throttles


def by_kernels(
    trace: list[Step],
    values: list[float],
    limit: float,
    config: ManagerConfig,
    **clamp: int,
) -> list[int]:
    """The same by the kernels."""
    state = empty_windows(len(USERS), config.samples)
    events = events_of(trace, values)
    measured = observe(events, state, config.samples, config.window_ms)
    checked = events.treatments != UNCHECKED
    chosen = Measured(measured.rates[checked], measured.spans[checked])
    throttles = throttle_times(chosen, np.array([limit]), **clamp)
    found: list[int] = narrowed_times(throttles)[0].tolist()
    return found


@pytest.mark.parametrize("way", WAYS)
@given(trace=traces, limit=limits, config=configs)
@example([Step(0, 0, 3_000_000, CHECKED)], 1.0, ManagerConfig())
@example(
    [Step(0, 0, 3_000_000, CHECKED)], 1.0, ManagerConfig(release=KafkaRelease(4, 3))
)
@settings(max_examples=examples(100))
def test_bandwidth(
    way: str, trace: list[Step], limit: float, config: ManagerConfig
) -> None:
    """Produce and Fetch throttles are those of a quota manager, those above 24.8 days in either release and given-back bytes among them."""
    manager = ClientQuotaManager(Registry(), QuotaType.FETCH, EPOCH_MS, config)
    for user in USERS:
        manager.update_quota(QuotaEntity(user), limit)
    values = [float(step.cost) for step in trace]
    expected = by_engine(manager, trace, values)
    with kernels(way):
        found = by_kernels(
            trace, values, limit, config, most_ms=config.release.longest_rate_ms
        )
    assert found == expected


@pytest.mark.parametrize("way", WAYS)
@given(trace=traces, limit=limits, config=configs)
@settings(max_examples=examples(100))
def test_request_time(
    way: str, trace: list[Step], limit: float, config: ManagerConfig
) -> None:
    """Request throttles are those of a quota manager, whose sums of fractions depend on their order; at most one window."""
    manager = RequestQuotaManager(Registry(), EPOCH_MS, config)
    for user in USERS:
        manager.update_quota(QuotaEntity(user), limit)
    values = [step.cost * 997 * PERCENT_PER_NANO for step in trace]
    expected = by_engine(manager, trace, values)
    with kernels(way):
        found = by_kernels(trace, values, limit, config, most_ms=config.window_ms)
    assert found == expected


def part_of(events: Events, part: slice) -> Events:
    """Some of the events."""
    return Events(
        events.sensors[part],
        events.times[part],
        events.values[part],
        events.treatments[part],
    )


@pytest.mark.parametrize("way", WAYS)
def test_state_goes_on(way: str) -> None:
    """A trace in two pieces measures what it measures in one: rows can be carried over batches."""
    trace = [Step(137, number % 3, 1_000 * number, CHECKED) for number in range(90)]
    values = [float(step.cost) for step in trace]
    events = events_of(trace, values)
    with kernels(way):
        whole = observe(events, empty_windows(3, 11), 11, 1_000)
        state = empty_windows(3, 11)
        parts = [
            observe(part_of(events, part), state, 11, 1_000)
            for part in (slice(0, 40), slice(40, None))
        ]
    assert np.array_equal(whole.rates, np.concatenate([p.rates for p in parts]))
    assert np.array_equal(whole.spans, np.concatenate([p.spans for p in parts]))


def test_many_limits_of_one_measurement() -> None:
    """One measurement is compared with any number of limits; throttles stay whole beyond 24.8 days until they are narrowed."""
    measured = Measured(np.array([300_000.0, 10.0]), np.array([10_000, 10_000]))
    throttles = throttle_times(measured, np.array([1.0, 200_000.0, np.inf]))
    assert throttles.tolist() == [[2_999_990_000, 90_000], [5_000, 0], [0, 0]]
    assert narrowed_times(throttles)[0].tolist() == [-1_294_977_296, 90_000]
    newest = throttle_times(measured, np.array([1.0]), INT_MAX)
    assert narrowed_times(newest).tolist() == [[2_147_483_647, 90_000]]
