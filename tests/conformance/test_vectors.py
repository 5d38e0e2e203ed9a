"""Kafka's figures, vector by vector; `make conformance` runs the same."""

from collections import Counter
from pathlib import Path

import pytest
from tests.conformance.suite import RUNNERS, Vector, load, run

from quotascope.metrics import KafkaRelease

VECTORS = load(Path(__file__).parent / "kafka-vectors.json")


RELEASES = (KafkaRelease(4, 3), KafkaRelease(4, 4))


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_vector(vector: Vector, release: KafkaRelease) -> None:
    """The engine answers every step of the vector as Kafka does in either release."""
    run(vector, release)


def test_none_is_lost() -> None:
    """The file holds as many vectors of each kind as it did when it was taken over."""
    assert Counter(vector.kind for vector in VECTORS) == {
        "stat": 44,
        "histogram_bins": 2,
        "sensor": 6,
        "recording_level": 2,
        "registry": 4,
        "throttle_formula": 4,
        "token_throttle": 1,
        "controller_quota": 4,
        "quota_manager": 14,
        "reaper": 1,
        "throttled_channel": 1,
        "request_combination": 3,
        "sanitize": 2,
        "replication_quota": 1,
        "rlm_quota": 2,
        "client_throttle": 3,
        "client_throttle_metrics": 2,
        "admin_retry": 2,
        "should_client_throttle": 1,
        "connection_ip_quota": 2,
        "quota_validation": 1,
        "telemetry_name": 1,
    }
    assert len(VECTORS) == 103
    assert {vector.kind for vector in VECTORS} == set(RUNNERS)


def test_names_are_unique() -> None:
    """A name stands for one vector."""
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)
