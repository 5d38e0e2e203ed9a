"""The quotas of tiered storage together."""

from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    Registry,
    RLMQuotaType,
    TieredStorageQuotas,
    WindowConfig,
)


def waits(registry: Registry) -> dict[str, float]:
    """Return the metrics of waits."""
    return {
        name.name: metric.value(EPOCH_MS)
        for name, metric in registry.metrics().items()
        if name.group == "RemoteLogManager"
    }


def test_waits_are_measured(registry: Registry) -> None:
    """Average and maximum of each direction, from its first wait on."""
    quotas = TieredStorageQuotas(registry, (100, WindowConfig()), (10, WindowConfig()))
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 0
    assert waits(registry) == {}
    quotas.fetch.record(20, EPOCH_MS)
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 1_000
    quotas.fetch.record(20, EPOCH_MS)
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 3_000
    assert waits(registry) == {
        "remote-fetch-throttle-time-avg": 2_000.0,
        "remote-fetch-throttle-time-max": 3_000.0,
    }


def test_directions_are_apart(registry: Registry) -> None:
    """What is copied does not keep anybody from fetching."""
    quotas = TieredStorageQuotas(registry, (10, WindowConfig()))
    quotas.copy.record(20, EPOCH_MS)
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 0
    assert quotas.wait_ms(RLMQuotaType.COPY, EPOCH_MS) == 1_000
    assert set(waits(registry)) == {
        "remote-copy-throttle-time-avg",
        "remote-copy-throttle-time-max",
    }


def test_descriptions_are_kafkas(registry: Registry) -> None:
    """Word by word."""
    quotas = TieredStorageQuotas(registry, (10, WindowConfig()), (10, WindowConfig()))
    for quota_type in RLMQuotaType:
        quotas.of(quota_type).record(20, EPOCH_MS)
        quotas.wait_ms(quota_type, EPOCH_MS)
    about = {name.name: name.description for name in registry.metrics()}
    end = "was throttled by a broker"
    fetch, copy = "remote-fetch-throttle-time", "remote-copy-throttle-time"
    assert about[f"{fetch}-avg"] == f"The average time in millis remote fetches {end}"
    assert about[f"{copy}-max"] == f"The maximum time in millis remote copies {end}"


def test_closing_removes_the_metrics_of_waits(registry: Registry) -> None:
    """The rates stay until they expire."""
    quotas = TieredStorageQuotas(registry, (10, WindowConfig()))
    quotas.copy.record(20, EPOCH_MS)
    quotas.wait_ms(RLMQuotaType.COPY, EPOCH_MS)
    quotas.close()
    assert waits(registry) == {}
    assert registry.metric(quotas.copy.metric_name) is not None
