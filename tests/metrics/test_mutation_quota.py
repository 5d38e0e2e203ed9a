"""Strict, permissive and unbounded quotas of mutations."""

import pytest

from quotascope.metrics import (
    UNBOUNDED,
    UNLIMITED,
    ControllerMutationQuotaManager,
    KafkaRelease,
    ManagerConfig,
    MutationApi,
    MutationQuota,
    PermissiveMutationQuota,
    Principal,
    QuotaEntity,
    Registry,
    StrictMutationQuota,
    ThrottlingQuotaExceeded,
)

T0 = 1_600_000_000_000
ALICE = Principal("alice")
TEN_WINDOWS = ManagerConfig(samples=10)


class Controller:
    """A controller with one rule for alice."""

    def __init__(self, bound: float, config: ManagerConfig = TEN_WINDOWS) -> None:
        self.registry = Registry()
        self.manager = ControllerMutationQuotaManager(self.registry, T0, config)
        self.manager.update_quota(QuotaEntity("alice"), bound)

    def strict(self) -> MutationQuota:
        """The quota of one request of a new client."""
        return self.manager.strict_quota_for(ALICE, "c", T0)

    def permissive(self) -> MutationQuota:
        """The quota of one request of an old client."""
        return self.manager.permissive_quota_for(ALICE, "c", T0)

    def value(self, name: str, now_ms: int = T0) -> float:
        """The value of one of alice's metrics."""
        tags = {"user": "alice", "client-id": ""}
        metric = self.registry.metric(self.registry.metric_name(name, "ControllerMutation", tags))
        assert metric is not None
        return metric.value(now_ms)


def exceeded(quota: MutationQuota) -> bool:
    """The property now; a type checker would take it for unchanged."""
    return quota.is_exceeded


class TestStrict:
    """Refuses while in debt."""

    def test_refusals_cost_nothing_and_are_counted(self) -> None:
        """A refused mutation leaves the bucket and the rate alone and shows in rejection-count."""
        controller = Controller(10)
        quota = controller.strict()
        quota.record(110, T0)
        for permits in (3, 4):
            with pytest.raises(ThrottlingQuotaExceeded):
                quota.record(permits, T0)
        assert controller.value("tokens") == -10.0
        assert controller.value("mutation-rate") == 110 / 30
        assert controller.value("rejection-count") == 7.0

    def test_a_refusal_of_zero_ms(self) -> None:
        """A residue of the arithmetic refuses, with a throttle of 0 ms that does not count as exceeded."""
        quota = Controller(10).strict()
        quota.record(100.004, T0)
        with pytest.raises(ThrottlingQuotaExceeded) as caught:
            quota.record(1, T0)
        assert caught.value.throttle_time_ms == 0
        assert not quota.is_exceeded
        assert quota.throttle_time_ms(T0) == 0


class TestLongThrottles:
    """Throttles that do not fit into 32 bits."""

    def overdrawn(self, config: ManagerConfig) -> tuple[MutationQuota, int]:
        """A quota with a debt of 3,000,000 s, and what the refusal said."""
        quota = Controller(1, config).strict()
        quota.record(3_000_010, T0)
        with pytest.raises(ThrottlingQuotaExceeded) as caught:
            quota.record(1, T0)
        return quota, caught.value.throttle_time_ms

    @pytest.mark.parametrize("minor", [3, 4])
    def test_wrap_around(self, minor: int) -> None:
        """As in all of Kafka's releases the time turns negative, and the request is not throttled although it was refused."""
        config = ManagerConfig(samples=10, release=KafkaRelease(4, minor))
        quota, reported = self.overdrawn(config)
        assert reported == -1_294_967_296
        assert quota.throttle_time_ms(T0) == 0
        assert quota.is_exceeded


class TestValidateOnly:
    """Requests that only ask whether they would work."""

    @pytest.mark.parametrize(("charged", "tokens"), [(True, 70.0), (False, 100.0)])
    def test_charged_by_default(self, *, charged: bool, tokens: float) -> None:
        """KRaft charges them, against KIP-599; the option does not."""
        config = ManagerConfig(samples=10, charge_validate_only=charged)
        controller = Controller(10, config)
        controller.strict().record(10, T0, validate_only=True)
        controller.permissive().record(20, T0, validate_only=True)
        assert controller.value("tokens") == tokens


def test_unbounded() -> None:
    """Without rules everything is accepted and nothing is measured."""
    registry = Registry()
    manager = ControllerMutationQuotaManager(registry, T0)
    assert manager.strict_quota_for(ALICE, "c", T0) is UNBOUNDED
    assert manager.permissive_quota_for(ALICE, "c", T0) is UNBOUNDED
    UNBOUNDED.record(1e12, T0)
    assert not UNBOUNDED.is_exceeded
    assert UNBOUNDED.throttle_time_ms(T0) == 0
    assert set(registry.sensors()) == {"ControllerMutation-delayQueue"}


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


def test_what_is_left_of_the_largest_throttle_wraps_as_in_java() -> None:
    """Under a clock that is set back by 4,949,886,161 ms, 2^63 - 1 ms become 654,918,864 (Kafka 4.4.0 and 4.3.1)."""
    quotas = manager()
    quotas.update_quota(QuotaEntity("alice"), 33.3)
    quota = quotas.permissive_quota_for(ALICE, "c", T0)
    quota.record(1e26, T0)
    assert quota.throttle_time_ms(T0) == 0  # -1 as 32 bits
    assert quota.throttle_time_ms(T0 - 4_949_886_161) == 654_918_864


def test_refusals_without_the_counter() -> None:
    """Refusals are refused also where no one counts them."""
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
