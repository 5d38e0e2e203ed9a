"""Over which time a quota is measured."""

import pytest

from quotascope.metrics import InvalidConfig, MetricConfig, Quota, WindowConfig


def test_defaults_are_ten_whole_seconds_and_the_current_one() -> None:
    """As all of Kafka's kinds of quota have them."""
    config = WindowConfig()
    assert (config.samples, config.window_ms) == (11, 1000)
    assert config.metric_config(Quota(5)) == MetricConfig(11, 1000, quota=Quota(5))


@pytest.mark.parametrize(("samples", "seconds"), [(0, 1), (1, 0), (-1, 1)])
def test_refuses_windows_of_no_length(samples: int, seconds: int) -> None:
    """No broker starts with them either."""
    with pytest.raises(InvalidConfig, match="at least 1"):
        WindowConfig(samples=samples, window_seconds=seconds)
