"""Time for durations, which no one sets."""

from __future__ import annotations

import time
from typing import Final

_SINCE_BOOT: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


def steady() -> float:
    """
    Return the seconds since the machine started, including the time that it was suspended.

    That time is missing where the platform has no such clock.
    """
    return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)
