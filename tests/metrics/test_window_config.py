"""Over which time a quota is measured, and the settings of a quota manager."""

import pytest

from quotascope.metrics import (
    NEWEST_RELEASE,
    InvalidConfig,
    ManagerConfig,
    MetricConfig,
    Quota,
    WindowConfig,
)


def test_defaults_are_ten_whole_seconds_and_the_current_one() -> None:
    """As all of Kafka's kinds of quota have them."""
    config = WindowConfig()
    assert (config.samples, config.window_ms) == (11, 1000)
    assert config.metric_config(Quota(5)) == MetricConfig(11, 1000, quota=Quota(5))


@pytest.mark.parametrize("config", [WindowConfig, ManagerConfig])
@pytest.mark.parametrize(("samples", "seconds"), [(0, 1), (1, 0), (-1, 1)])
def test_refuses_windows_of_no_length(
    config: type[WindowConfig], samples: int, seconds: int
) -> None:
    """No broker starts with them either."""
    with pytest.raises(InvalidConfig, match="at least 1 window of at least 1 s"):
        config(samples=samples, window_seconds=seconds)


def test_defaults_of_a_manager_are_kafkas() -> None:
    """The same windows, the newest release, and none of the departures."""
    config = ManagerConfig()
    assert (config.samples, config.window_ms) == (11, 1000)
    assert config.release == NEWEST_RELEASE
    assert config.charge_validate_only
