"""Names, metrics and lifetime of an entity's sensors."""

from quotascope.metrics import (
    ClientQuotaManager,
    ControllerMutationQuotaManager,
    ManagerConfig,
    Principal,
    QuotaEntity,
    QuotaType,
    Registry,
)

PLAIN = ManagerConfig(extra_counters=False)
HOUR_MS = 3_600_000


def metrics_of(registry: Registry) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """Name, group and tags of all metrics but the registry's own."""
    return {
        (name.name, name.group, tuple(name.tags.items()))
        for name in registry.metrics()
        if name.name != "count"
    }


def test_without_extras_the_metrics_are_kafkas() -> None:
    """One request makes the two sensors and two metrics that a broker makes."""
    registry = Registry()
    manager = ClientQuotaManager(registry, QuotaType.PRODUCE, 0, PLAIN)
    manager.update_quota(QuotaEntity("CN=a", "c"), 1.0)
    manager.record_and_get_throttle_time(Principal("CN=a"), "c", 0.0, 0)
    assert set(registry.sensors()) == {
        "Produce-delayQueue",
        "Produce-CN%3Da:c",
        "ProduceThrottleTime-CN%3Da:c",
    }
    tags = (("user", "CN%3Da"), ("client-id", "c"))
    assert metrics_of(registry) == {
        ("queue-size", "Produce", ()),
        ("byte-rate", "Produce", tags),
        ("throttle-time", "Produce", tags),
    }


def test_the_extras() -> None:
    """Two counters join throttle-time, one stands for refused mutations."""
    registry = Registry()
    manager = ControllerMutationQuotaManager(registry, 0)
    manager.update_quota(QuotaEntity("u"), 1.0)
    sensors = manager.sensors_for(Principal("u"), "c", 0)
    assert [metric.name.name for metric in sensors.quota.metrics()] == [
        "mutation-rate",
        "tokens",
    ]
    assert [metric.name.name for metric in sensors.throttle_time.metrics()] == [
        "throttle-time",
        "throttle-time-total",
        "throttle-count",
    ]
    assert sensors.rejection is not None
    assert sensors.rejection.name == "ControllerMutationRejection-u:"
    assert [metric.name.name for metric in sensors.rejection.metrics()] == [
        "rejection-count"
    ]


def test_descriptions() -> None:
    """Metrics describe themselves in Kafka's words."""
    registry = Registry()
    manager = ControllerMutationQuotaManager(registry, 0, PLAIN)
    manager.sensors_for(Principal("u"), "c", 0)
    assert {name.name: name.description for name in registry.metrics()} == {
        "count": "total number of registered metrics",
        "queue-size": "Tracks the size of the delay queue",
        "mutation-rate": "Tracking mutation-rate per user/client-id",
        "tokens": "Tracking remaining tokens in the token bucket per user/client-id",
        "throttle-time": "Tracking average throttle-time per user/client-id",
    }


def test_sensors_expire_after_an_idle_hour_and_come_back() -> None:
    """A throttle-time sensor ends an hour after its last throttle, the other after its last record."""
    registry = Registry()
    manager = ClientQuotaManager(registry, QuotaType.PRODUCE, 0)
    manager.update_quota(QuotaEntity(None, "c"), 1.0)
    alice = Principal("alice")
    manager.record_and_get_throttle_time(alice, "c", 1.0, 0)
    manager.record_and_get_throttle_time(alice, "c", 1.0, 1000)
    assert registry.expire_sensors(HOUR_MS) == ()
    assert registry.expire_sensors(HOUR_MS + 1) == ("ProduceThrottleTime-:c",)
    assert registry.expire_sensors(HOUR_MS + 1001) == ("Produce-:c",)
    manager.record_and_get_throttle_time(alice, "c", 1.0, HOUR_MS + 2000)
    assert registry.get_sensor("Produce-:c") is not None
    assert registry.get_sensor("ProduceThrottleTime-:c") is not None


def test_registry_tags_come_first() -> None:
    """A registry's own tags are on the metrics, and the quota is still found by the entity's."""
    registry = Registry(tags={"cluster": "x"})
    manager = ClientQuotaManager(registry, QuotaType.PRODUCE, 0)
    manager.update_quota(QuotaEntity("u", "c"), 5.0)
    metric = manager.sensors_for(Principal("u"), "c", 0).quota.metrics()[0]
    assert list(metric.name.tags) == ["cluster", "user", "client-id"]
    manager.update_quota(QuotaEntity("u", "c"), 6.0)
    assert metric.config.quota is not None
    assert metric.config.quota.bound == 6.0
