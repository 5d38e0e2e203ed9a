"""Where times come from."""

import time
from collections.abc import Iterator

from quotascope.metrics import SteadyClock, wall_clock_ms


def test_wall_clock_is_epoch_ms() -> None:
    """It lies between two looks at the system's clock."""
    before = time.time_ns() // 1_000_000
    assert before <= wall_clock_ms() <= time.time_ns() // 1_000_000


def test_steady_clock_ignores_a_clock_that_is_set_back() -> None:
    """It starts at the time of day and goes on with the passing of time."""
    wall: Iterator[int] = iter([1_700_000_000_000_000_000])
    passing = iter([5_000_000_000, 5_001_000_000, 5_003_999_999])
    clock = SteadyClock(lambda: next(wall), lambda: next(passing))
    assert [clock(), clock()] == [1_700_000_000_001, 1_700_000_000_003]
