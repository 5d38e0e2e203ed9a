"""Time for durations, which no one sets."""

from __future__ import annotations

import time
from typing import Final

_SINCE_BOOT: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


def steady() -> float:
    """
    Return seconds since the machine started, those in which it was suspended included.

    Without them where the platform has no such clock.
    """
    return time.monotonic() if _SINCE_BOOT is None else time.clock_gettime(_SINCE_BOOT)
