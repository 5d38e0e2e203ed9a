"""The callback of a throttle."""

from quotascope.metrics import ThrottleCallback


def test_nobody_has_to_listen() -> None:
    """By itself a callback does nothing."""
    callback = ThrottleCallback()
    callback.start_throttling()
    callback.end_throttling()
