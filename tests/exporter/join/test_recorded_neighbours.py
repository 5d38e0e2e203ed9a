"""What real brokers said of the quotas beside the client quotas."""

import pytest
from tests.exporter.recorded import PAIR_LIMITS, joined

from quotascope.exporter.snapshot import LimitedRate, Snapshot


def test_connections_of_a_broker_show_by_scope(pair_throttled: Snapshot) -> None:
    """A listener that is held back, another whose clients are refused, and the address that both are under."""
    found = pair_throttled.nodes[0].connections
    assert found.broker == LimitedRate(rate=5.221932114882507, limit=77.0)
    assert found.listeners["TLS"] == LimitedRate(rate=2.4737779536908766, limit=2.0, throttle_time_seconds=891.8 / 1000)
    assert found.listeners["SASLTLS"] == LimitedRate(rate=0.0, limit=77.0, throttle_time_seconds=0.0)
    assert found.ips == {"127.0.0.1": LimitedRate(rate=5.3438891637803065, limit=5.0)}
    refused = found.ip_throttle_time_seconds
    assert refused == {
        "TLS": pytest.approx(0.062),
        "SASL": pytest.approx(0.5152857142857143),
        "SASLTLS": 0.0,
        "ADMIN": 0.0,
        "CONTROLLER": 0.0,
    }


def test_a_replica_that_moves_shows_on_both_ends(pair_throttled: Snapshot) -> None:
    """The leader's rate on one broker, the follower's on the other, and limits that nothing uses."""
    leader, follower = pair_throttled.nodes
    assert leader.replication == {
        "leader": LimitedRate(rate=357723.00869861845, limit=300_000.0),
        "follower": LimitedRate(limit=400_000.0),
    }
    assert follower.replication == {"follower": LimitedRate(rate=345210.2057613169, limit=400_000.0)}


def test_what_is_left_of_removed_limits_is_no_limit(pair_removed: Snapshot) -> None:
    """Throttles linger and beans stay; the address is not measured any more."""
    leader, follower = pair_removed.nodes
    assert leader.connections.broker == LimitedRate(rate=0.0)
    assert leader.connections.ips == {}
    assert leader.connections.ip_throttle_time_seconds["SASL"] > 0.5
    assert leader.connections.listeners["TLS"].limit is None
    assert leader.replication == {"leader": LimitedRate(rate=31.700288184438044)}
    assert follower.replication == {"follower": LimitedRate(rate=0.0)}


def test_both_versions_of_jolokia_report_the_same() -> None:
    """Key properties come in another order, and the read came a moment later."""
    new, old = (joined([f"pair/throttled.1.jolokia{version}.json"], PAIR_LIMITS).nodes[0] for version in (2, 1))
    assert old.connections.listeners.keys() == new.connections.listeners.keys()
    assert old.connections.listeners["TLS"].rate == pytest.approx(2.4, abs=0.1)
    assert old.connections.ips["127.0.0.1"].rate == pytest.approx(5.3, abs=0.1)
    assert old.replication["leader"].rate == pytest.approx(353_000, rel=0.02)


def test_moves_between_directories_are_reported(tiered_moving: Snapshot) -> None:
    """Whichever topic they are of."""
    assert tiered_moving.nodes[0].replication == {
        "alter_log_dirs": LimitedRate(rate=1025517.7591217307, limit=300_000.0)
    }


def test_the_remote_storage_is_reported_by_direction(tiered_moving: Snapshot, tiered_throttled: Snapshot) -> None:
    """A direction that nothing used yet has a limit only."""
    assert tiered_moving.nodes[0].remote_storage == {
        "copy": LimitedRate(rate=328157.86019035114, limit=200_000.0, throttle_time_seconds=2.97),
        "fetch": LimitedRate(limit=100_000.0),
    }
    assert tiered_throttled.nodes[0].remote_storage == {
        "copy": LimitedRate(rate=222100.6219458019, limit=200_000.0, throttle_time_seconds=2.8065),
        "fetch": LimitedRate(rate=995913.3466135458, limit=100_000.0, throttle_time_seconds=8.999),
    }
