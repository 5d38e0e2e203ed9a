"""The loops that are timed; each has its like in EngineBench.java."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.subjects import ALWAYS, NEVER, T0, fill, manager, sensor

from quotascope.metrics.engine.errors import QuotaViolation
from quotascope.metrics.engine.extras.batch import record_many
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.sensor import Sensor
from quotascope.metrics.kafka.principal import Principal

PER_MS = 100
"""Records in each ms of model time."""
ENTITIES = 2_000
BATCH = 10_000
BATCH_MS = 100

Loop = Callable[[int], None]
"""Makes that many records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Scenario of a comparison."""

    name: str
    make: Callable[[], Loop]
    goal: float | None = None
    """Largest ratio to Kafka's time."""

    kafka: str = ""
    """Kafka's scenario, if it has another name."""


def _moments(records: int, start_ms: int) -> range:
    return range(start_ms, start_ms + records // PER_MS)


class _Clock:
    """Model time that goes on from round to round."""

    def __init__(self) -> None:
        self.now_ms = T0

    def moments(self, records: int) -> Iterator[int]:
        moments = _moments(records, self.now_ms)
        self.now_ms = moments.stop
        return iter(moments)


def recording(sensor: Sensor, *, check: bool, value: float = 1.0) -> Loop:
    """Record to one sensor."""
    clock, record = _Clock(), sensor.record

    def loop(records: int) -> None:
        for now_ms in clock.moments(records):
            for _ in range(PER_MS):
                record(value, now_ms, check)

    return loop


def violating() -> Loop:
    """Record past a bound and catch what is raised."""
    clock, record = _Clock(), _sensor(bucket=False, bound=ALWAYS).record

    def loop(records: int) -> None:
        for now_ms in clock.moments(records):
            for _ in range(PER_MS):
                try:
                    record(1.0, now_ms, True)  # noqa: FBT003 - as the others
                except QuotaViolation:
                    continue
                raise AssertionError("not every record was a violation")

    return loop


def breaching() -> Loop:
    """Record past a bound and look at what is returned."""
    clock, record = _Clock(), _sensor(bucket=False, bound=ALWAYS).try_record

    def loop(records: int) -> None:
        for now_ms in clock.moments(records):
            for _ in range(PER_MS):
                assert record(1.0, now_ms) is not None

    return loop


def threads(sensors: Sequence[Sensor]) -> Loop:
    """Record in two threads; the time is that of both together."""
    loops = [recording(sensors[index], check=True) for index in (0, -1)]

    def loop(records: int) -> None:
        threads = [threading.Thread(target=target, args=(records // 2,)) for target in loops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return loop


def entities(*, check: bool) -> Loop:
    """Record batches over many sensors, one after the other."""
    registry, clock = Registry(), _Clock()
    sensors = [sensor(registry, f"s{number}", bucket=True, bound=NEVER) for number in range(ENTITIES)]
    records_of = [sensors[entity].record for entity in chosen()]

    def loop(records: int) -> None:
        for _ in range(records // BATCH):
            clock.now_ms += BATCH_MS
            now_ms = clock.now_ms
            for record in records_of:
                record(1.0, now_ms, check)

    return loop


def batches(*, check: bool) -> Loop:
    """Record the same as arrays."""
    registry, clock = Registry(), _Clock()
    sensors = [sensor(registry, f"s{number}", bucket=True, bound=NEVER) for number in range(ENTITIES)]
    indexes, values = np.array(chosen()), np.ones(BATCH)

    def loop(records: int) -> None:
        for _ in range(records // BATCH):
            clock.now_ms += BATCH_MS
            times_ms = np.full(BATCH, clock.now_ms)
            record_many(sensors, indexes, values, times_ms, check_quotas=check)

    return loop


def chosen() -> list[int]:
    """Return which entity each record of a batch belongs to."""
    draw = random.Random(1)  # noqa: S311 - a benchmark
    return [draw.randrange(ENTITIES) for _ in range(BATCH)]


def managing(bound: float) -> Loop:
    """Ask a quota manager how long to throttle a request."""
    clock, quotas, alice = _Clock(), manager(Registry(), bound), Principal("alice")
    fill(quotas, alice)
    ask = quotas.record_and_get_throttle_time

    def loop(records: int) -> None:
        throttled = 0
        for now_ms in clock.moments(records):
            for _ in range(PER_MS):
                throttled += ask(alice, "app", 1.0, now_ms) != 0
        assert throttled == (records if bound == ALWAYS else 0)

    return loop


def _sensor(*, bucket: bool, bound: float = NEVER) -> Sensor:
    return sensor(Registry(), "s", bucket=bucket, bound=bound)


def _one(*, bucket: bool, check: bool) -> Callable[[], Loop]:
    return lambda: recording(_sensor(bucket=bucket), check=check)


SCENARIOS = (
    Scenario(name="rate", make=_one(bucket=False, check=False), goal=1.2),
    Scenario(name="rate, checked", make=_one(bucket=False, check=True), goal=1.2),
    Scenario(
        name="rate, checked, fractions", make=lambda: recording(_sensor(bucket=False), check=True, value=0.1), goal=1.2
    ),
    Scenario(name="rate + bucket", make=_one(bucket=True, check=False), goal=1.2),
    Scenario(name="rate + bucket, checked", make=_one(bucket=True, check=True), goal=1.2),
    Scenario(name="rate, violated", make=violating, goal=1.2),
    Scenario(name="rate, violated, returned", kafka="rate, violated", make=breaching, goal=1.2),
    Scenario(name="two threads, one sensor", make=lambda: threads([_sensor(bucket=True)])),
    Scenario(name="two threads, two sensors", make=lambda: threads([_sensor(bucket=True), _sensor(bucket=True)])),
    Scenario(name="2,000 entities", make=lambda: entities(check=False), goal=1.2),
    Scenario(name="2,000 entities, checked", make=lambda: entities(check=True), goal=1.2),
    Scenario(name="2,000 entities, batch", kafka="2,000 entities", make=lambda: batches(check=False), goal=0.5),
    Scenario(
        name="2,000 entities, batch, checked",
        kafka="2,000 entities, checked",
        make=lambda: batches(check=True),
        goal=0.5,
    ),
    Scenario(name="quota manager", make=lambda: managing(NEVER), goal=1.5),
    Scenario(name="quota manager, throttled", make=lambda: managing(ALWAYS), goal=1.5),
)
