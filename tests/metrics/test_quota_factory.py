"""Four managers over one registry, and two sets of them on a combined node."""

import threading

import pytest
from tests.metrics.threads import Signal

from quotascope.metrics import (
    ControllerMutationQuotaManager,
    ManagerConfig,
    Principal,
    QuotaConfig,
    QuotaEntity,
    QuotaManagers,
    QuotaType,
    Registry,
    RequestQuotaManager,
    ThrottleCallback,
    ThrottlingQuotaExceeded,
)

T0 = 1_600_000_000_000
ALICE = Principal("alice")
RULE = QuotaEntity("alice")
MS = 1_000_000


def test_one_of_each() -> None:
    """Every type has its manager, with the windows of its kind."""
    config = QuotaConfig(client=ManagerConfig(samples=5), controller=ManagerConfig(samples=7))
    managers = QuotaManagers(Registry(), T0, config)
    assert [manager.quota_type for manager in managers.all()] == [
        QuotaType.FETCH,
        QuotaType.PRODUCE,
        QuotaType.REQUEST,
        QuotaType.CONTROLLER_MUTATION,
    ]
    assert [manager.config.samples for manager in managers.all()] == [5, 5, 5, 7]
    assert isinstance(managers.of(QuotaType.REQUEST), RequestQuotaManager)
    assert isinstance(managers.of(QuotaType.CONTROLLER_MUTATION), ControllerMutationQuotaManager)


def test_a_rule_of_one_type() -> None:
    """A key switches on its own type only, and off again with its last rule."""
    managers = QuotaManagers(Registry(), T0)
    managers.update_quota(QuotaType.FETCH, RULE, 1.0)
    assert [manager.quotas_enabled for manager in managers.all()] == [
        True,
        False,
        False,
        False,
    ]
    managers.update_quota(QuotaType.FETCH, RULE, None)
    assert not managers.fetch.quotas_enabled


def test_reap_ends_all_that_are_due() -> None:
    """One call ends every due throttle of every type."""
    managers = QuotaManagers(Registry(), T0)
    for manager in managers.all():
        for ms in (10, 10, 30):
            manager.throttle(ALICE, "c", ms, ThrottleCallback(), now_ms=T0, now_ns=0)
    assert managers.reap(T0 + 10, 10 * MS) == 8
    assert managers.reap(T0 + 10, 10 * MS) == 0


@pytest.mark.parametrize("quota_type", QuotaType)
def test_threads_end_throttles(quota_type: QuotaType) -> None:
    """Started once, the threads serve all types until closed."""
    managers, signal = QuotaManagers(Registry(), T0), Signal()
    managers.start_reapers("test-")
    managers.start_reapers("test-")
    names = [thread.name for thread in threading.enumerate()]
    assert names.count(f"test-ThrottledChannelReaper-{quota_type.group}") == 1
    managers.of(quota_type).throttle(ALICE, "c", 1, signal, now_ms=T0, now_ns=0)
    assert signal.ended.wait(10)
    managers.close()
    managers.close()
    names = [thread.name for thread in threading.enumerate()]
    assert f"test-ThrottledChannelReaper-{quota_type.group}" not in names


class TestCombinedNode:
    """Two sets over one registry: broker and controller in one process."""

    def test_both_meet_in_the_same_sensors(self) -> None:
        """What one set records counts for the other."""
        registry = Registry()
        broker, controller = QuotaManagers(registry, T0), QuotaManagers(registry, T0)
        for managers in (broker, controller):
            managers.update_quota(QuotaType.CONTROLLER_MUTATION, RULE, 10)
        charge = broker.controller_mutation.strict_quota_for(ALICE, "c", T0)
        charge.record(120, T0)
        other = controller.controller_mutation.strict_quota_for(ALICE, "c", T0)
        with pytest.raises(ThrottlingQuotaExceeded) as caught:
            other.record(1, T0)
        assert caught.value.throttle_time_ms == 1000

    def test_a_metric_follows_a_rule_that_is_learned(self) -> None:
        """The shared metric is bounded once either set knows the rule."""
        registry = Registry()
        broker, controller = QuotaManagers(registry, T0), QuotaManagers(registry, T0)
        broker.update_quota(QuotaType.PRODUCE, RULE, 10)
        metric = broker.produce.sensors_for(ALICE, "c", T0).quota.metrics()[0]
        controller.update_quota(QuotaType.PRODUCE, RULE, 20)
        assert metric.config.quota is not None
        assert metric.config.quota.bound == 20.0
        assert broker.produce.quota(ALICE, "c").bound == 10.0
