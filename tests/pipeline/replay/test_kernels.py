"""The quotas of the kernels are the engine's, record by record."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.pipeline.replay.ways import WAYS, kernels
from tests.strategies import EPOCH_MS, examples

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.controller_mutation import ControllerMutationQuotaManager, MutationApi
from quotascope.metrics.engine.errors import ThrottlingQuotaExceeded
from quotascope.metrics.engine.extras.burst_spreading import BurstSpreadingRate
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.request_quota_manager import PERCENT_PER_NANO, RequestQuotaManager
from quotascope.metrics.engine.throttle_time import rate_formula_ms, token_formula_ms
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.pipeline.replay.algorithms import (
    BURST_SPREADING,
    CHECKED,
    PERMISSIVE,
    PROBE,
    STRICT,
    TOKEN_BUCKET,
    UNCHECKED,
    WITHHELD,
    Events,
    Measurements,
    debt_throttle,
    new_buckets,
    new_spreads,
    observe,
    rate_throttle,
    rings_of,
    rounded,
    throttle_times,
)
from quotascope.pipeline.replay.compiled import LONG_MAX, run
from quotascope.pipeline.replay.open_loop import MutationOutcomes, MutationReplay, Mutations, decide_mutations

USERS = ("alice", "bob", "carol")
HOUR_MS = 3_600_000
OLDER, NEWER = KafkaRelease(4, 3), KafkaRelease(4, 4)
RELEASES = (KafkaRelease.parse("2.8"), KafkaRelease.parse("3.3-zk"), KafkaRelease.parse("3.7"), OLDER, NEWER)
"""One with each kind of window, span and longest throttle."""


@dataclass(frozen=True)
class Step:
    after_ms: int
    user: int
    cost: int
    treatment: int
    wait_ms: int = 0


# most follow at once or after a while; clocks go back; gaps outlast all windows
requests = st.builds(
    Step,
    after_ms=st.one_of(
        st.integers(0, 300),
        st.integers(-3_000, 3_000),
        st.sampled_from((999, 1_000, 1_001, 10_000, 11_000, 60_000, -20_000)),
    ),
    user=st.integers(0, 2),
    cost=st.one_of(st.integers(0, 100_000), st.sampled_from((3_000_000, 10**12))),
    treatment=st.sampled_from((CHECKED, CHECKED, UNCHECKED, WITHHELD)),
)
mutations = st.builds(
    Step,
    after_ms=st.one_of(
        st.integers(0, 2_000), st.integers(-5_000, 5_000), st.sampled_from((HOUR_MS, HOUR_MS + 1, 2 * HOUR_MS, 100_000))
    ),
    user=st.integers(0, 1),
    cost=st.one_of(st.integers(0, 40), st.sampled_from((560, 2_000_000_000))),
    treatment=st.sampled_from((STRICT, STRICT, PERMISSIVE)),
    wait_ms=st.sampled_from((0, 0, 1, 250, 30_000)),
)
limits = st.sampled_from((0.0, 0.5, 1.0, 100.0, 1024.0, 33_333.0, 1e6))
mutation_limits = st.sampled_from((0.0, 0.1, 1.0, 5.0, 7.3, 1_000.0))
configs = st.builds(
    ManagerConfig, samples=st.integers(1, 12), window_seconds=st.integers(1, 3), release=st.sampled_from(RELEASES)
)


def times_of(trace: list[Step]) -> list[int]:
    times: list[int] = np.cumsum([step.after_ms for step in trace]).tolist()
    return [EPOCH_MS + time_ms for time_ms in times]


def by_engine(manager: ClientQuotaManager, trace: list[Step], values: list[float]) -> list[int]:
    throttles = []
    for step, now_ms, value in zip(trace, times_of(trace), values, strict=True):
        client = Principal(USERS[step.user]), "app"
        if step.treatment == UNCHECKED:
            manager.record_no_throttle(*client, value, now_ms)
            continue
        throttles.append(manager.record_and_get_throttle_time(*client, value, now_ms))
        if step.treatment == WITHHELD:
            manager.unrecord(*client, value, now_ms)
    return throttles


def events_of(trace: list[Step], values: list[float]) -> Events:
    return Events(
        sensors=np.array([step.user for step in trace], np.int32),
        times=np.array(times_of(trace), np.int64),
        values=np.array(values, np.float64),
        treatments=np.array([step.treatment for step in trace], np.int8),
    )


def by_kernels(trace: list[Step], values: list[float], limit: float, config: ManagerConfig, most_ms: int) -> list[int]:
    events = events_of(trace, values)
    rings = rings_of([config.release] * len(USERS))
    measured = observe(events, rings, config.samples, config.window_ms)
    checked = events.treatments != UNCHECKED
    chosen = Measurements(measured.rates[checked], measured.spans[checked])
    throttles = throttle_times(chosen, np.array([limit]), most_ms)
    throttles_found: list[int] = throttles[0].astype(np.int32).tolist()
    return throttles_found


@pytest.mark.parametrize("way", WAYS)
@given(
    trace=st.lists(requests, min_size=1, max_size=60),
    releases=st.tuples(*[st.sampled_from(RELEASES)] * len(USERS)),
    samples=st.integers(1, 12),
    window_ms=st.sampled_from((1_000, 3_000)),
)
@example([Step(0, 0, 5, CHECKED)], (RELEASES[0],) * len(USERS), 1, 1_000)
@example([Step(0, 0, 0, CHECKED)], (RELEASES[0],) * len(USERS), 1, 1_000)
@settings(max_examples=examples(100))
def test_windows_of_each_release(
    way: str, trace: list[Step], releases: tuple[KafkaRelease, ...], samples: int, window_ms: int
) -> None:
    """Sensors on brokers of several releases measure, to the last bit, as the engine's rates of each release."""
    values = [float(step.cost) for step in trace]
    rates = [Rate() for _ in USERS]
    configs_ = [MetricConfig(samples, window_ms, release=release) for release in releases]
    expected: list[tuple[float, int]] = []
    for step, now_ms, value in zip(trace, times_of(trace), values, strict=True):
        rate, config = rates[step.user], configs_[step.user]
        rate.record(config, value, now_ms)
        if step.treatment == UNCHECKED:
            expected.append((0.0, 0))
            continue
        expected.append((rate.measure(config, now_ms), rate.window_size(config, now_ms)))
        if step.treatment == WITHHELD:
            rate.record(config, -value, now_ms)
    with kernels(way):
        measured = observe(events_of(trace, values), rings_of(releases), samples, window_ms)
    assert repr(list(zip(measured.rates.tolist(), measured.spans.tolist(), strict=True))) == repr(expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [QuotaType.FETCH, QuotaType.REQUEST])
