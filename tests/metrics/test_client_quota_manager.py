"""Recording, throttling and changing quotas, with the figures of Kafka's tests and formulae."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.produce_engine import ALICE, BOB, DEFAULT_CLIENT, EPOCH_MS, Engine

from quotascope.metrics import (
    DEFAULT,
    UNLIMITED,
    ClientQuotaManager,
    ControllerMutationQuotaManager,
    CumulativeSum,
    Level,
    ManagerConfig,
    MetricConfig,
    Principal,
    Quota,
    QuotaEntity,
    QuotaType,
    Registry,
    ThrottleCallback,
)


class TestRecording:
    """What a request costs and what follows."""

    def test_record_no_throttle(self, engine: Engine) -> None:
        """A cost may be recorded without a throttle for it there and then."""
        manager = engine.manager
        manager.update_quota(DEFAULT_CLIENT, 1)
        manager.record_no_throttle(ALICE, "c", 1e6, EPOCH_MS)
        assert engine.value("byte-rate", EPOCH_MS) == 1e5
        assert manager.record_and_get_throttle_time(ALICE, "c", 0, EPOCH_MS) > 0

    def test_max_value_with_a_single_window(self) -> None:
        """With one window there is no whole one, and nothing may be returned."""
        manager = Engine(ManagerConfig(samples=1)).manager
        manager.update_quota(QuotaEntity("bob"), 10)
        assert manager.max_value_in_quota_window(BOB, "c", EPOCH_MS) == 0.0


class TestThrottling:
    """Muting a channel and what is counted of it."""

    @pytest.mark.parametrize("throttle_time_ms", [0, -1, -1_294_977_296])
    def test_not_at_all(self, engine: Engine, throttle_time_ms: int) -> None:
        """Zero is no throttle, and neither is a time that wrapped around."""
        engine.manager.throttle(ALICE, "c", throttle_time_ms, ThrottleCallback(), now_ms=0, now_ns=0)
        assert engine.queue_size() == 0.0
        assert set(engine.registry.sensors()) == {"Produce-delayQueue"}

    def test_average_is_nan_while_no_one_is_throttled(self, engine: Engine) -> None:
        """The average knows throttles only, and forgets them."""
        engine.manager.sensors_for(ALICE, "c", EPOCH_MS)
        assert math.isnan(engine.value("throttle-time", EPOCH_MS))
        for ms in (100, 300):
            engine.manager.throttle(ALICE, "c", ms, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=0)
        assert engine.value("throttle-time", EPOCH_MS + 59_999) == 200.0
        assert math.isnan(engine.value("throttle-time", EPOCH_MS + 60_000))

    def test_counters_end_with_their_sensor(self, engine: Engine) -> None:
        """After an hour without a throttle the counters go, and start again from zero."""
        manager = engine.manager
        manager.throttle(ALICE, "c", 100, ThrottleCallback(), now_ms=0, now_ns=0)
        engine.registry.expire_sensors(3_600_001)
        name = engine.registry.metric_name("throttle-count", "Produce", {"user": "", "client-id": "c"})
        assert engine.registry.metric(name) is None
        manager.sensors_for(ALICE, "c", 3_600_002)
        assert engine.value("throttle-count", 3_600_002) == 0.0


PLAIN = ManagerConfig(extra_counters=False)
HOUR_MS = 3_600_000


def metrics_of(registry: Registry) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """Name, group and tags of all metrics but the registry's own."""
    return {(name.name, name.group, tuple(name.tags.items())) for name in registry.metrics() if name.name != "count"}


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


class TestChangingQuotas:
    """Rules come and go while clients are measured."""

    def test_decide(self, engine: Engine) -> None:
        """The rule behind a bound is known."""
        engine.manager.update_quota(QuotaEntity(DEFAULT), 4000)
        found = engine.manager.decide(ALICE, "c")
        assert (found.level, found.entity) == (Level.DEFAULT_USER, QuotaEntity(DEFAULT))

    def test_one_metric_is_enough(self, engine: Engine) -> None:
        """Under rules of one shape a rule for one name touches one metric only."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("alice"), 10)
        manager.update_quota(QuotaEntity("bob"), 10)
        before = [manager.sensors_for(who, "c", 0).quota.metrics()[0] for who in (ALICE, BOB)]
        configs = [metric.config for metric in before]
        manager.update_quota(QuotaEntity("alice"), 20)
        assert before[0].config is not configs[0]
        assert before[1].config is configs[1]
        assert (engine.bound("alice", ""), engine.bound("bob", "")) == (20.0, 10.0)

    def test_a_default_touches_all_that_change(self, engine: Engine) -> None:
        """A default rule reaches every metric it decides for, and leaves the others alone."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("alice"), 10)
        own = manager.sensors_for(ALICE, "c", 0).quota.metrics()[0].config
        manager.sensors_for(BOB, "c", 0)
        assert engine.bound("bob", "") == UNLIMITED
        manager.update_quota(QuotaEntity(DEFAULT), 30)
        assert (engine.bound("alice", ""), engine.bound("bob", "")) == (10.0, 30.0)
        assert manager.sensors_for(ALICE, "c", 0).quota.metrics()[0].config is own

    def test_a_given_tag_is_used_as_it_is(self, engine: Engine) -> None:
        """A principal made from its tag keeps it in the metric and still meets its rule."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("a=b"), 10)
        manager.update_quota(DEFAULT_CLIENT, 30)
        manager.sensors_for(Principal.from_sanitized("a%3db"), "c", 0)
        manager.update_quota(QuotaEntity("a=b"), 20)
        assert engine.bound("a%3db", "") == 20.0

    def test_foreign_metrics_of_the_same_name(self, engine: Engine) -> None:
        """Metrics that another program registered under the name are bounded by their tags or not at all."""
        registry, manager = engine.registry, engine.manager
        bounded = MetricConfig(quota=Quota(1.0))
        tags: list[dict[str, str]] = [{}, {"user": "100%", "client-id": ""}]
        for each in tags:
            name = registry.metric_name("byte-rate", "Produce", each)
            registry.add_metric(name, CumulativeSum(), bounded)
        bare = registry.metric_name("byte-rate", "Produce", {"user": "u"})
        registry.add_metric(bare, CumulativeSum())
        manager.update_quota(QuotaEntity("100%"), 7)
        manager.refresh_metrics()
        quotas = [registry.metrics()[registry.metric_name("byte-rate", "Produce", each)] for each in tags]
        assert [metric.config.quota for metric in quotas] == [
            Quota(UNLIMITED),
            Quota(7.0),
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
            assert metric.config.quota is not None
            assert metric.config.quota.bound == (UNLIMITED if expected is None else expected)
