"""The windows of a cluster's quotas, as a replay takes them."""

from typing import Final

from quotascope.metrics import InvalidConfig, WindowConfig

from ..errors import PipelineError

MOST: Final = 10_000
"""Windows of each sensor, all of which are held in memory."""
LONGEST: Final = 86_400
"""Seconds: a day."""


class BadWindows(PipelineError):
    """No cluster has such windows, or a replay does not take them."""


def windows(num: int, size_seconds: int) -> WindowConfig:
    """So many windows of so many seconds. Raises `BadWindows`."""
    if num > MOST or size_seconds > LONGEST:
        raise BadWindows(f"a replay takes at most {MOST} windows of at most {LONGEST} s")  # fmt: skip
    try:
        return WindowConfig(samples=num, window_seconds=size_seconds)
    except InvalidConfig as error:
        raise BadWindows(str(error)) from None


def windows_of_text(text: str) -> WindowConfig:
    """Windows as a command line gives them, `11x1`: their number and their seconds. Raises `BadWindows`."""
    num, _, size_seconds = text.partition("x")
    if not (_is_count(num) and _is_count(size_seconds)):
        raise BadWindows(f"windows are given as NUMxSECONDS, such as 11x1, not {text[:60]!r}")  # fmt: skip
    return windows(int(num), int(size_seconds))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(LONGEST))
