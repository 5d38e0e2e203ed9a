"""Kafka's figures, vector by vector; `make conformance` runs the same."""

from collections import Counter
from pathlib import Path

import pytest
from tests.conformance.suite import RUNNERS, Vector, load, run

from quotascope.metrics import KafkaRelease

VECTORS = load(Path(__file__).parent / "kafka-vectors.json")


@pytest.mark.parametrize("release", [KafkaRelease(4, 3), KafkaRelease(4, 4)], ids=str)
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_vector(vector: Vector, release: KafkaRelease) -> None:
    """The engine answers every step of the vector as Kafka does in either release."""
    run(vector, release)


def test_none_is_lost() -> None:
    """The file holds as many vectors of each kind as it did when it was taken over, each under a name of its own."""
    assert Counter(vector.kind for vector in VECTORS) == {
        **dict.fromkeys(RUNNERS, 1),
        **dict.fromkeys(("histogram_bins", "recording_level", "sanitize", "rlm_quota"), 2),
        **dict.fromkeys(("client_throttle_metrics", "admin_retry", "connection_ip_quota"), 2),
        **dict.fromkeys(("request_combination", "client_throttle"), 3),
        **dict.fromkeys(("registry", "throttle_formula", "controller_quota"), 4),
        "sensor": 6,
        "quota_manager": 14,
        "stat": 44,
    }
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)
