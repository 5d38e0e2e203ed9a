"""The windowed rate of the kernels is the engine's, record by record."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.pipeline.replay.ways import WAYS, kernels
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
from quotascope.metrics.throttle_time import rate_formula_ms, token_formula_ms
from quotascope.pipeline.replay.algorithms import (
    CHECKED,
    UNCHECKED,
    WITHHELD,
    Events,
    Measurements,
    debt_throttle,
    observe,
    rate_throttle,
    rounded,
    throttle_times,
)
from quotascope.pipeline.replay.compiled import LONG_MAX, run

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


def by_engine(manager: ClientQuotaManager, trace: list[Step], values: list[float]) -> list[int]:
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


def by_kernels(trace: list[Step], values: list[float], limit: float, config: ManagerConfig, most_ms: int) -> list[int]:
    """The same by the kernels."""
    events = events_of(trace, values)
    measured = observe(events, len(USERS), config.samples, config.window_ms)
    checked = events.treatments != UNCHECKED
    chosen = Measurements(measured.rates[checked], measured.spans[checked])
    throttles = throttle_times(chosen, np.array([limit]), most_ms)
    found: list[int] = throttles[0].astype(np.int32).tolist()
    return found


@pytest.mark.parametrize("way", WAYS)
@given(trace=traces, limit=limits, config=configs)
@example([Step(0, 0, 3_000_000, CHECKED)], 1.0, ManagerConfig())
@example([Step(0, 0, 3_000_000, CHECKED)], 1.0, ManagerConfig(release=KafkaRelease(4, 3)))
@settings(max_examples=examples(100))
def test_bandwidth(way: str, trace: list[Step], limit: float, config: ManagerConfig) -> None:
    """Produce and Fetch throttles are those of a quota manager, those above 24.8 days in either release and given-back bytes among them."""
    manager = ClientQuotaManager(Registry(), QuotaType.FETCH, EPOCH_MS, config)
    for user in USERS:
        manager.update_quota(QuotaEntity(user), limit)
    values = [float(step.cost) for step in trace]
    expected = by_engine(manager, trace, values)
    with kernels(way):
        found = by_kernels(trace, values, limit, config, most_ms=config.release.longest_rate_ms)
    assert found == expected


@pytest.mark.parametrize("way", WAYS)
@given(trace=traces, limit=limits, config=configs)
@settings(max_examples=examples(100))
def test_request_time(way: str, trace: list[Step], limit: float, config: ManagerConfig) -> None:
    """Request throttles are those of a quota manager, whose sums of fractions depend on their order; at most one window."""
    manager = RequestQuotaManager(Registry(), EPOCH_MS, config)
    for user in USERS:
        manager.update_quota(QuotaEntity(user), limit)
    values = [step.cost * 997 * PERCENT_PER_NANO for step in trace]
    expected = by_engine(manager, trace, values)
    with kernels(way):
        found = by_kernels(trace, values, limit, config, most_ms=config.window_ms)
    assert found == expected


def test_many_limits_of_one_measurement() -> None:
    """One measurement is compared with any number of limits; throttles stay whole beyond 24.8 days, or stop where they are configured to."""
    measured = Measurements(np.array([300_000.0, 10.0]), np.array([10_000, 10_000]))
    throttles = throttle_times(measured, np.array([1.0, 200_000.0, np.inf]), LONG_MAX)
    assert throttles.tolist() == [[2_999_990_000, 90_000], [5_000, 0], [0, 0]]
    newest = throttle_times(measured, np.array([1.0]), INT_MAX)
    assert newest.tolist() == [[2_147_483_647, 90_000]]


@pytest.mark.parametrize(
    ("tokens", "bound", "expected"),
    [(-1.0, 8.0, 125), (-0.0004, 1.0, 0), (-0.0005, 1.0, 1), (-0.00149, 1.0, 1), (-0.0015, 1.0, 2), (-1.0, 3.0, 333), (-2.0, 3.0, 667), (-1.8e-18, 5.0, 0), (-1.0, 5e-324, LONG_MAX)]
)  # fmt: skip
def test_throttle_of_a_debt(tokens: float, bound: float, expected: int) -> None:
    """Engine and kernel round half a millisecond up, as Java does: `Math.round(-tokens / bound * 1000)`."""
    assert token_formula_ms(tokens, bound) == expected
    if bound > 1e-300:
        assert debt_throttle(tokens, bound) == expected


@pytest.mark.parametrize(
    ("rate", "limit", "span", "expected"),
    [(1.00049, 1.0, 1000, 0), (1.0005, 1.0, 1000, 1), (1.5, 1.0, 3, 2), (4.0, 3.0, 1000, 333)]
)  # fmt: skip
def test_throttle_of_a_rate(rate: float, limit: float, span: int, expected: int) -> None:
    """So do both with a rate past its limit, if the doubles make it a half at all."""
    exact = (rate - limit) / limit * span
    assert rate_throttle(rate, limit, span, 1 << 62) == rate_formula_ms(rate, limit, span)
    assert abs(rate_throttle(rate, limit, span, 1 << 62) - exact) <= 0.5
    assert expected == pytest.approx(exact, abs=0.51)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, 1), (-0.5, 0), (1.4999, 1), (2.5, 3), (-2.5, -2), (0.49999999999999994, 0), (float("nan"), 0), (1e300, 2**63 - 1), (-1e300, -(2**63)), (2.0**63, 2**63 - 1), (-(2.0**63), -(2**63)), (2.0**63 - 1024, 2**63 - 1024)]
)  # fmt: skip
def test_rounded(way: str, value: float, expected: int) -> None:
    """Plain and compiled, halves go up, NaN to 0, and what 64 bits do not hold stops at their end."""
    with kernels(way):
        assert run(rounded, value, work=1_000_000) == expected
