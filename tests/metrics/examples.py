"""Statistics, managers and throttles that several tests of the engine begin with."""

import math
import threading

from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.extras.frequencies import Frequencies, Frequency
from quotascope.metrics.engine.extras.percentiles import BucketSizing, Percentile, Percentiles
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.throttle_callback import ThrottleCallback
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal

TEN_SECONDS = MetricConfig(samples=10, time_window_ms=1_000, quota=Quota(5.0))
ALICE, BOB = Principal("alice"), Principal("bob")
RULE = QuotaEntity("alice")
DEFAULT_CLIENT = QuotaEntity(None, DEFAULT)
OF_ALICE = {"user": "alice", "client-id": ""}
"""The tags of her metrics under her rule."""
NANOS_PER_MS = 1_000_000


def same(a: float, b: float) -> bool:
    """Decide whether two doubles are equal, with NaN equal to itself."""
    return a == b or (math.isnan(a) and math.isnan(b))


def make_percentiles() -> Percentiles:
    """A hundred bins from 0 to 100."""
    return Percentiles(400, 100.0, BucketSizing.CONSTANT, [Percentile(MetricName("p50", "g"), 50)])


def make_frequencies() -> Frequencies:
    return Frequencies(4, 1.0, 4.0, [Frequency(MetricName(f"f{value}", "g"), value) for value in (1, 2, 3, 4)])


def metric_of(registry: Registry, name: str, group: str, tags: dict[str, str] | None = None) -> KafkaMetric:
    """A metric of a registry, of alice by default."""
    return registry.metrics()[registry.metric_name(name, group, OF_ALICE if tags is None else tags)]


def bound_of(metric: KafkaMetric) -> float:
    assert metric.config.quota is not None
    return metric.config.quota.bound


class Engine:
    def __init__(self, config: ManagerConfig | None = None) -> None:
        self.registry = Registry()
        self.manager = ClientQuotaManager(self.registry, QuotaType.PRODUCE, EPOCH_MS, config)

    def bound(self, user: str, client_id: str = "") -> float:
        return bound_of(metric_of(self.registry, "byte-rate", "Produce", {"user": user, "client-id": client_id}))

    def value(self, name: str, now_ms: int, user: str = "", client_id: str = "c") -> float:
        return metric_of(self.registry, name, "Produce", {"user": user, "client-id": client_id}).value(now_ms)


class Signal(ThrottleCallback):
    def __init__(self) -> None:
        self.ended = threading.Event()

    def end_throttling(self) -> None:
        self.ended.set()
