"""The end of throttles, one channel at a time."""

from quotascope.metrics import (
    QuotaType,
    Registry,
    ThrottleCallback,
    ThrottledChannelReaper,
)

MS = 1_000_000


def size(registry: Registry) -> float:
    """The metric `queue-size` of Produce."""
    metric = registry.metric(registry.metric_name("queue-size", "Produce"))
    assert metric is not None
    return metric.value(0)


def test_nothing_is_due() -> None:
    """Before its deadline a channel stays where it is."""
    reaper = ThrottledChannelReaper(Registry(), QuotaType.PRODUCE, 0)
    reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert not reaper.reap(9, 10 * MS - 1)
    assert reaper.reap(10, 10 * MS)


def test_the_deadline_is_monotonic() -> None:
    """A wall clock that is set forward ends no throttle."""
    reaper = ThrottledChannelReaper(Registry(), QuotaType.PRODUCE, 0)
    reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert not reaper.reap(3_600_000, 1 * MS)


def test_reapers_of_one_registry_share_the_metric() -> None:
    """A combined node shows the channels of both its roles in one number."""
    registry = Registry()
    for _ in range(2):
        reaper = ThrottledChannelReaper(registry, QuotaType.PRODUCE, 0)
        reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert size(registry) == 2.0


def test_the_metric_outlives_an_idle_day() -> None:
    """The size of the queue is shown for good."""
    registry = Registry()
    ThrottledChannelReaper(registry, QuotaType.PRODUCE, 0)
    assert registry.expire_sensors(86_400_000) == ()