@given(trace=st.lists(requests, min_size=1, max_size=60), limit=limits, config=configs)
@example([Step(0, 0, 3_000_000, CHECKED)], 1.0, ManagerConfig())
@example([Step(0, 0, 3_000_000, CHECKED)], 1.0, ManagerConfig(release=OLDER))
@example([Step(0, 0, 1, CHECKED)], 0.0, ManagerConfig())
@example([Step(0, 0, 1, CHECKED)], 0.0, ManagerConfig(release=OLDER))
@settings(max_examples=examples(100))
def test_rates(kind: QuotaType, way: str, trace: list[Step], limit: float, config: ManagerConfig) -> None:
    """
    Throttles are those of a quota manager.

    Those of bytes above 24.8 days in any release, of a limit of 0 and of given-back bytes are among them; those of
    thread time are sums of fractions, which depend on their order, and one window at most.
    """
    manager: ClientQuotaManager
    if kind is QuotaType.REQUEST:
        manager, most_ms = RequestQuotaManager(Registry(), EPOCH_MS, config), config.window_ms
        values = [step.cost * 997 * PERCENT_PER_NANO for step in trace]
    else:
        manager, most_ms = ClientQuotaManager(Registry(), kind, EPOCH_MS, config), config.release.longest_rate_ms
        values = [float(step.cost) for step in trace]
    for user in USERS:
        manager.update_quota(QuotaEntity(user), limit)
    expected = by_engine(manager, trace, values)
    with kernels(way):
        throttles_found = by_kernels(trace, values, limit, config, most_ms)
    assert throttles_found == expected


