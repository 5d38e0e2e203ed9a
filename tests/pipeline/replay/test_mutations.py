"""The mutation quotas of the kernels are the engine's, record by record."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.pipeline.replay.ways import WAYS, kernels
from tests.strategies import EPOCH_MS, examples

from quotascope.metrics import (
    BurstSpreadingRate,
    ControllerMutationQuotaManager,
    ManagerConfig,
    Principal,
    QuotaEntity,
    Registry,
    ThrottlingQuotaExceeded,
)
from quotascope.pipeline.replay.algorithms import (
    BURST_SPREADING,
    PERMISSIVE,
    PROBE,
    STRICT,
    TOKEN_BUCKET,
    new_buckets,
    new_spreads,
)
from quotascope.pipeline.replay.compiled import run
from quotascope.pipeline.replay.open_loop import MutationOutcomes, MutationReplay, Mutations, decide_mutations

USERS = ("alice", "bob")
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Step:
    """One mutation of a trace."""

    after_ms: int
    user: int
    permits: int
    treatment: int
    wait_ms: int


steps = st.builds(
    Step,
    after_ms=st.one_of(
        st.integers(0, 2_000), st.integers(-5_000, 5_000), st.sampled_from((HOUR_MS, HOUR_MS + 1, 2 * HOUR_MS, 100_000))
    ),
    user=st.integers(0, 1),
    permits=st.one_of(st.integers(0, 40), st.sampled_from((560, 2_000_000_000))),
    treatment=st.sampled_from((STRICT, STRICT, PERMISSIVE, PROBE)),
    wait_ms=st.sampled_from((0, 0, 1, 250, 30_000)),
)
traces = st.lists(steps, min_size=1, max_size=60)
limits = st.sampled_from((0.1, 1.0, 5.0, 7.3, 1_000.0))
configs = st.builds(ManagerConfig, samples=st.integers(1, 12), window_seconds=st.integers(1, 3))

Verdict = tuple[int, bool]


def times_of(trace: list[Step]) -> list[int]:
    """The epoch ms of each step."""
    times: list[int] = np.cumsum([step.after_ms for step in trace]).tolist()
    return [EPOCH_MS + time_ms for time_ms in times]


def by_engine(trace: list[Step], limit: float, config: ManagerConfig) -> list[Verdict]:
    """What a quota manager says, whose idle sensors are removed as soon as they may be: each user's by the times of the user's own steps."""
    registries = [Registry() for _ in USERS]
    managers = []
    for user, registry in zip(USERS, registries, strict=True):
        manager = ControllerMutationQuotaManager(registry, EPOCH_MS, config)
        manager.update_quota(QuotaEntity(user), limit)
        managers.append(manager)
    verdicts = []
    for step, now_ms in zip(trace, times_of(trace), strict=True):
        registries[step.user].expire_sensors(now_ms)
        verdicts.append(_verdict(managers[step.user], step, now_ms))
    return verdicts


def _verdict(manager: ControllerMutationQuotaManager, step: Step, now_ms: int) -> Verdict:
    client = Principal(USERS[step.user]), "admin"
    if step.treatment == PERMISSIVE:
        quota = manager.permissive_quota_for(*client, now_ms)
        quota.record(float(step.permits), now_ms)
        return quota.throttle_time_ms(now_ms + step.wait_ms), False
    quota = manager.strict_quota_for(*client, now_ms)
    try:
        if step.treatment == PROBE:
            manager.sensors_for(*client, now_ms).quota.check_quotas(now_ms)
            return 0, False
        quota.record(float(step.permits), now_ms)
    except ThrottlingQuotaExceeded:
        return quota.throttle_time_ms(now_ms + step.wait_ms), True
    return 0, False


def by_kernels(trace: list[Step], limit: float, config: ManagerConfig, policy: int) -> list[Verdict]:
    """The same by the kernels."""
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
            permits=np.array([step.permits for step in trace], np.int64),
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
@given(trace=traces.filter(lambda trace: all(step.treatment != PROBE for step in trace)), limit=limits, config=configs)
@example([Step(0, 0, 560, STRICT, 0), Step(0, 0, 1, STRICT, 0)], 5.0, ManagerConfig(samples=100))
@example(  # another user's step is later than the clock that goes back
    [Step(0, 0, 560, STRICT, 0), Step(HOUR_MS + 1, 1, 0, STRICT, 0), Step(-1, 0, 0, STRICT, 0)],
    0.1,
    ManagerConfig(samples=1)
)  # fmt: skip
@settings(max_examples=examples(100))
def test_token_bucket(way: str, trace: list[Step], limit: float, config: ManagerConfig) -> None:
    """Strict and permissive throttles and refusals are those of a quota manager: debts, waits, idle hours, clocks that go back."""
    with kernels(way):
        found = by_kernels(trace, limit, config, TOKEN_BUCKET)
    assert found == by_engine(trace, limit, config)


@pytest.mark.parametrize("way", WAYS)
@given(trace=traces, limit=limits, config=configs)
@settings(max_examples=examples(100))
def test_burst_spreading(way: str, trace: list[Step], limit: float, config: ManagerConfig) -> None:
    """The draft's waits are those of the engine's class, whatever the versions of the clients."""
    trace = [Step(step.after_ms, step.user, step.permits, STRICT, 0) for step in trace]
    rates = [BurstSpreadingRate(limit, config) for _ in USERS]
    expected = [
        rates[step.user].record(float(step.permits), now_ms)
        for step, now_ms in zip(trace, times_of(trace), strict=True)
    ]
    with kernels(way):
        found = by_kernels(trace, limit, config, BURST_SPREADING)
    narrowed = [max(0, (ms + 2**31) % 2**32 - 2**31) for ms in expected]
    assert found == [(ms, wait > 0) for ms, wait in zip(narrowed, expected, strict=True)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", [TOKEN_BUCKET, BURST_SPREADING])
def test_probe_charges_nothing(way: str, policy: int) -> None:
    """A mutation that the log shows as refused gets the wait, and changes nothing for those after it."""
    spent = [Step(0, 0, 1_000, STRICT, 0)]
    probes = [Step(0, 0, 1_000, PROBE, 0)] * 3
    last = [Step(10_000, 0, 1, STRICT, 0)]
    config = ManagerConfig()
    with kernels(way):
        without = by_kernels([*spent, *last], 1.0, config, policy)
        among = by_kernels([*spent, *probes, *last], 1.0, config, policy)
    assert without[-1] == among[-1]
    assert {refused for _, refused in among[1:]} == {True}
    assert among[1] == among[2] == among[3] != (0, True)
