"""Recording, throttling and changing quotas, with the figures of Kafka's tests and formulae."""

import math
import sys

import pytest
from tests.metrics.produce_engine import (
    ALICE,
    BOB,
    DEFAULT_CLIENT,
    EPOCH_MS,
    MS,
    Engine,
)

from quotascope.metrics import (
    ANONYMOUS,
    INT_MAX,
    UNLIMITED,
    KafkaRelease,
    ManagerConfig,
    QuotaEntity,
    ThrottleCallback,
)


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

    def test_long_throttles_wrap_around(self) -> None:
        """At 1 B/s, 3 MB come out negative and 3 GB as 24.5 days, as in Kafka up to 4.3."""
        manager = Engine(ManagerConfig(release=KafkaRelease(4, 3))).manager
        manager.update_quota(DEFAULT_CLIENT, 1)
        record = manager.record_and_get_throttle_time
        assert record(ALICE, "c", 2e6, EPOCH_MS) == 1_999_990_000
        assert record(ALICE, "c", 1e6, EPOCH_MS) == -1_294_977_296
        assert record(ALICE, "d", 3e9, EPOCH_MS) == 2_112_817_392

    def test_long_throttles_stop(self, engine: Engine) -> None:
        """Since 4.4 they stop at 24.8 days."""
        manager = engine.manager
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