def test_many_limits_of_one_measurement() -> None:
    """
    A measurement is compared with any number of limits.

    Throttles are exact beyond 24.8 days, or end at a configured maximum.
    """
    measured = Measurements(np.array([300_000.0, 10.0]), np.array([10_000, 10_000]))
    throttles = throttle_times(measured, np.array([1.0, 200_000.0, np.inf]), LONG_MAX)
    assert throttles.tolist() == [[2_999_990_000, 90_000], [5_000, 0], [0, 0]]
    newest = throttle_times(measured, np.array([1.0]), INT_MAX)
    assert newest.tolist() == [[2_147_483_647, 90_000]]


@pytest.mark.parametrize(
    ("tokens", "bound", "expected"),
    [
        (-1.0, 8.0, 125),
        (-0.0004, 1.0, 0),
        (-0.0005, 1.0, 1),
        (-0.00149, 1.0, 1),
        (-0.0015, 1.0, 2),
        (-1.0, 3.0, 333),
        (-2.0, 3.0, 667),
        (-1.8e-18, 5.0, 0),
        (-1.0, 5e-324, LONG_MAX),
    ],
)
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
    """The kernel and the formula round a throttle to the same ms, for any rate past its limit."""
    exact = (rate - limit) / limit * span
    assert rate_throttle(rate, limit, span, 1 << 62) == rate_formula_ms(rate, limit, span)
    assert abs(rate_throttle(rate, limit, span, 1 << 62) - exact) <= 0.5
    assert expected == pytest.approx(exact, abs=0.51)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.5, 1),
        (-0.5, 0),
        (1.4999, 1),
        (2.5, 3),
        (-2.5, -2),
        (0.49999999999999994, 0),
        (float("nan"), 0),
        (1e300, 2**63 - 1),
        (-1e300, -(2**63)),
        (2.0**63, 2**63 - 1),
        (-(2.0**63), -(2**63)),
        (2.0**63 - 1024, 2**63 - 1024),
    ],
)
def test_rounded(way: str, value: float, expected: int) -> None:
    """Plain and compiled, halves are rounded up, NaN becomes 0, and values beyond 64 bits their end."""
    with kernels(way):
        assert run(rounded, value, work=1_000_000) == expected


Verdict = tuple[int, bool]


def decided_by_engine(trace: list[Step], limit: float, config: ManagerConfig) -> list[Verdict]:
    """Return the decisions of a quota manager that removes idle sensors at once, by the times of each user's steps."""
    registries = [Registry() for _ in USERS]
    managers = [ControllerMutationQuotaManager(registry, EPOCH_MS, config) for registry in registries]
    verdicts = []
    for manager, user in zip(managers, USERS, strict=True):
        manager.update_quota(QuotaEntity(user), limit)
    for step, now_ms in zip(trace, times_of(trace), strict=True):
        registries[step.user].expire_sensors(now_ms)
        api = MutationApi.CREATE_TOPICS
        version = api.strict_since - (step.treatment == PERMISSIVE)
        quota = managers[step.user].quota_for(Principal(USERS[step.user]), "admin", api, version, now_ms)
        refused = False
        try:
            quota.record(float(step.cost), now_ms)
        except ThrottlingQuotaExceeded:
            refused = True
        throttled = refused or step.treatment == PERMISSIVE
        left_ms = max(0, quota.throttle_time_ms(now_ms + step.wait_ms))  # below 0 throttles nothing either
        verdicts.append((left_ms if throttled else 0, refused))
    return verdicts


