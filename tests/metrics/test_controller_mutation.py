"""The manager of mutation quotas."""

import pytest

from quotascope.metrics import (
    UNLIMITED,
    ControllerMutationQuotaManager,
    ManagerConfig,
    MutationApi,
    PermissiveMutationQuota,
    Principal,
    QuotaEntity,
    Registry,
    StrictMutationQuota,
)

T0 = 1_600_000_000_000
ALICE = Principal("alice")


def manager(config: ManagerConfig | None = None) -> ControllerMutationQuotaManager:
    """A manager of its own registry."""
    return ControllerMutationQuotaManager(Registry(), T0, config)


@pytest.mark.parametrize(
    ("api", "since"),
    [
        (MutationApi.CREATE_TOPICS, 6),
        (MutationApi.CREATE_PARTITIONS, 3),
        (MutationApi.DELETE_TOPICS, 5),
    ],
)
def test_strict_versions(api: MutationApi, since: int) -> None:
    """Clients that know the error get it, older ones are only throttled."""
    quotas = manager()
    quotas.update_quota(QuotaEntity("alice"), 1)
    old = quotas.quota_for(ALICE, "c", api, since - 1, T0)
    new = quotas.quota_for(ALICE, "c", api, since, T0)
    assert isinstance(old, PermissiveMutationQuota)
    assert isinstance(new, StrictMutationQuota)
    assert api.strict_since == since


def test_throttles_are_not_clamped() -> None:
    """A debt of 10,000 at 1 a second costs 10,000 s, and the refusal is counted."""
    quotas = manager()
    quotas.update_quota(QuotaEntity("alice"), 1)
    assert quotas.record_and_get_throttle_time(ALICE, "c", 10_011, T0) == 0
    assert quotas.record_and_get_throttle_time(ALICE, "c", 1, T0) == 10_000_000
    rejection = quotas.sensors_for(ALICE, "c", T0).rejection
    assert rejection is not None
    assert rejection.metrics()[0].value(T0) == 1.0


def test_refusals_without_the_counter() -> None:
    """Refusals are refused also where nobody counts them."""
    quotas = manager(ManagerConfig(extra_counters=False))
    quotas.update_quota(QuotaEntity("alice"), 1)
    quotas.record_and_get_throttle_time(ALICE, "c", 12, T0)
    assert quotas.record_and_get_throttle_time(ALICE, "c", 1, T0) == 1000
    assert quotas.sensors_for(ALICE, "c", T0).rejection is None


def test_unlimited_users_have_tokens_beyond_reason() -> None:
    """Without a limit the bucket holds 11 times the largest long, as a broker shows it."""
    quotas = manager()
    quotas.update_quota(QuotaEntity("bob"), 1)
    rate, tokens = quotas.sensors_for(ALICE, "c", T0).quota.metrics()
    assert rate.config.quota is None
    assert tokens.value(T0) == 11 * UNLIMITED


def test_tokens_survive_a_change() -> None:
    """A lower limit cuts the bucket to its burst, a higher one fills it at its own pace."""
    quotas = manager(ManagerConfig(samples=10))
    quotas.update_quota(QuotaEntity("alice"), 10)
    tokens = quotas.sensors_for(ALICE, "c", T0).quota.metrics()[1]
    assert tokens.value(T0) == 100.0
    quotas.update_quota(QuotaEntity("alice"), 5)
    assert tokens.value(T0) == 50.0
    quotas.update_quota(QuotaEntity("alice"), 20)
    assert tokens.value(T0 + 1000) == 70.0
