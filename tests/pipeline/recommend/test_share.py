from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.pipeline.recommend.share import Seasons


def seasons(*times: int, whose: list[int] | None = None) -> Seasons:
    """Requests at such times, of one season unless told."""
    numbers = np.array(whose or [0] * len(times))
    return Seasons(
        times_ms=np.array(times), whose=numbers, count=int(numbers.max()) + 1, window_ms=1_000
    )  # fmt: skip


def test_throttles_that_overlap_count_once() -> None:
    """Two throttles of two seconds that begin one second apart are three seconds of four."""
    found = seasons(0, 1_000, 3_000).shares(np.array([2_000, 2_000, 0]))
    assert found.tolist() == [0.75]


def test_throttle_ends_with_the_activity() -> None:
    """What lasts longer than one window after the last request hurts nobody that is known."""
    assert seasons(0).shares(np.array([60_000])).tolist() == [1.0]
    assert seasons(0, 10_000).shares(np.array([0, 60_000])).tolist() == [0.5]


def test_seasons_are_apart() -> None:
    """Time belongs to the season of the request that it begins with."""
    found = seasons(0, 5_000, whose=[0, 1]).shares(np.array([500, 0]))
    assert found.tolist() == [0.5, 0.0]


@given(
    times=st.lists(st.integers(0, 100_000), min_size=1, max_size=20).map(sorted),
    throttles=st.lists(st.integers(-5, 50_000), min_size=20, max_size=20),
    more=st.integers(1, 5_000),
)
def test_longer_throttles_are_never_a_smaller_share(
    times: list[int], throttles: list[int], more: int
) -> None:
    """So that the lowest limit can be searched for; a share is from 0 to 1."""
    given_ = np.array(throttles[: len(times)])
    found = seasons(*times)
    (less,), (longer,) = found.shares(given_), found.shares(given_ + more)
    assert 0 <= less <= longer <= 1 or less == pytest.approx(longer)
