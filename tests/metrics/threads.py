"""Many threads at one sensor."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from quotascope.metrics import KafkaMetric, MetricConfig, MetricName, Quota, Sensor, ThrottleCallback

THREADS = 8
EACH = 200
NAME = MetricName("m", "g")
TEN_TOKENS = MetricConfig(10, 1_000, quota=Quota(1.0))


class Interrupting(float):
    """A number during whose addition or subtraction something else happens."""

    during: Callable[[], object]

    def __new__(cls, value: float, during: Callable[[], object]) -> Self:
        """Make a number with something to do."""
        number = super().__new__(cls, value)
        number.during = during
        return number

    def __radd__(self, other: float) -> float:
        self.during()
        return other + float(self)

    def __rsub__(self, other: float) -> float:
        self.during()
        return other - float(self)


def yielding(value: float) -> Interrupting:
    """Return a number that lets other threads run in the middle of its arithmetic."""
    return Interrupting(value, lambda: time.sleep(0))


def together(pool: ThreadPoolExecutor, work: Callable[[int], object]) -> list[Any]:
    """Run the work in all threads at the same time and return what each returned."""
    barrier = threading.Barrier(THREADS)

    def started(number: int) -> object:
        barrier.wait(60)
        return work(number)

    return list(pool.map(started, range(THREADS)))


def only_metric(sensor: Sensor) -> KafkaMetric:
    """Return the sensor's metric."""
    return sensor.metrics()[0]


class Signal(ThrottleCallback):
    """Sets an event at the end of a throttle."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def end_throttling(self) -> None:
        """Set the event."""
        self.ended.set()
