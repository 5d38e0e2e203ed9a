"""The engine as of older releases, with figures worked out by hand; tests/differential compares it with Kafka."""

import copy
import math
import pickle

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.controller_mutation import ControllerMutationQuotaManager, MutationApi
from quotascope.metrics.engine.mutation_quota import UNBOUNDED
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.request_quota_manager import RequestQuotaManager
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.engine.windowed import Avg, WindowedSum
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.metrics.kafka.validation import validate_alteration

HOUR_MS = 3_600_000
ALICE = Principal("alice")
OLD, NEW = KafkaRelease(3, 7), KafkaRelease(3, 8)


def windows(release: KafkaRelease, samples: int = 2) -> MetricConfig:
    """Return a config of windows of a second."""
    return MetricConfig(samples, 1_000, release=release)


@pytest.mark.parametrize(("release", "kept"), [(OLD, 0.0), (NEW, 7.0)], ids=["3.7", "3.8"])
def test_a_window_ages_by_its_start_up_to_3_7(release: KafkaRelease, kept: float) -> None:
    """A window of 1 s used until 0.9 s is obsolete at 2 s by its start, and at 2.9 s by its last event."""
    total = WindowedSum()
    for now_ms, value in ((0, 3.0), (900, 4.0)):
        total.record(windows(release), value, EPOCH_MS + now_ms)
    assert total.measure(windows(release), EPOCH_MS + 1_999) == 7.0
    assert total.peek(windows(release), EPOCH_MS + 2_000) == kept
    assert total.measure(windows(release), EPOCH_MS + 2_000) == kept
    assert total.measure(windows(release), EPOCH_MS + 2_900) == 0.0


@pytest.mark.parametrize(("release", "total"), [(OLD, 2.0), (NEW, 3.0)], ids=["3.7", "3.8"])
def test_the_ring_has_one_window_less_up_to_3_7(release: KafkaRelease, total: float) -> None:
    """Up to 3.7, with a value a second, the third of two windows takes the place of the first."""
    ring = WindowedSum()
    for second in range(3):
        ring.record(windows(release), 1.0, EPOCH_MS + 1_000 * second)
    assert ring.measure(windows(release), EPOCH_MS + 2_000 - 1) == total


def test_a_steady_client_is_throttled_for_another_time_up_to_3_7() -> None:
    """
    The hundredth of 1,000 bytes each 100 ms, at 9.9 s, measures 100,000 bytes over ten windows and 0.9 s.

    From 11 s on the release decides how much of the past is still in the sum.
    """
    throttles = {}
    for release in (OLD, NEW):
        manager = ClientQuotaManager(Registry(), QuotaType.PRODUCE, EPOCH_MS, ManagerConfig(release=release))
        manager.update_quota(QuotaEntity("alice"), 5_000.0)
        throttles[release] = [
            manager.record_and_get_throttle_time(ALICE, "app", 1_000.0, EPOCH_MS + 100 * number)
            for number in range(150)
        ]
    assert throttles[OLD][99] == throttles[NEW][99] == 9_100
    # at 11 s the first window is obsolete by its start: 100 of 111,000 bytes in 11 windows, the newest new, over 10 s
    assert throttles[OLD][110] == round((101_000 / 10.0 - 5_000) / 5_000 * 10_000)
    assert throttles[NEW][110] == round((111_000 / 11.0 - 5_000) / 5_000 * 11_000)


def test_averages_follow_the_release_of_their_registry() -> None:
    """A throttle time of a broker of 3.7 is forgotten 60 s after its window began, not after its last throttle."""
    averages = {release: Registry(MetricConfig(release=release)).config for release in (OLD, NEW)}
    values = {}
    for release, config in averages.items():
        average = Avg()
        average.record(config, 100.0, EPOCH_MS)
        average.record(config, 300.0, EPOCH_MS + 29_000)
        values[release] = average.measure(config, EPOCH_MS + 60_000)
    assert math.isnan(values[OLD])
    assert values[NEW] == 200.0


@pytest.mark.parametrize(("version", "rate", "span"), [("3.2", math.inf, 0), ("3.3", 5_000.0, 1)])
def test_a_moment_without_length_up_to_3_2(version: str, rate: float, span: int) -> None:
    """The first value of a single window has no elapsed time: an infinite rate that throttles for 0 ms, or 1 ms."""
    release = KafkaRelease.parse(version)
    config = windows(release, samples=1)
    stat = Rate()
    stat.record(config, 5.0, EPOCH_MS)
    assert stat.peek(config, EPOCH_MS) == stat.measure(config, EPOCH_MS) == rate
    assert stat.window_size(config, EPOCH_MS) == span
    manager = ClientQuotaManager(Registry(), QuotaType.FETCH, EPOCH_MS, ManagerConfig(samples=1, release=release))
    manager.update_quota(QuotaEntity("alice"), 1_000.0)
    throttle_ms = manager.record_and_get_throttle_time(ALICE, "app", 5.0, EPOCH_MS)
    assert throttle_ms == (0 if span == 0 else 4)


