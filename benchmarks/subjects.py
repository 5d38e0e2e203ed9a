"""Our side of the measurements: sensors and managers whose windows all have values."""

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.sensor import Sensor
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal

T0 = 1_700_000_000_000
NEVER, ALWAYS = 1e12, 0.7
"""Bounds that no value and that every value goes past."""
PAST = range(T0 - 13_000, T0, 1_000)


def config(bound: float) -> MetricConfig:
    """Return a broker's windows under a bound."""
    return MetricConfig(samples=11, time_window_ms=1_000, quota=Quota(bound))


def sensor(registry: Registry, name: str, *, bucket: bool, bound: float) -> Sensor:
    """Return a sensor with a rate and perhaps a token bucket."""
    result = registry.sensor(name, T0, config(bound))
    result.add(registry.metric_name(f"rate-{name}", "g"), Rate(), config(bound))
    if bucket:
        tokens = registry.metric_name(f"tokens-{name}", "g")
        result.add(tokens, TokenBucket(), config(bound))
    for now_ms in PAST:
        result.record(1.0, now_ms, check_quotas=False)
    return result


def manager(registry: Registry, bound: float) -> ClientQuotaManager:
    """Return a Produce manager with one rule, for the default user."""
    result = ClientQuotaManager(registry, QuotaType.PRODUCE, T0)
    result.update_quota(QuotaEntity(DEFAULT), bound)
    return result


def fill(quotas: ClientQuotaManager, principal: Principal) -> None:
    """Send one byte in each window."""
    for now_ms in PAST:
        quotas.record_and_get_throttle_time(principal, "app", 1.0, now_ms)
