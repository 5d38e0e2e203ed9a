"""Many records at once do what as many single ones do."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.wire import bits
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.errors import MalformedBatch, QuotaViolation
from quotascope.metrics.engine.extras.batch import record_many, throttle_times_ms
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.request_quota_manager import RequestQuotaManager
from quotascope.metrics.engine.sensor import Sensor
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal

SENSORS = 3
CLIENTS = [(Principal(user), client) for user in ("a", "b c") for client in ("x", "y")]

Record = tuple[int, float, int]
"""Entity, value, ms since the record before."""

records = st.lists(
    st.tuples(
        st.integers(0, SENSORS - 1),
        st.floats(-1e3, 1e9) | st.sampled_from([0.0, 1.0, float("inf")]),
        st.integers(0, 3_000) | st.integers(-500, 0) | st.just(20_000),
    ),
    max_size=60,
)


def columns(trace: list[Record]) -> tuple[list[int], list[float], list[int]]:
    now_ms, times_ms = EPOCH_MS, []
    for _, _, step_ms in trace:
        now_ms += step_ms
        times_ms.append(now_ms)
    return [entity for entity, _, _ in trace], [value for _, value, _ in trace], times_ms


def sensors(bound: float, *, related: bool = False) -> list[Sensor]:
    """Return sensors with a rate and a bucket, the last of them perhaps with the first as its parent."""
    registry = Registry()
    config = MetricConfig(3, 1_000, quota=Quota(bound))
    created: list[Sensor] = []
    for number in range(SENSORS):
        parents = created[:1] if related and number == SENSORS - 1 else []
        created.append(registry.sensor(f"s{number}", EPOCH_MS, parents=parents))
        created[-1].add(registry.metric_name(f"rate-{number}", "g"), Rate(), config)
        tokens = registry.metric_name(f"tokens-{number}", "g")
        created[-1].add(tokens, TokenBucket(), config)
    return created


def state(created: list[Sensor], now_ms: int) -> list[str]:
    return [bits(metric.value(now_ms)) for sensor in created for metric in sensor.metrics()]


def figures(registry: Registry, now_ms: int) -> dict[MetricName, str]:
    return {name: bits(metric.value(now_ms)) for name, metric in registry.metrics().items()}


@given(trace=records, bound=st.floats(0.5, 1e8), check=st.booleans(), related=st.booleans())
def test_records_as_one_by_one(trace: list[Record], bound: float, *, check: bool, related: bool) -> None:
    """A batch has the scalar engine's violations, measured values and final state to the last bit."""
    ours, twins = sensors(bound, related=related), sensors(bound, related=related)
    entities, values, times_ms = columns(trace)
    batch = record_many(
        ours,
        np.array(entities, np.int64),
        np.array(values, np.float64),
        np.array(times_ms, np.int64),
        check_quotas=check,
    )
    expected = []
    for number, (entity, value, now_ms) in enumerate(zip(entities, values, times_ms, strict=True)):
        try:
            twins[entity].record(value, now_ms, check)
        except QuotaViolation as violation:
            expected.append((number, violation.value, violation.bound))
    assert batch.records.tolist() == [number for number, _, _ in expected]
    assert list(map(bits, batch.values)) == [bits(value) for _, value, _ in expected]
    assert batch.bounds.tolist() == [exceeded for _, _, exceeded in expected]
    end_ms = (times_ms or [EPOCH_MS])[-1]
    assert state(ours, end_ms) == state(twins, end_ms)


def _produce(registry: Registry) -> ClientQuotaManager:
    return ClientQuotaManager(registry, QuotaType.PRODUCE, EPOCH_MS)


def _request(registry: Registry) -> ClientQuotaManager:
    return RequestQuotaManager(registry, EPOCH_MS)


@pytest.mark.parametrize("make", [_produce, _request])
@given(trace=records, bound=st.floats(0.5, 1e8))
def test_throttles_as_one_by_one(
    make: Callable[[Registry], ClientQuotaManager], trace: list[Record], bound: float
) -> None:
    """A manager answers a batch as it answers single requests, and what it made of them is the same."""
    registries = Registry(), Registry()
    ours, twin = (make(registry) for registry in registries)
    for manager in (ours, twin):
        manager.update_quota(QuotaEntity(DEFAULT), bound)
        manager.update_quota(QuotaEntity("a", "x"), bound / 3)
    entities, values, times_ms = columns(trace)
    throttled = throttle_times_ms(ours, CLIENTS, entities, values, times_ms)
    expected = [
        twin.maybe_record_and_get_throttle_time(*CLIENTS[entity], value, now_ms)
        for entity, value, now_ms in zip(entities, values, times_ms, strict=True)
    ]
    assert throttled.tolist() == expected
    end_ms = (times_ms or [EPOCH_MS])[-1]
    assert figures(registries[0], end_ms) == figures(registries[1], end_ms)


def test_one_time_for_all() -> None:
    """A batch of one moment needs its time only once."""
    created = sensors(1e9)
    assert record_many(created, [0, 1, 0], [1.0, 2.0, 3.0], EPOCH_MS).records.size == 0
    assert [sensor.metrics()[0].value(EPOCH_MS) for sensor in created] == [2.0, 1.0, 0.0]


def test_one_sensor_for_two_entities() -> None:
    """Entities may share a sensor: then the order of their records counts."""
    (twin, *_), (shared, *_) = sensors(2.0), sensors(2.0)
    batch = record_many([shared, shared], [1, 0, 1], [3.0, 2.0, 9.0], EPOCH_MS)
    expected = [twin.try_record(value, EPOCH_MS) for value in (3.0, 2.0, 9.0)]
    assert batch.values.tolist() == [violation.value for violation in expected if violation]
    assert batch.records.tolist() == [number for number, violation in enumerate(expected) if violation]
    assert batch.records.size > 0


def test_nothing_is_recorded_without_rules() -> None:
    """A manager without rules lets all pass and measures none, in a batch, too."""
    registry = Registry()
    manager = _produce(registry)
    assert throttle_times_ms(manager, CLIENTS, [0, 1], [1e9, 1e9], EPOCH_MS).tolist() == [0, 0]
    assert "Produce-:x" not in registry.sensors()


@pytest.mark.parametrize(
    ("entities", "values", "times_ms", "reason"),
    [
        ([0], [1.0, 2.0], [EPOCH_MS], "shapes"),
        ([0, 1], [1.0, 2.0], [EPOCH_MS], "shapes"),
        ([[0]], [[1.0]], [[EPOCH_MS]], "shapes"),
        ([SENSORS], [1.0], [EPOCH_MS], "numbered from 3 to 3, but there are 3"),
        ([0, -1], [1.0, 1.0], EPOCH_MS, "numbered from -1 to 0, but there are 3"),
        ([0.5], [1.0], [EPOCH_MS], "entities must be whole numbers, not float64"),
        ([0], [1.0], [0.5], "times_ms must be whole numbers, not float64"),
    ],
)
def test_refuses_what_does_not_fit(entities: object, values: object, times_ms: object, reason: str) -> None:
    """A batch whose arrays do not fit is refused with the wrong one, and nothing is recorded."""
    created = sensors(1e9)
    with pytest.raises(MalformedBatch, match=reason):
        record_many(created, entities, values, times_ms)  # type: ignore[arg-type]
    assert state(created, EPOCH_MS) == state(sensors(1e9), EPOCH_MS)
