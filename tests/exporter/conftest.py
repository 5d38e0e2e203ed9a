"""Snapshots of real nodes, certificates, and logging as it was."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from tests.cluster.certificates import Certificates, make_certificates
from tests.exporter.recorded import (
    COMBINED_RULES,
    FORWARDED_RULES,
    PAIR_LIMITS,
    SPLIT_RULES,
    TIERED_LIMITS,
    joined,
    limits,
    split,
)

from quotascope.exporter.snapshot import Snapshot


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def combined_throttled() -> Snapshot:
    """Return a node that is broker and controller, under load: every quota type throttles."""
    return joined(["combined/throttled.jolokia2.json"], limits(COMBINED_RULES))


@pytest.fixture
def combined_idle() -> Snapshot:
    """Load the same node between two loads: nothing is throttled any more, and some averages linger."""
    return joined(["combined/idle.jolokia2.json"], limits(COMBINED_RULES))


@pytest.fixture
def combined_without_quotas() -> Snapshot:
    """Load the same node before the first rule."""
    return joined(["combined/noquota.jolokia2.json"], limits({}))


@pytest.fixture
def split_throttled() -> Snapshot:
    """Return a broker (1) and a controller (100) under load: all eight levels, hostile client ids."""
    return split("throttled", SPLIT_RULES)


@pytest.fixture
def split_removed() -> Snapshot:
    """Load the same nodes after all rules were removed: every bean is stale."""
    return split("removed", {})


@pytest.fixture
def split_forwarded() -> Snapshot:
    """Load the same nodes with no rule but one for bob's mutations, after a request of his was refused."""
    return split("forwarded", FORWARDED_RULES)


@pytest.fixture
def pair_throttled() -> Snapshot:
    """Load a capture of two brokers: 1 delays and refuses connections, and a replica moves to 2 under a throttle."""
    return joined([f"pair/throttled.{node}.jolokia2.json" for node in "12"], PAIR_LIMITS)


@pytest.fixture
def pair_removed() -> Snapshot:
    """Load the same brokers 14 s later, without any of the limits: nothing moves or connects any more."""
    return joined([f"pair/removed.{node}.jolokia2.json" for node in "12"], limits({}, "12", active_controller="1"))


@pytest.fixture
def tiered_moving() -> Snapshot:
    """Return a broker that copies to the remote storage and moves a replica to another directory, under limits."""
    return joined(["tiered/moving.jolokia2.json"], TIERED_LIMITS)


@pytest.fixture
def tiered_throttled() -> Snapshot:
    """Load the same broker 8 s later, when a consumer fetches from the remote storage as well."""
    return joined(["tiered/throttled.jolokia2.json"], TIERED_LIMITS)
