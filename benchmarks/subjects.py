"""What is measured on our side: sensors and managers whose windows all hold something."""

from quotascope.metrics import (
    DEFAULT,
    ClientQuotaManager,
    ManagerConfig,
    MetricConfig,
    Principal,
    Quota,
    QuotaEntity,
    QuotaType,
    Rate,
    Registry,
    Sensor,
    TokenBucket,
)

T0 = 1_700_000_000_000
NEVER, ALWAYS = 1e12, 0.7
"""Bounds that no value and that every value goes past."""
PAST = range(T0 - 13_000, T0, 1_000)
LIKE_KAFKA = ManagerConfig(extra_counters=False)


def config(bound: float) -> MetricConfig:
    """Return a broker's windows under a bound."""
    return MetricConfig(samples=11, time_window_ms=1_000, quota=Quota(bound))


def sensor(registry: Registry, name: str, *, bucket: bool, bound: float) -> Sensor:
    """Return a sensor with a rate and perhaps a token bucket."""
    made = registry.sensor(name, T0, config(bound))
    made.add(registry.metric_name(f"rate-{name}", "g"), Rate(), config(bound))
    if bucket:
        tokens = registry.metric_name(f"tokens-{name}", "g")
        made.add(tokens, TokenBucket(), config(bound))
    for now_ms in PAST:
        made.record(1.0, now_ms, check_quotas=False)
    return made


def manager(registry: Registry, bound: float) -> ClientQuotaManager:
    """Return a Produce manager with one rule, for the default user."""
    made = ClientQuotaManager(registry, QuotaType.PRODUCE, T0, LIKE_KAFKA)
    made.update_quota(QuotaEntity(DEFAULT), bound)
    return made


def fill(quotas: ClientQuotaManager, principal: Principal) -> None:
    """Send one byte in each window."""
    for now_ms in PAST:
        quotas.record_and_get_throttle_time(principal, "app", 1.0, now_ms)
