"""Client quota managers: recording, throttling, changing quotas, mutations, and the four managers of a node or two."""

import math
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import (
    ALICE,
    BOB,
    DEFAULT_CLIENT,
    NANOS_PER_MS,
    OF_ALICE,
    RULE,
    Engine,
    Signal,
    bound_of,
    metric_of,
)
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.client_quota_manager import UNLIMITED, ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.controller_mutation import ControllerMutationQuotaManager, MutationApi
from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.errors import ThrottlingQuotaExceeded
from quotascope.metrics.engine.mutation_quota import (
    UNBOUNDED,
    MutationQuota,
    PermissiveMutationQuota,
    StrictMutationQuota,
)
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.quota_factory import QuotaConfig, QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.request_quota_manager import RequestQuotaManager
from quotascope.metrics.engine.throttle_callback import ThrottleCallback
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.release import KafkaRelease

TEN_WINDOWS = ManagerConfig(samples=10)
HOUR_MS = 3_600_000


@pytest.fixture
def engine() -> Engine:
    return Engine()


class TestRecording:
    """Costs of requests, and muted channels."""

    def test_client_ids_that_share_a_sensor_are_forgotten(self, engine: Engine) -> None:
        """Under rules of users, any number of client-ids takes constant memory, and no limit raises an error."""

        class Name(str):
            __slots__ = ("__weakref__",)

        engine.manager.update_quota(RULE, 1.0)
        first = weakref.ref(name := Name("first"))
        engine.manager.record_no_throttle(ALICE, name, 1.0, EPOCH_MS)
        for number in range(20_000):
            engine.manager.record_no_throttle(ALICE, name := Name(number), 1.0, EPOCH_MS)
        assert first() is None

    def test_max_value_with_a_single_window(self) -> None:
        """With a single window no window is whole, and the maximum is 0."""
        manager = Engine(ManagerConfig(samples=1)).manager
        manager.update_quota(QuotaEntity("bob"), 10)
        assert manager.max_value_in_quota_window(BOB, "c", EPOCH_MS) == 0.0

    @pytest.mark.parametrize("throttle_time_ms", [0, -1, -1_294_977_296])
    def test_not_at_all(self, engine: Engine, throttle_time_ms: int) -> None:
        """Neither zero nor a time that wrapped around is a throttle."""
        engine.manager.throttle(ALICE, "c", throttle_time_ms, ThrottleCallback(), now_ms=0, now_ns=0)
        assert metric_of(engine.registry, "queue-size", "Produce", {}).value(EPOCH_MS) == 0.0
        assert set(engine.registry.sensors()) == {"Produce-delayQueue"}

    def test_average_is_nan_while_no_one_is_throttled(self, engine: Engine) -> None:
        """The average knows throttles only, and forgets them."""
        engine.manager.sensors_for(ALICE, "c", EPOCH_MS)
        assert math.isnan(engine.value("throttle-time", EPOCH_MS))
        for ms in (100, 300):
            engine.manager.throttle(ALICE, "c", ms, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=0)
        assert engine.value("throttle-time", EPOCH_MS + 59_999) == 200.0
        assert math.isnan(engine.value("throttle-time", EPOCH_MS + 60_000))

    def test_sensors_expire_after_an_idle_hour_and_come_back(self, engine: Engine) -> None:
        """A throttle-time sensor ends an hour after its last throttle, with its metric; others after a record."""
        manager, registry = engine.manager, engine.registry
        manager.update_quota(QuotaEntity(None, "c"), 1.0)
        manager.record_and_get_throttle_time(ALICE, "c", 1.0, 0)
        manager.throttle(ALICE, "c", 100, ThrottleCallback(), now_ms=0, now_ns=0)
        manager.record_and_get_throttle_time(ALICE, "c", 1.0, 1000)
        assert registry.expire_sensors(HOUR_MS) == ()
        assert registry.expire_sensors(HOUR_MS + 1) == ("ProduceThrottleTime-:c",)
        assert "throttle-time" not in {name.name for name in registry.metrics()}
        assert registry.expire_sensors(HOUR_MS + 1001) == ("Produce-:c",)
        manager.record_and_get_throttle_time(ALICE, "c", 1.0, HOUR_MS + 2000)
        assert {"Produce-:c", "ProduceThrottleTime-:c"} <= set(registry.sensors())
        assert math.isnan(engine.value("throttle-time", HOUR_MS + 2000))