def decided_by_kernels(trace: list[Step], limit: float, config: ManagerConfig, policy: int) -> list[Verdict]:
    count = len(trace)
    both = np.full(2, limit), np.full(2, config.samples), np.full(2, config.window_ms)
    outcomes = MutationOutcomes(
        throttles=np.zeros(count, np.int64),
        refused=np.zeros(count, np.int8),
        noted=np.zeros(count, np.int8),
        numbers=np.arange(count, dtype=np.int32),
        granted=np.zeros(count, np.int64),
    )
    replay = MutationReplay(
        mutations=Mutations(
            times=np.array(times_of(trace), np.int64),
            waits=np.array([step.wait_ms for step in trace], np.int64),
            permits=np.array([step.cost for step in trace], np.int64),
            treatments=np.array([step.treatment for step in trace], np.int8),
            entities=np.array([step.user for step in trace], np.int32),
        ),
        numbers=np.array([0, 1], np.int32),
        policies=np.array([policy], np.int8),
        buckets=new_buckets(*both),
        spreads=new_spreads(*both, config.samples),
        outcomes=outcomes,
        entities=2,
    )
    run(decide_mutations, replay, work=count)
    refused = outcomes.refused.astype(bool).tolist()
    return list(zip(outcomes.throttles.tolist(), refused, strict=True))


@pytest.mark.parametrize("way", WAYS)
@given(trace=st.lists(mutations, min_size=1, max_size=60), limit=mutation_limits, config=configs)
@example([Step(0, 0, 560, STRICT), Step(0, 0, 1, STRICT)], 5.0, ManagerConfig(samples=100))
@example([Step(0, 0, 1, treatment) for treatment in (STRICT, STRICT, PERMISSIVE)], 0.0, ManagerConfig())
@example(  # another user's step is later than the clock that goes back
    [Step(0, 0, 560, STRICT), Step(HOUR_MS + 1, 1, 0, STRICT), Step(-1, 0, 0, STRICT)], 0.1, ManagerConfig(samples=1)
)
@settings(max_examples=examples(100))
def test_token_bucket(way: str, trace: list[Step], limit: float, config: ManagerConfig) -> None:
    """
    Strict and permissive throttles and refusals are those of a quota manager.

    The steps have debts, waits, idle hours and clocks that go back.
    """
    with kernels(way):
        throttles_found = decided_by_kernels(trace, limit, config, TOKEN_BUCKET)
    assert throttles_found == decided_by_engine(trace, limit, config)


@pytest.mark.parametrize("way", WAYS)
@given(trace=st.lists(mutations, min_size=1, max_size=60), limit=mutation_limits, config=configs)
@example([Step(0, 0, 1, STRICT), Step(0, 0, 1, STRICT)], 0.0, ManagerConfig())
@settings(max_examples=examples(100))
def test_burst_spreading(way: str, trace: list[Step], limit: float, config: ManagerConfig) -> None:
    """The draft's waits are those of the engine's class, whatever the versions of the clients."""
    trace = [replace(step, treatment=STRICT, wait_ms=0) for step in trace]
    rates = [BurstSpreadingRate(limit, config) for _ in USERS]
    expected = [
        rates[step.user].record(float(step.cost), now_ms) for step, now_ms in zip(trace, times_of(trace), strict=True)
    ]
    with kernels(way):
        throttles_found = decided_by_kernels(trace, limit, config, BURST_SPREADING)
    narrowed = [max(0, (ms + 2**31) % 2**32 - 2**31) for ms in expected]
    assert throttles_found == [(ms, wait > 0) for ms, wait in zip(narrowed, expected, strict=True)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", [TOKEN_BUCKET, BURST_SPREADING])
def test_probe_charges_nothing(way: str, policy: int) -> None:
    """A mutation that the log shows as refused has a wait, and changes nothing for later ones."""
    spent, final = Step(0, 0, 1_000, STRICT), Step(10_000, 0, 1, STRICT)
    probes = [Step(0, 0, 1_000, PROBE)] * 3
    with kernels(way):
        without, among = (
            decided_by_kernels([spent, *between, final], 1.0, ManagerConfig(), policy) for between in ([], probes)
        )
    assert without[-1] == among[-1]
    assert {refused for _, refused in among[1:]} == {True}
    assert among[1] == among[2] == among[3] != (0, True)