def test_shapes_of_removed_rules_count_up_to_4_1() -> None:
    """A removed rule leaves its shape: a user without a rule is then measured by client-id, even without any rule."""
    ours = QuotaRules({QuotaEntity("bob"): 1.0}, forgets_removed=False)
    assert ours.metric_tags("alice", "app") == ("alice", "")
    assert not ours.remove(QuotaEntity(None, DEFAULT))
    assert ours.flags == 3
    assert ours.metric_tags("alice", "app") == ("", "app")
    assert ours.remove(QuotaEntity("bob"))
    assert (dict(ours), ours.flags, ours.enabled) == ({}, 3, True)
    assert ours.snapshot().flags == 3
    again = pickle.loads(pickle.dumps(ours))  # noqa: S301 - our own
    for duplicate in (copy.deepcopy(ours), again):
        duplicate.remove(QuotaEntity("bob", "app"))
        assert duplicate.flags == 7
    since = QuotaRules({QuotaEntity("bob"): 1.0})
    since.remove(QuotaEntity(None, DEFAULT))
    since.remove(QuotaEntity("bob"))
    assert (since.flags, since.enabled) == (0, False)


@pytest.mark.parametrize(("version", "enabled"), [("2.8", True), ("4.1", True), ("4.2", False)])
def test_requests_are_measured_after_the_last_rule_up_to_4_1(version: str, enabled: bool) -> None:  # noqa: FBT001
    """Up to 4.1, a manager that had a rule measures without one until the broker restarts."""
    config = ManagerConfig(release=KafkaRelease.parse(version))
    manager = ClientQuotaManager(Registry(), QuotaType.PRODUCE, EPOCH_MS, config)
    manager.update_quota(QuotaEntity("alice"), 1.0)
    manager.update_quota(QuotaEntity("alice"), None)
    assert manager.quotas_enabled is enabled
    assert manager.maybe_record_and_get_throttle_time(ALICE, "app", 1e9, EPOCH_MS) == 0


def test_exempt_time_expires_up_to_3_2() -> None:
    """The sensor appears with the first exempt request, ends after an hour without one, and does not come back."""
    for version, names in (("3.2", ()), ("3.3", ("exempt-Request",))):
        registry = Registry()
        manager = RequestQuotaManager(registry, EPOCH_MS, ManagerConfig(release=KafkaRelease.parse(version)))
        assert tuple(name for name in registry.sensors() if "exempt" in name) == names
        manager.record_exempt(1_000_000_000, EPOCH_MS)
        assert "exempt-Request" in registry.sensors()
        registry.expire_sensors(EPOCH_MS + HOUR_MS + 1)
        manager.record_exempt(1_000_000_000, EPOCH_MS + HOUR_MS + 2)
        assert tuple(name for name in registry.sensors() if "exempt" in name) == names


@pytest.mark.parametrize(("version", "left_ms"), [("4.1", -1_294_967_296), ("4.2", 0)])
def test_what_is_left_of_a_long_mutation_throttle(version: str, left_ms: int) -> None:
    """3,000,000 s are cut to 32 bits: up to 4.1 the rest is negative, since 4.2 it is 0; neither throttles."""
    config = ManagerConfig(release=KafkaRelease.parse(version))
    manager = ControllerMutationQuotaManager(Registry(), EPOCH_MS, config)
    manager.update_quota(QuotaEntity("alice"), 1.0)
    quota = manager.permissive_quota_for(ALICE, "app", EPOCH_MS)
    quota.record(3_000_011.0, EPOCH_MS)
    assert quota.throttle_time_ms(EPOCH_MS) == left_ms


@pytest.mark.parametrize(("version", "left_ms"), [("4.1", 0), ("4.2", 999)])
def test_the_longest_mutation_throttle_wraps_around_where_the_clock_goes_back(version: str, left_ms: int) -> None:
    """The largest long minus a negative time is negative in Java: up to 4.1 the rest is 0, since 4.2 32 bits."""
    config = ManagerConfig(release=KafkaRelease.parse(version))
    manager = ControllerMutationQuotaManager(Registry(), EPOCH_MS, config)
    manager.update_quota(QuotaEntity("alice"), 1.0)
    quota = manager.permissive_quota_for(ALICE, "app", EPOCH_MS)
    quota.record(1e20, EPOCH_MS)
    assert quota.throttle_time_ms(EPOCH_MS - 1_000) == left_ms


