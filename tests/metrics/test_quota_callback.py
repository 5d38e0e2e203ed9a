"""Quotas that a program decides on."""

from collections.abc import Mapping

import pytest
from tests.metrics.examples import bound_of, metric_of
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.client_quota_manager import UNLIMITED
from quotascope.metrics.engine.controller_mutation import MutationApi
from quotascope.metrics.engine.quota_callback import QuotaCallback
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal

ALICE, BOB = Principal("alice in a"), Principal("bob in b")


class Groups(QuotaCallback):
    """A callback that measures users by the group that ends their name, with the quotas reported to it."""

    def __init__(self) -> None:
        self.limits: dict[str, float] = {"a": 10.0}
        self.reported: list[object] = []
        self.stale: set[QuotaType] = set()

    def quota_metric_tags(
        self,
        quota_type: QuotaType,  # noqa: ARG002 - the same for all
        principal: Principal,
        client_id: str,
    ) -> Mapping[str, str]:
        """Name the group, and the client-id unless it is empty."""
        group = principal.name.rpartition(" ")[2]
        return {"group": group, "client": client_id} if client_id else {}

    def quota_limit(
        self,
        quota_type: QuotaType,  # noqa: ARG002 - the same for all
        metric_tags: Mapping[str, str],
    ) -> float | None:
        return self.limits.get(metric_tags.get("group", ""))

    def update_quota(self, quota_type: QuotaType, entity: QuotaEntity, bound: float) -> None:
        self.reported.append((quota_type, entity, bound))
        self.limits["a"] = bound

    def remove_quota(self, quota_type: QuotaType, entity: QuotaEntity) -> None:
        self.reported.append((quota_type, entity))
        self.limits.pop("a", None)

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        required = quota_type in self.stale
        self.stale.discard(quota_type)
        return required

    def update_cluster_metadata(self, cluster: object) -> bool:
        assert isinstance(cluster, float)
        changed = self.limits.get("a") != cluster
        self.limits["a"] = cluster
        return changed

    def close(self) -> None:
        self.reported.append("closed")


@pytest.fixture
def groups() -> Groups:
    return Groups()


@pytest.fixture
def managers(groups: Groups, registry: Registry) -> QuotaManagers:
    return QuotaManagers(registry, EPOCH_MS, None, groups)


def bounds(registry: Registry, tags: dict[str, str], *groups: str) -> list[float]:
    return [bound_of(metric_of(registry, "byte-rate", group, tags)) for group in groups]


A = {"group": "a", "client": "c"}
B = {"group": "b", "client": "c"}


def test_quotas_are_enabled_from_the_start(managers: QuotaManagers) -> None:
    """No rule is needed, and the level flag is the callback's own."""
    assert [(manager.quotas_enabled, manager.rules().flags) for manager in managers.all()] == [(True, 8)] * 4


def test_measures_under_the_callbacks_tags(managers: QuotaManagers, registry: Registry) -> None:
    """Users of a group share its quota; sensors are called after the values in order."""
    throttle_ms = [
        managers.produce.maybe_record_and_get_throttle_time(user, "c", 60, EPOCH_MS)
        for user in (ALICE, Principal("carol in a"), BOB)
    ]
    assert throttle_ms == [0, 2_000, 0]
    assert {"Produce-a:c", "ProduceThrottleTime-b:c"} <= set(registry.sensors())
    assert bounds(registry, A, "Produce") + bounds(registry, B, "Produce") == [10.0, UNLIMITED]


def test_no_tags_are_tags(managers: QuotaManagers, registry: Registry) -> None:
    """Requests without tags share one sensor, and an MBean without tags."""
    managers.fetch.record_no_throttle(ALICE, "", 5, EPOCH_MS)
    assert registry.get_sensor("Fetch-") is not None
    assert bounds(registry, {}, "Fetch") == [UNLIMITED]


def test_answers_about_requests(managers: QuotaManagers) -> None:
    """Answers come from the callback; no rule decides."""
    fetch = managers.fetch
    assert fetch.quota(ALICE, "c").bound == 10.0
    assert fetch.quota(BOB, "c").bound == UNLIMITED
    assert fetch.decide(ALICE, "c") is NO_RULE
    assert fetch.max_value_in_quota_window(ALICE, "c", EPOCH_MS) == 100.0
    assert fetch.max_value_in_quota_window(BOB, "c", EPOCH_MS) > 1e300


