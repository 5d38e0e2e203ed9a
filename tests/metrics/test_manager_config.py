"""Settings of a quota manager."""

import pytest

from quotascope.metrics import NEWEST_RELEASE, InvalidConfig, ManagerConfig


def test_defaults_are_kafkas() -> None:
    """11 windows of 1 s, the newest release, and none of the departures."""
    config = ManagerConfig()
    assert (config.samples, config.window_ms) == (11, 1000)
    assert config.release == NEWEST_RELEASE
    assert config.charge_validate_only


@pytest.mark.parametrize(("samples", "seconds"), [(0, 1), (1, 0), (-1, 1)])
def test_impossible_windows(samples: int, seconds: int) -> None:
    """A broker refuses to start with less than one window or second."""
    with pytest.raises(InvalidConfig, match="at least 1 window of at least 1 s"):
        ManagerConfig(samples=samples, window_seconds=seconds)
