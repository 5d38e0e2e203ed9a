from __future__ import annotations

from quotascope.exporter.embedded import EmbeddedLimits
from quotascope.metrics import (
    ManagerConfig,
    QuotaConfig,
    QuotaEntity,
    QuotaManagers,
    QuotaType,
    Registry,
)

NOW_MS = 1_795_251_780_000


async def test_rules_and_settings_of_an_engine() -> None:
    """The engine's own rules, in Kafka's units, as they are at that moment."""
    config = QuotaConfig(controller=ManagerConfig(samples=5, window_seconds=2))
    quotas = QuotaManagers(Registry(), NOW_MS, config)
    source = EmbeddedLimits(quotas, "7", lambda: NOW_MS, request_capacity_threads=4.0)
    alice = QuotaEntity("alice")
    quotas.update_quota(QuotaType.REQUEST, alice, 50.0)
    limits = await source.read()
    quotas.update_quota(QuotaType.REQUEST, alice, None)
    assert dict(limits.rules[QuotaType.REQUEST]) == {alice: 50.0}
    assert limits.active_controller == "7"
    assert limits.read_at == NOW_MS / 1000
    settings = limits.nodes["7"]
    assert settings.request_capacity_threads == 4.0
    assert settings.controller_quota_samples == 5
    assert settings.controller_quota_window_seconds == 2.0
    assert len((await source.read()).rules[QuotaType.REQUEST]) == 0
    await source.close()