def test_configured_quotas_are_passed_on(managers: QuotaManagers, groups: Groups, registry: Registry) -> None:
    """A changed quota of any entity gives all metrics of its type the bounds of the callback."""
    managers.produce.record_no_throttle(ALICE, "c", 1, EPOCH_MS)
    managers.fetch.record_no_throttle(ALICE, "c", 1, EPOCH_MS)
    default_user = QuotaEntity(user=DEFAULT)
    managers.update_quota(QuotaType.PRODUCE, default_user, 20)
    assert groups.reported == [(QuotaType.PRODUCE, default_user, 20.0)]
    assert bounds(registry, A, "Produce", "Fetch") == [20.0, 10.0]
    assert managers.produce.rules() == {default_user: 20.0}
    for _ in range(2):
        managers.update_quota(QuotaType.PRODUCE, default_user, None)
    assert groups.reported[1:] == [(QuotaType.PRODUCE, default_user)] * 2
    assert bounds(registry, A, "Produce") == [UNLIMITED]
    assert managers.produce.rules().flags == 8


def test_a_reset_is_asked_for_at_every_request(managers: QuotaManagers, groups: Groups, registry: Registry) -> None:
    """The reset is of one type at a time; metrics of other requests get their new bounds too."""
    managers.produce.record_no_throttle(ALICE, "c", 1, EPOCH_MS)
    groups.limits = {"a": 7.0}
    managers.produce.record_no_throttle(BOB, "c", 1, EPOCH_MS)
    assert bounds(registry, A, "Produce") == [10.0]
    groups.stale = {QuotaType.PRODUCE, QuotaType.FETCH}
    managers.produce.record_no_throttle(BOB, "c", 1, EPOCH_MS)
    assert bounds(registry, A, "Produce") == [7.0]
    assert groups.stale == {QuotaType.FETCH}


def test_a_changed_cluster_can_change_all_bounds(managers: QuotaManagers, registry: Registry) -> None:
    """A changed cluster changes the bounds of all four types if the callback says so."""
    for manager in managers.all():
        manager.record_no_throttle(ALICE, "c", 0, EPOCH_MS)
    assert [managers.update_cluster_metadata(3.0) for _ in range(2)] == [True, False]
    values = bounds(registry, A, "Produce", "Fetch")
    values += [bound_of(metric_of(registry, "request-time", "Request", A))]
    values += [bound_of(metric_of(registry, "tokens", "ControllerMutation", A))]
    assert values == [3.0] * 4


def test_limits_requests_and_mutations(managers: QuotaManagers) -> None:
    """The callback serves all four managers."""
    nanos = 10**9 * 2
    assert managers.request.maybe_record_request(ALICE, "c", nanos, EPOCH_MS) == 1_000
    quota = managers.controller_mutation.quota_for(ALICE, "c", MutationApi.CREATE_TOPICS, 5, EPOCH_MS)
    quota.record(130, EPOCH_MS)
    assert quota.throttle_time_ms(EPOCH_MS) == 2_000


def test_is_closed_with_the_managers(managers: QuotaManagers, groups: Groups) -> None:
    """The callback is closed with the managers of its node."""
    managers.close()
    assert groups.reported == ["closed"]


def test_most_of_it_need_not_be_written() -> None:
    """A callback needs tags and limits only; its other methods do nothing by default."""
    callback = QuotaCallback()
    entity = QuotaEntity(user="u")
    callback.configure({})
    callback.update_quota(QuotaType.FETCH, entity, 1.0)
    callback.remove_quota(QuotaType.FETCH, entity)
    callback.close()
    assert not callback.quota_reset_required(QuotaType.FETCH)
    assert not callback.update_cluster_metadata(None)
    with pytest.raises(NotImplementedError):
        callback.quota_metric_tags(QuotaType.FETCH, ALICE, "c")
    with pytest.raises(NotImplementedError):
        callback.quota_limit(QuotaType.FETCH, {})
