"""Rules that change under clients, with the figures of Kafka's tests and formulae."""

from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.produce_engine import ALICE, BOB, DEFAULT_CLIENT, EPOCH_MS, Engine

from quotascope.metrics import (
    DEFAULT,
    UNLIMITED,
    CumulativeSum,
    Level,
    MetricConfig,
    Principal,
    Quota,
    QuotaEntity,
)


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

    def test_names_that_need_sanitizing(self, engine: Engine) -> None:
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
