"""Recording, throttling and changing quotas, with the figures of Kafka's tests and formulae."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import (
    ANONYMOUS,
    DEFAULT,
    INT_MAX,
    UNLIMITED,
    ClientQuotaManager,
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

EPOCH_MS = 1_600_000_000_000
MS = 1_000_000
ALICE, BOB = Principal("alice"), Principal("bob")
DEFAULT_CLIENT = QuotaEntity(None, DEFAULT)


class Engine:
    """A Produce manager with its registry, and short ways to look into them."""

    def __init__(self, config: ManagerConfig | None = None) -> None:
        self.registry = Registry()
        self.manager = ClientQuotaManager(
            self.registry, QuotaType.PRODUCE, EPOCH_MS, config
        )

    def bound(self, user: str, client_id: str) -> float:
        """The bound on the metric with these tags."""
        name = self.registry.metric_name(
            "byte-rate", "Produce", {"user": user, "client-id": client_id}
        )
        metric = self.registry.metric(name)
        assert metric is not None
        assert metric.config.quota is not None
        return metric.config.quota.bound

    def value(
        self, name: str, now_ms: int, user: str = "", client_id: str = "c"
    ) -> float:
        """The value of a Produce metric with these tags."""
        tags = {"user": user, "client-id": client_id}
        metric = self.registry.metric(self.registry.metric_name(name, "Produce", tags))
        assert metric is not None
        return metric.value(now_ms)

    def queue_size(self) -> float:
        """How many channels are throttled."""
        metric = self.registry.metric(
            self.registry.metric_name("queue-size", "Produce")
        )
        assert metric is not None
        return metric.value(EPOCH_MS)


@pytest.fixture
def engine() -> Engine:
    """An engine without rules."""
    return Engine()


class TestRecording:
    """What a request costs and what follows."""

    def test_nothing_without_rules(self, engine: Engine) -> None:
        """As long as no rule exists, requests leave no trace."""
        manager = engine.manager
        assert not manager.quotas_enabled
        throttle = manager.maybe_record_and_get_throttle_time(ALICE, "c", 1e12, 0)
        assert throttle == 0
        assert set(engine.registry.sensors()) == {"Produce-delayQueue"}

    def test_violation(self, engine: Engine) -> None:
        """6300 bytes in 10.5 s are 600 B/s; against 500 B/s that costs 2100 ms."""
        manager = engine.manager
        manager.update_quota(DEFAULT_CLIENT, 500)
        for second in range(10):
            now_ms = EPOCH_MS + second * 1000
            assert (
                manager.maybe_record_and_get_throttle_time(ANONYMOUS, "c", 400, now_ms)
                == 0
            )
        now_ms = EPOCH_MS + 10_500
        assert (
            manager.maybe_record_and_get_throttle_time(ANONYMOUS, "c", 2300, now_ms)
            == 2100
        )

    def test_a_first_value_counts_over_ten_seconds(self, engine: Engine) -> None:
        """With 11 windows of 1 s the first rate is a tenth of the value, and unlimited clients are measured too."""
        engine.manager.update_quota(QuotaEntity(None, "other"), 5)
        engine.manager.record_and_get_throttle_time(ALICE, "c", 5000, EPOCH_MS)
        assert engine.value("byte-rate", EPOCH_MS) == 500.0
        assert engine.bound("", "c") == UNLIMITED

    def test_long_throttles_wrap_around(self, engine: Engine) -> None:
        """At 1 B/s, 3 MB come out negative and 3 GB as 24.5 days, as in Kafka."""
        manager = engine.manager
        manager.update_quota(DEFAULT_CLIENT, 1)
        record = manager.record_and_get_throttle_time
        assert record(ALICE, "c", 2e6, EPOCH_MS) == 1_999_990_000
        assert record(ALICE, "c", 1e6, EPOCH_MS) == -1_294_977_296
        assert record(ALICE, "d", 3e9, EPOCH_MS) == 2_112_817_392

    def test_long_throttles_stay_long_on_request(self) -> None:
        """The sane option stops at 24.8 days."""
        manager = Engine(ManagerConfig(saturate_throttle_time=True)).manager
        manager.update_quota(DEFAULT_CLIENT, 1)
        record = manager.record_and_get_throttle_time
        assert record(ALICE, "c", 2e6, EPOCH_MS) == 1_999_990_000
        assert record(ALICE, "c", 1e6, EPOCH_MS) == INT_MAX

    def test_unrecord(self, engine: Engine) -> None:
        """Taken back, a value counts no longer."""
        manager = engine.manager
        manager.update_quota(DEFAULT_CLIENT, 500)
        record = manager.record_and_get_throttle_time
        assert record(ALICE, "c", 4000, EPOCH_MS) == 0
        assert record(ALICE, "c", 6000, EPOCH_MS) == 10_000
        manager.unrecord(ALICE, "c", 6000, EPOCH_MS)
        assert engine.value("byte-rate", EPOCH_MS) == 400.0
        assert record(ALICE, "c", 0, EPOCH_MS) == 0

    def test_unrecord_without_rules(self, engine: Engine) -> None:
        """With nothing to take it from, the rate turns negative, as in Kafka."""
        engine.manager.unrecord(ALICE, "c", 100, EPOCH_MS)
        assert engine.value("byte-rate", EPOCH_MS) == -10.0

    def test_a_removed_sensor_is_made_again(self, engine: Engine) -> None:
        """Whoever was measured before starts anew after expiry, and is measured with the same sensor until then."""
        engine.manager.update_quota(QuotaEntity("alice"), 1e9)
        first, again = (
            engine.manager.sensors_for(ALICE, "c", EPOCH_MS).quota for _ in range(2)
        )
        engine.manager.record_no_throttle(ALICE, "c", 100.0, EPOCH_MS)
        assert first is again
        assert engine.value("byte-rate", EPOCH_MS, "alice", "") == 10.0
        engine.registry.expire_sensors(EPOCH_MS + 3_600_001)
        engine.manager.record_no_throttle(ALICE, "c", 50.0, EPOCH_MS + 3_600_001)
        assert engine.value("byte-rate", EPOCH_MS + 3_600_001, "alice", "") == 5.0
        assert engine.manager.sensors_for(ALICE, "c", EPOCH_MS).quota is not first

    def test_a_new_rule_moves_a_client_at_once(self, engine: Engine) -> None:
        """Who was measured under one shape of tags is measured under another with the next request."""
        engine.manager.update_quota(QuotaEntity("alice"), 1e9)
        engine.manager.record_no_throttle(ALICE, "c", 100.0, EPOCH_MS)
        engine.manager.update_quota(QuotaEntity("alice", "c"), 1e9)
        engine.manager.record_no_throttle(ALICE, "c", 50.0, EPOCH_MS)
        assert engine.value("byte-rate", EPOCH_MS, "alice", "") == 10.0
        assert engine.value("byte-rate", EPOCH_MS, "alice", "c") == 5.0

    def test_record_no_throttle(self, engine: Engine) -> None:
        """A cost may be recorded without anybody being throttled for it there and then."""
        manager = engine.manager
        manager.update_quota(DEFAULT_CLIENT, 1)
        manager.record_no_throttle(ALICE, "c", 1e6, EPOCH_MS)
        assert engine.value("byte-rate", EPOCH_MS) == 1e5
        assert manager.record_and_get_throttle_time(ALICE, "c", 0, EPOCH_MS) > 0

    def test_max_value_in_quota_window(self) -> None:
        """A fetch may return what a client may use in all whole windows together."""
        manager = Engine(ManagerConfig(samples=4)).manager
        most = manager.max_value_in_quota_window
        assert most(ALICE, "c", EPOCH_MS) == sys.float_info.max
        manager.update_quota(QuotaEntity("bob"), 10)
        assert most(ALICE, "c", EPOCH_MS) == sys.float_info.max
        assert most(BOB, "c", EPOCH_MS) == 30.0

    def test_max_value_with_a_single_window(self) -> None:
        """With one window there is no whole one, and nothing may be returned."""
        manager = Engine(ManagerConfig(samples=1)).manager
        manager.update_quota(QuotaEntity("bob"), 10)
        assert manager.max_value_in_quota_window(BOB, "c", EPOCH_MS) == 0.0


class TestThrottling:
    """Muting a channel and what is counted of it."""

    def test_until_it_is_over(self, engine: Engine) -> None:
        """A channel is in the queue for as long as it is throttled."""
        engine.manager.throttle(
            ALICE, "c", 2100, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=5 * MS
        )
        assert engine.queue_size() == 1.0
        assert not engine.manager.reap(EPOCH_MS + 2099, 2104 * MS)
        assert engine.manager.reap(EPOCH_MS + 2100, 2105 * MS)
        assert engine.queue_size() == 0.0

    @pytest.mark.parametrize("throttle_time_ms", [0, -1, -1_294_977_296])
    def test_not_at_all(self, engine: Engine, throttle_time_ms: int) -> None:
        """Zero is no throttle, and neither is a time that wrapped around."""
        engine.manager.throttle(
            ALICE, "c", throttle_time_ms, ThrottleCallback(), now_ms=0, now_ns=0
        )
        assert engine.queue_size() == 0.0
        assert set(engine.registry.sensors()) == {"Produce-delayQueue"}

    def test_average_is_nan_while_nobody_is_throttled(self, engine: Engine) -> None:
        """The average knows throttles only, and forgets them."""
        engine.manager.sensors_for(ALICE, "c", EPOCH_MS)
        assert math.isnan(engine.value("throttle-time", EPOCH_MS))
        for ms in (100, 300):
            engine.manager.throttle(
                ALICE, "c", ms, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=0
            )
        assert engine.value("throttle-time", EPOCH_MS + 59_999) == 200.0
        assert math.isnan(engine.value("throttle-time", EPOCH_MS + 60_000))

    def test_counters_do_not_forget(self, engine: Engine) -> None:
        """What Kafka lacks: ms and requests since the sensor was made."""
        for ms in (100, 300, 0):
            engine.manager.throttle(
                ALICE, "c", ms, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=0
            )
        later = EPOCH_MS + 3_000_000
        assert engine.value("throttle-time-total", later) == 400.0
        assert engine.value("throttle-count", later) == 2.0

    def test_counters_end_with_their_sensor(self, engine: Engine) -> None:
        """After an hour without a throttle the counters go, and start again from zero."""
        manager = engine.manager
        manager.throttle(ALICE, "c", 100, ThrottleCallback(), now_ms=0, now_ns=0)
        engine.registry.expire_sensors(3_600_001)
        name = engine.registry.metric_name(
            "throttle-count", "Produce", {"user": "", "client-id": "c"}
        )
        assert engine.registry.metric(name) is None
        manager.sensors_for(ALICE, "c", 3_600_002)
        assert engine.value("throttle-count", 3_600_002) == 0.0


class TestChangingQuotas:
    """Rules come and go while clients are measured."""

    def test_parsing_figures(self, engine: Engine) -> None:
        """The figures of Kafka's own test of user quotas."""
        manager = engine.manager
        one, two = Principal("User1"), Principal("User2")
        manager.update_quota(QuotaEntity("User1"), 2000)
        manager.update_quota(QuotaEntity("User2"), 4000)
        record = manager.record_and_get_throttle_time
        assert manager.quota(ALICE, "p1") == Quota(UNLIMITED)
        assert manager.quota(two, "p2") == Quota(4000)
        assert record(one, "p1", 27_500, EPOCH_MS) == 3750
        manager.update_quota(QuotaEntity("User1"), 3000)
        assert record(one, "p1", 0, EPOCH_MS) == 0
        manager.update_quota(QuotaEntity("User1"), 500)
        assert record(one, "p1", 0, EPOCH_MS) == 45_000
        manager.update_quota(QuotaEntity("User1"), None)
        manager.update_quota(QuotaEntity(DEFAULT), 4000)
        assert manager.quota(one, "p1") == Quota(4000)
        assert record(one, "p1", 11_000, EPOCH_MS) == 0

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
        before = [
            manager.sensors_for(who, "c", 0).quota.metrics()[0] for who in (ALICE, BOB)
        ]
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

    def test_names_that_need_sanitising(self, engine: Engine) -> None:
        """A rule finds the metric of a user whose tag is percent-encoded, alone and among all."""
        manager, user = engine.manager, Principal("CN=a b,O=ü")
        tag = "CN%3Da%20b%2CO%3D%C3%BC"
        manager.update_quota(QuotaEntity(user.name), 10)
        manager.sensors_for(user, "c", 0)
        assert engine.bound(tag, "") == 10.0
        manager.update_quota(QuotaEntity(user.name), 20)
        assert engine.bound(tag, "") == 20.0
        manager.update_quota(DEFAULT_CLIENT, 30)
        manager.update_quota(QuotaEntity(user.name), 40)
        assert engine.bound(tag, "") == 40.0

    def test_a_given_tag_is_used_as_it_is(self, engine: Engine) -> None:
        """A principal made from its tag keeps it in the metric and still meets its rule."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("a=b"), 10)
        manager.update_quota(DEFAULT_CLIENT, 30)
        manager.sensors_for(Principal.from_sanitized("a%3db"), "c", 0)
        manager.update_quota(QuotaEntity("a=b"), 20)
        assert engine.bound("a%3db", "") == 20.0

    def test_superseded_metrics_lose_their_limit(self, engine: Engine) -> None:
        """A metric whose rule is gone stays, without a limit; requests move on with fresh counts."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("alice"), 10)
        manager.record_and_get_throttle_time(ALICE, "c", 11_000, EPOCH_MS)
        manager.update_quota(DEFAULT_CLIENT, 10)
        manager.update_quota(QuotaEntity("alice"), None)
        assert engine.bound("alice", "") == UNLIMITED
        assert engine.value("byte-rate", EPOCH_MS, "alice", "") == 1100.0
        assert manager.record_and_get_throttle_time(ALICE, "c", 0, EPOCH_MS) == 0

    def test_samples_survive_a_change(self, engine: Engine) -> None:
        """A new limit is applied to what was recorded under the old one."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("alice"), 1e9)
        record = manager.record_and_get_throttle_time
        assert record(ALICE, "c", 11_000, EPOCH_MS) == 0
        manager.update_quota(QuotaEntity("alice"), 10)
        assert record(ALICE, "c", 0, EPOCH_MS) == 1_090_000

    def test_last_rule_removed(self, engine: Engine) -> None:
        """Without rules nothing is recorded any more."""
        manager = engine.manager
        manager.update_quota(QuotaEntity("alice"), 10)
        manager.update_quota(QuotaEntity("bob"), None)
        assert dict(manager.rules()) == {QuotaEntity("alice"): 10.0}
        manager.update_quota(QuotaEntity("alice"), None)
        assert not manager.quotas_enabled
        assert dict(manager.rules()) == {}

    def test_foreign_metrics_of_the_same_name(self, engine: Engine) -> None:
        """Metrics that somebody else registered under the name are bounded by their tags or not at all."""
        registry, manager = engine.registry, engine.manager
        bounded = MetricConfig(quota=Quota(1.0))
        tags: list[dict[str, str]] = [
            {},
            {"user": "100%", "client-id": ""},
        ]
        for each in tags:
            name = registry.metric_name("byte-rate", "Produce", each)
            registry.add_metric(name, CumulativeSum(), bounded)
        bare = registry.metric_name("byte-rate", "Produce", {"user": "u"})
        registry.add_metric(bare, CumulativeSum())
        manager.update_quota(QuotaEntity("100%"), 7)
        manager.refresh_metrics()
        quotas = [
            registry.metrics()[registry.metric_name("byte-rate", "Produce", each)]
            for each in tags
        ]
        assert [metric.config.quota for metric in quotas] == [
            Quota(UNLIMITED),
            Quota(7.0),
        ]


USERS, CLIENTS = ["u", "CN=v", "w"], ["c", "d", ""]
entities = st.tuples(
    st.sampled_from([*USERS, DEFAULT, None]), st.sampled_from(["c", "d", DEFAULT, None])
).filter(any)
changes = st.tuples(
    st.just("set"), entities, st.none() | st.sampled_from([10.0, 20.0, 30.0])
)
looks = st.tuples(
    st.just("look"),
    st.tuples(st.sampled_from(USERS), st.sampled_from(CLIENTS)),
    st.none(),
)


@given(st.lists(changes | looks, max_size=30))
def test_every_metric_has_the_bound_of_its_tags(
    steps: list[tuple[str, tuple[object, object], float | None]],
) -> None:
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
            assert metric.config.quota.bound == (
                UNLIMITED if expected is None else expected
            )