@pytest.mark.parametrize(("version", "left_ms"), [("2.8", 11_000), ("3.7", 11_000), ("4.1", 11_000), ("4.2", 0)])
def test_a_mutation_throttle_of_zero_where_the_clock_goes_back(version: str, left_ms: int) -> None:
    """A violation by a rounding residue throttles by the step back up to 4.1; without a violation nothing does."""
    config = ManagerConfig(samples=11, release=KafkaRelease.parse(version))
    manager = ControllerMutationQuotaManager(Registry(), EPOCH_MS, config)
    manager.update_quota(QuotaEntity("alice"), 10.0)
    quota = manager.permissive_quota_for(ALICE, "app", EPOCH_MS)
    quota.record(1.0, EPOCH_MS)
    assert quota.throttle_time_ms(EPOCH_MS - 11_000) == 0
    quota.record(109.00000000000003, EPOCH_MS)
    assert quota.throttle_time_ms(EPOCH_MS) == 0
    assert quota.throttle_time_ms(EPOCH_MS - 11_000) == left_ms


@pytest.mark.parametrize(("version", "enforced"), [("3.3", False), ("3.4", False), ("3.4-zk", True), ("3.5", True)])
def test_mutations_are_not_enforced_by_kraft_before_3_5(version: str, enforced: bool) -> None:  # noqa: FBT001
    """KRaft before 3.5 charges a mutation to no bucket, in any version of its API."""
    config = ManagerConfig(release=KafkaRelease.parse(version))
    manager = ControllerMutationQuotaManager(Registry(), EPOCH_MS, config)
    manager.update_quota(QuotaEntity("alice"), 1.0)
    quotas = [manager.quota_for(ALICE, "app", MutationApi.CREATE_TOPICS, number, EPOCH_MS) for number in (5, 6)]
    assert all((quota is not UNBOUNDED) is enforced for quota in quotas)


@pytest.mark.parametrize(("version", "tokens"), [("3.9", 1.0), ("3.9-zk", 11.0)])
def test_validations_are_not_charged_in_zookeeper_mode(version: str, tokens: float) -> None:
    """Validating 10 partitions costs nothing in ZooKeeper mode, and 10 of 11 tokens in KRaft mode."""
    registry = Registry()
    manager = ControllerMutationQuotaManager(registry, EPOCH_MS, ManagerConfig(release=KafkaRelease.parse(version)))
    manager.update_quota(QuotaEntity("alice"), 1.0)
    manager.strict_quota_for(ALICE, "app", EPOCH_MS).record(10.0, EPOCH_MS, validate_only=True)
    name = next(name for name in registry.metrics() if name.name == "tokens")
    assert registry.metrics()[name].value(EPOCH_MS) == tokens


@pytest.mark.parametrize(("version", "most"), [("2.8", 9.223372036854775807e19), ("3.0", 1.7976931348623157e308)])
def test_one_fetch_under_no_rule_of_client_ids_up_to_2_8(version: str, most: float) -> None:
    """A fetch has the static default of `quota.consumer.default`, the largest long; since 3.0 there is none."""
    config = ManagerConfig(release=KafkaRelease.parse(version))
    manager = ClientQuotaManager(Registry(), QuotaType.FETCH, EPOCH_MS, config)
    manager.update_quota(QuotaEntity(None, "other"), 5.0)
    assert manager.max_value_in_quota_window(ALICE, "app", EPOCH_MS) == most


CLIENT, ADDRESS = {"user": "u"}, {"ip": "10.1.2.3"}


@pytest.mark.parametrize(
    ("entity", "key", "value", "codes"),
    [
        # by KRaft since 3.5, KRaft before, and ZooKeeper mode
        (CLIENT, "producer_byte_rate", 0.0, (42, 0, 0)),
        (CLIENT, "consumer_byte_rate", -3.0, (42, 42, 42)),
        (CLIENT, "request_percentage", -0.5, (42, 0, 0)),
        (CLIENT, "producer_byte_rate", 1.5, (42, 42, 42)),
        (CLIENT, "producer_byte_rate", 2.0**63, (0, 0, 0)),
        (CLIENT, "producer_byte_rate", 1e19, (42, 42, 42)),
        (CLIENT, "producer_byte_rate", math.inf, (42, 42, 42)),
        (CLIENT, "producer_byte_rate", math.nan, (0, 0, 0)),
        (CLIENT, "nonsense", 1.0, (42, 42, 42)),
        (ADDRESS, "connection_creation_rate", 2.0**31, (42, 0, 42)),
        (ADDRESS, "connection_creation_rate", -1.0, (42, 42, 42)),
        (ADDRESS, "connection_creation_rate", 0.0, (42, 0, 0)),
    ],
)
def test_what_older_controllers_store(
    entity: dict[str, str], key: str, value: float, codes: tuple[int, int, int]
) -> None:
    """Up to 3.4, and in ZooKeeper mode, 0 and negative percentages are stored; fractions of whole numbers never are."""
    for version, code in zip(("3.9", "3.4", "3.9-zk"), codes, strict=True):
        problems = validate_alteration(entity, [(key, value)], release=KafkaRelease.parse(version))
        assert [problem.error_code for problem in problems] == ([code] if code else []), version
