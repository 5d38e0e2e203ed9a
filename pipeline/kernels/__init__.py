"""
Kafka's quota algorithms over columns, for replaying millions of requests under many limits.

Equal to the engine (`quotascope.metrics`) record by record and to the last bit; the tests drive both. Engine-free: NumPy, and numba where
it is installed. `observe` measures windowed rates, which do not depend on a limit, and `throttle_times` compares them with many; the
buckets and the closed loop depend on it and are replayed for each.
"""

from .bucket import Buckets, new_buckets
from .rate import (
    CHECKED,
    UNCHECKED,
    WITHHELD,
    Events,
    Measured,
    Windows,
    empty_windows,
    observe,
)
from .spreading import Spreads, new_spreads
from .throttle import UNCLAMPED, narrowed_times, throttle_times

__all__ = [
    "CHECKED",
    "UNCHECKED",
    "UNCLAMPED",
    "WITHHELD",
    "Buckets",
    "Events",
    "Measured",
    "Spreads",
    "Windows",
    "empty_windows",
    "narrowed_times",
    "new_buckets",
    "new_spreads",
    "observe",
    "throttle_times",
]
