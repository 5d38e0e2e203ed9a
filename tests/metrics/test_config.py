"""Settings of a metric."""

import pytest

from quotascope.metrics import (
    LONG_MAX,
    InvalidConfig,
    MetricConfig,
    Quota,
    RecordingLevel,
)


def test_kafkas_defaults() -> None:
    """2 x 30 s, no end by events, no quota, INFO."""
    config = MetricConfig()
    assert (config.samples, config.time_window_ms, config.event_window) == (
        2,
        30_000,
        LONG_MAX,
    )
    assert (config.quota, config.tags, config.recording_level) == (
        None,
        (),
        RecordingLevel.INFO,
    )


@pytest.mark.parametrize(
    ("samples", "window_ms"), [(0, 1_000), (-1, 1_000), (1, 0), (2, LONG_MAX)]
)
def test_refuses_what_cannot_be_measured(samples: int, window_ms: int) -> None:
    """The message shows the setting."""
    with pytest.raises(InvalidConfig, match=str(samples)):
        MetricConfig(samples, window_ms)


def test_equal_by_all_settings() -> None:
    """Two configs are equal when every setting is."""
    config = MetricConfig(3, 10, 5, Quota(1.0), {"a": "b"}, RecordingLevel.DEBUG)
    assert config == MetricConfig(
        3, 10, 5, Quota(1.0), [("a", "b")], RecordingLevel.DEBUG
    )
    assert hash(config) == hash(config.with_quota(Quota(1.0)))
    assert config != config.with_quota(Quota(2.0))
    assert config != "config"


def test_with_quota_keeps_the_rest() -> None:
    """Another bound, and nothing else, is different."""
    config = MetricConfig(3, 10, 5, None, {"a": "b"}, RecordingLevel.TRACE).with_quota(
        Quota(1.0)
    )
    assert repr(config) == (
        "MetricConfig(samples=3, time_window_ms=10, event_window=5, quota=Quota(1.0, upper),"
        " tags=(('a', 'b'),), recording_level=TRACE)"
    )


def test_with_defaults_adds_tags() -> None:
    """Given tags come after the config's, or replace them in their place."""
    config = MetricConfig(tags={"a": "1", "b": "2"})
    merged = config.with_defaults({"c": "3", "a": "0"}, RecordingLevel.DEBUG)
    assert merged.tags == (("a", "0"), ("b", "2"), ("c", "3"))
    assert merged.recording_level is RecordingLevel.DEBUG


@pytest.mark.parametrize("level", RecordingLevel)
@pytest.mark.parametrize("configured", RecordingLevel)
def test_a_level_records_at_its_own_and_finer_detail(
    level: RecordingLevel, configured: RecordingLevel
) -> None:
    """INFO always records, DEBUG unless INFO is configured, TRACE only with TRACE."""
    order = ["INFO", "DEBUG", "TRACE"]
    assert level.should_record(configured) == (
        order.index(level.name) <= order.index(configured.name)
    )