def test_the_metrics_are_kafkas() -> None:
    """A request creates the two sensors and two metrics that a broker creates."""
    registry = Registry()
    manager = ClientQuotaManager(registry, QuotaType.PRODUCE, 0)
    manager.update_quota(QuotaEntity("CN=a", "c"), 1.0)
    manager.record_and_get_throttle_time(Principal("CN=a"), "c", 0.0, 0)
    assert set(registry.sensors()) == {"Produce-delayQueue", "Produce-CN%3Da:c", "ProduceThrottleTime-CN%3Da:c"}
    tags = (("user", "CN%3Da"), ("client-id", "c"))
    names = {(name.name, name.group, tuple(name.tags.items())) for name in registry.metrics() if name.name != "count"}
    assert names == {
        ("queue-size", "Produce", ()),
        ("byte-rate", "Produce", tags),
        ("throttle-time", "Produce", tags),
    }


def test_descriptions() -> None:
    """Metrics describe themselves in Kafka's words."""
    registry = Registry()
    ControllerMutationQuotaManager(registry, 0).sensors_for(Principal("u"), "c", 0)
    assert {name.name: name.description for name in registry.metrics()} == {
        "count": "total number of registered metrics",
        "queue-size": "Tracks the size of the delay queue",
        "mutation-rate": "Tracking mutation-rate per user/client-id",
        "tokens": "Tracking remaining tokens in the token bucket per user/client-id",
        "throttle-time": "Tracking average throttle-time per user/client-id",
    }


def test_registry_tags_come_first() -> None:
    """A registry's own tags are on the metrics, and the quota is still found by the entity's."""
    manager = ClientQuotaManager(Registry(tags={"cluster": "x"}), QuotaType.PRODUCE, 0)
    manager.update_quota(QuotaEntity("u", "c"), 5.0)
    metric = manager.sensors_for(Principal("u"), "c", 0).quota.metrics()[0]
    assert list(metric.name.tags) == ["cluster", "user", "client-id"]
    manager.update_quota(QuotaEntity("u", "c"), 6.0)
    assert bound_of(metric) == 6.0


