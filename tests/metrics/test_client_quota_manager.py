"""Recording, throttling and changing quotas, with the figures of Kafka's tests and formulae."""

import math

import pytest
from tests.metrics.produce_engine import (
    ALICE,
    BOB,
    DEFAULT_CLIENT,
    EPOCH_MS,
    Engine,
)

from quotascope.metrics import (
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
