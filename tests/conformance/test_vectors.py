"""Kafka's figures, vector by vector; `make conformance` runs the same."""

from collections import Counter
from pathlib import Path

import pytest
from tests.conformance.failures import NotYetBuilt
from tests.conformance.suite import LATER, RUNNERS, Vector, load, run

VECTORS = load(Path(__file__).parent / "kafka-vectors.json")


BUILT = [vector for vector in VECTORS if vector.kind in RUNNERS]
WAITING = [vector for vector in VECTORS if vector.kind not in RUNNERS]


@pytest.mark.parametrize("vector", BUILT, ids=lambda vector: vector.name)
def test_vector(vector: Vector) -> None:
    """The engine answers every step of the vector as Kafka does."""
    run(vector)


@pytest.mark.parametrize("vector", WAITING, ids=lambda vector: vector.name)
def test_vector_that_waits(vector: Vector) -> None:
    """A vector about something that is not yet built says so."""
    with pytest.raises(NotYetBuilt):
        run(vector)


def test_none_is_lost() -> None:
    """The file holds as many vectors of each kind as it did when it was taken over."""
    assert Counter(vector.kind for vector in BUILT) == {
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
        "connection_ip_quota": 2,
        "quota_validation": 1,
        "telemetry_name": 1,
    }
    assert len(VECTORS) == 103
    assert {vector.kind for vector in WAITING} == set(LATER)


def test_names_are_unique() -> None:
    """A name stands for one vector."""
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)