class TestChangingQuotas:
    """Rules come and go while clients are measured."""

    def test_rules_of_another_shape_measure_elsewhere(self, engine: Engine) -> None:
        """A request that was measured before is measured under its new tags from the next one on."""
        engine.manager.update_quota(DEFAULT_CLIENT, 1e9)
        engine.manager.record_and_get_throttle_time(ALICE, "c", 10.0, EPOCH_MS)
        engine.manager.update_quota(RULE, 1e9)
        engine.manager.record_and_get_throttle_time(ALICE, "c", 20.0, EPOCH_MS)
        rates = [engine.value("byte-rate", EPOCH_MS, user, client) for user, client in (("", "c"), ("alice", ""))]
        assert rates == [1.0, 2.0]

    def test_metrics_under_other_rules_are_left_alone(self, engine: Engine) -> None:
        """A rule for one name touches its metric only; a default reaches every metric that it decides for."""
        manager = engine.manager
        manager.update_quota(RULE, 10)
        metrics = [manager.sensors_for(user, "c", 0).quota.metrics()[0] for user in (ALICE, BOB)]
        results = []
        for entity in (RULE, QuotaEntity(DEFAULT)):
            configs = [metric.config for metric in metrics]
            manager.update_quota(entity, 20)
            results.append([metric.config is config for metric, config in zip(metrics, configs, strict=True)])
        assert results == [[False, True], [True, False]]
        assert (engine.bound("alice"), engine.bound("bob")) == (20.0, 20.0)

    def test_a_given_tag_is_used_as_it_is(self, engine: Engine) -> None:
        """A principal made from its tag keeps it in the metric and still meets its rule."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("a=b"), 10)
        manager.update_quota(DEFAULT_CLIENT, 30)
        manager.sensors_for(Principal.from_sanitized("a%3db"), "c", 0)
        manager.update_quota(QuotaEntity("a=b"), 20)
        assert engine.bound("a%3db") == 20.0

    def test_foreign_metrics_of_the_same_name(self, engine: Engine) -> None:
        """Metrics that another program registered under the name are bounded by their tags or not at all."""
        registry, manager = engine.registry, engine.manager
        tags: list[dict[str, str]] = [{}, {"user": "100%", "client-id": ""}]
        for metric_tags in tags:
            name = registry.metric_name("byte-rate", "Produce", metric_tags)
            registry.add_metric(name, CumulativeSum(), MetricConfig(quota=Quota(1.0)))
        registry.add_metric(registry.metric_name("byte-rate", "Produce", {"user": "u"}), CumulativeSum())
        manager.update_quota(QuotaEntity("100%"), 7)
        manager.refresh_metrics()
        assert [bound_of(metric_of(registry, "byte-rate", "Produce", metric_tags)) for metric_tags in tags] == [
            UNLIMITED,
            7.0,
        ]


USERS, CLIENTS = ["u", "CN=v", "w"], ["c", "d", ""]
entities = st.tuples(st.sampled_from([*USERS, DEFAULT, None]), st.sampled_from(["c", "d", DEFAULT, None])).filter(any)
changes = st.tuples(st.just("set"), entities, st.none() | st.sampled_from([10.0, 20.0, 30.0]))
looks = st.tuples(st.just("look"), st.tuples(st.sampled_from(USERS), st.sampled_from(CLIENTS)), st.none())


@given(st.lists(changes | looks, max_size=30))
def test_every_metric_has_the_bound_of_its_tags(steps: list[tuple[str, tuple[object, object], float | None]]) -> None:
    """However rules and sensors came about, no metric is left with an outdated bound."""
    engine = Engine()
    manager = engine.manager
    for kind, (user, client_id), bound in steps:
        if kind == "set":
            manager.update_quota(QuotaEntity(user, client_id), bound)  # type: ignore[arg-type]
        else:
            manager.sensors_for(Principal(str(user)), str(client_id), EPOCH_MS)
    for name, metric in engine.registry.metrics().items():
        if name.name == "byte-rate":
            user = Principal.from_sanitized(name.tags["user"]).name
            expected = manager.rules().bound_of(user, name.tags["client-id"])
            assert bound_of(metric) == (UNLIMITED if expected is None else expected)


class Controller:
    def __init__(self, bound: float, config: ManagerConfig = TEN_WINDOWS) -> None:
        self.registry = Registry()
        self.manager = ControllerMutationQuotaManager(self.registry, EPOCH_MS, config)
        self.manager.update_quota(RULE, bound)

    def strict(self) -> MutationQuota:
        """The quota of one request of a new client."""
        return self.manager.strict_quota_for(ALICE, "c", EPOCH_MS)

    def permissive(self) -> MutationQuota:
        """The quota of one request of an old client."""
        return self.manager.permissive_quota_for(ALICE, "c", EPOCH_MS)

    def value(self, name: str) -> float:
        return metric_of(self.registry, name, "ControllerMutation").value(EPOCH_MS)


def refused(quota: MutationQuota, permits: float = 1) -> int:
    """The throttle time with which a mutation is refused."""
    with pytest.raises(ThrottlingQuotaExceeded) as caught:
        quota.record(permits, EPOCH_MS)
    return caught.value.throttle_time_ms


class TestMutations:
    """Strict, permissive and unbounded quotas of mutations."""

    def test_refusals_cost_nothing(self) -> None:
        """A refused mutation leaves the bucket and the rate alone."""
        controller = Controller(10)
        quota = controller.strict()
        quota.record(110, EPOCH_MS)
        assert [refused(quota, permits) for permits in (3, 4)] == [1000, 1000]
        values = [controller.value(name) for name in ("tokens", "mutation-rate")]
        assert values == [-10.0, 110 / 30]

    def test_a_refusal_of_zero_ms(self) -> None:
        """A residue of the arithmetic refuses, with a throttle of 0 ms that does not count as exceeded."""
        quota = Controller(10).strict()
        quota.record(100.004, EPOCH_MS)
        assert refused(quota) == 0
        assert (quota.is_exceeded, quota.throttle_time_ms(EPOCH_MS)) == (False, 0)

    @pytest.mark.parametrize("minor", [3, 4])
    def test_long_throttles_wrap_around(self, minor: int) -> None:
        """
        A debt of 3,000,000 s does not fit into 32 bits.

        As in all of Kafka's releases the time turns negative, and the request is not throttled although it was refused.
        """
        quota = Controller(1, ManagerConfig(samples=10, release=KafkaRelease(4, minor))).strict()
        quota.record(3_000_010, EPOCH_MS)
        assert refused(quota) == -1_294_967_296
        assert (quota.is_exceeded, quota.throttle_time_ms(EPOCH_MS)) == (True, 0)

    def test_what_is_left_of_the_largest_throttle_wraps_as_in_java(self) -> None:
        """Under a clock set back by 4,949,886,161 ms, 2^63 - 1 ms become 654,918,864 (Kafka 4.4.0 and 4.3.1)."""
        quota = Controller(33.3, ManagerConfig()).permissive()
        quota.record(1e26, EPOCH_MS)
        assert quota.throttle_time_ms(EPOCH_MS) == 0  # -1 as 32 bits
        assert quota.throttle_time_ms(EPOCH_MS - 4_949_886_161) == 654_918_864

    @pytest.mark.parametrize(("charged", "tokens"), [(True, 70.0), (False, 100.0)])
    def test_validations_are_charged_by_default(self, *, charged: bool, tokens: float) -> None:
        """KRaft charges requests that only ask whether they would work, against KIP-599; the option does not."""
        controller = Controller(10, ManagerConfig(samples=10, charge_validate_only=charged))
        controller.strict().record(10, EPOCH_MS, validate_only=True)
        controller.permissive().record(20, EPOCH_MS, validate_only=True)
        assert controller.value("tokens") == tokens
        controller.permissive().record(20, EPOCH_MS)
        assert controller.value("tokens") == tokens - 20

    def test_unbounded(self) -> None:
        """Without rules everything is accepted and nothing is measured."""
        registry = Registry()
        manager = ControllerMutationQuotaManager(registry, EPOCH_MS)
        assert manager.strict_quota_for(ALICE, "c", EPOCH_MS) is UNBOUNDED
        assert manager.permissive_quota_for(ALICE, "c", EPOCH_MS) is UNBOUNDED
        UNBOUNDED.record(1e12, EPOCH_MS)
        assert (UNBOUNDED.is_exceeded, UNBOUNDED.throttle_time_ms(EPOCH_MS)) == (False, 0)
        assert set(registry.sensors()) == {"ControllerMutation-delayQueue"}

    @pytest.mark.parametrize("api", MutationApi)
    def test_strict_versions(self, api: MutationApi) -> None:
        """Clients that know the error get it, older ones are only throttled; tests/facts has the versions."""
        manager = Controller(1).manager
        old, new = (manager.quota_for(ALICE, "c", api, api.strict_since - later, EPOCH_MS) for later in (1, 0))
        assert isinstance(old, PermissiveMutationQuota)
        assert isinstance(new, StrictMutationQuota)

    def test_a_refused_mutation_waits_for_the_debt(self) -> None:
        """The manager returns the time until the bucket is even."""
        manager = Controller(1, ManagerConfig()).manager
        manager.record_and_get_throttle_time(ALICE, "c", 12, EPOCH_MS)
        assert manager.record_and_get_throttle_time(ALICE, "c", 1, EPOCH_MS) == 1000

    def test_unlimited_users_have_tokens_beyond_reason(self) -> None:
        """Without a limit the bucket holds 11 times the largest long, as a broker shows it."""
        rate, tokens = Controller(1, ManagerConfig()).manager.sensors_for(BOB, "c", EPOCH_MS).quota.metrics()
        assert rate.config.quota is None
        assert tokens.value(EPOCH_MS) == 11 * UNLIMITED


class TestManagersOfANode:
    """Four managers over one registry, and two sets of them on a combined node."""

    def test_one_of_each(self) -> None:
        """Every type has its manager, with the windows of its kind."""
        config = QuotaConfig(client=ManagerConfig(samples=5), controller=ManagerConfig(samples=7))
        managers = QuotaManagers(Registry(), EPOCH_MS, config)
        assert {manager.quota_type: manager.config.samples for manager in managers.all()} == {
            QuotaType.FETCH: 5,
            QuotaType.PRODUCE: 5,
            QuotaType.REQUEST: 5,
            QuotaType.CONTROLLER_MUTATION: 7,
        }
        assert isinstance(managers.of(QuotaType.REQUEST), RequestQuotaManager)
        assert isinstance(managers.of(QuotaType.CONTROLLER_MUTATION), ControllerMutationQuotaManager)

    def test_reap_ends_all_that_are_due(self) -> None:
        """A call of the reaper ends every due throttle of every type."""
        managers = QuotaManagers(Registry(), EPOCH_MS)
        for manager in managers.all():
            for ms in (10, 10, 30):
                manager.throttle(ALICE, "c", ms, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=0)
        assert [managers.reap(EPOCH_MS + 10, 10 * NANOS_PER_MS) for _ in range(2)] == [8, 0]

    @pytest.mark.parametrize("quota_type", QuotaType)
    def test_threads_end_throttles(self, quota_type: QuotaType) -> None:
        """Threads that are started once end the throttles of all types, until they are closed."""
        managers, signal = QuotaManagers(Registry(), EPOCH_MS), Signal()
        name = f"test-ThrottledChannelReaper-{quota_type.group}"
        for _ in range(2):
            managers.start_reapers("test-")
        assert [thread.name for thread in threading.enumerate()].count(name) == 1
        managers.of(quota_type).throttle(ALICE, "c", 1, signal, now_ms=EPOCH_MS, now_ns=0)
        assert signal.ended.wait(60)
        for _ in range(2):
            managers.close()
        assert name not in [thread.name for thread in threading.enumerate()]

    def test_two_sets_meet_in_the_same_sensors(self) -> None:
        """Broker and controller are in one process: what one set records counts for the other."""
        registry = Registry()
        quotas = []
        for managers in (QuotaManagers(registry, EPOCH_MS), QuotaManagers(registry, EPOCH_MS)):
            managers.update_quota(QuotaType.CONTROLLER_MUTATION, RULE, 10)
            quotas.append(managers.controller_mutation.strict_quota_for(ALICE, "c", EPOCH_MS))
        quotas[0].record(120, EPOCH_MS)
        assert refused(quotas[1]) == 1000

    def test_a_shared_metric_follows_a_rule_that_is_learned(self) -> None:
        """A metric is bounded if either set has the rule."""
        registry = Registry()
        broker, controller = QuotaManagers(registry, EPOCH_MS), QuotaManagers(registry, EPOCH_MS)
        broker.update_quota(QuotaType.PRODUCE, RULE, 10)
        broker.produce.sensors_for(ALICE, "c", EPOCH_MS)
        controller.update_quota(QuotaType.PRODUCE, RULE, 20)
        assert bound_of(metric_of(registry, "byte-rate", "Produce", OF_ALICE)) == 20.0
        assert broker.produce.quota(ALICE, "c").bound == 10.0
