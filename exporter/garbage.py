"""Python's search for cycles of garbage, in a process that makes many objects at once and drops them whole."""

from __future__ import annotations

import gc
from typing import Final

_THRESHOLDS: Final = (50_000, 20, 10)


def search_rarely() -> None:
    """
    Let the collector run less often, and not over what is there already.

    A collection of 15,000 entities makes some 100,000 objects, none of them in a cycle; by default Python goes
    through all of them dozens of times.
    """
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def search_now() -> None:
    """
    Drop what is in cycles, as everything is that a reload has replaced.

    It goes through each object that there is: not for every scrape.
    """
    gc.collect()
