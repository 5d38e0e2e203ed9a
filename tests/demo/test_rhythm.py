"""When clients have something to ask."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.demo.cast import Rhythm

BURSTS = Rhythm(every_ms=100, jitter=0.0, busy_ms=1_000, pause_ms=4_000, first_ms=50)


def dice(seed: int) -> Random:
    """A source of randomness that always throws the same."""
    return Random(seed)  # noqa: S311 - nothing secret


def test_pace_without_jitter() -> None:
    """Without jitter one request follows the other at the same distance."""
    rhythm = Rhythm(every_ms=250, jitter=0.0)
    assert rhythm.next_ms(1_000, dice(1)) == 1_250


@given(seed=st.integers(), elapsed_ms=st.integers(0, 10_000_000))
def test_jitter_stays_within_its_part(seed: int, elapsed_ms: int) -> None:
    """A tenth of jitter moves a request by a tenth of its distance at most."""
    rhythm = Rhythm(every_ms=200, jitter=0.1)
    assert 180 <= rhythm.next_ms(elapsed_ms, dice(seed)) - elapsed_ms <= 220


def test_jitter_takes_all_of_its_part() -> None:
    """Of 200 requests some come nearly as early, and some nearly as late, as they may."""
    rhythm, random = Rhythm(every_ms=200, jitter=0.1), dice(1)
    found = [rhythm.next_ms(0, random) for _ in range(200)]
    assert min(found) < 184
    assert max(found) > 216


@pytest.mark.parametrize(
    ("elapsed_ms", "next_ms"),
    [(50, 150), (949, 1_049), (950, 5_050), (1_049, 5_050), (5_050, 5_150)],
)
def test_nothing_is_due_in_a_pause(elapsed_ms: int, next_ms: int) -> None:
    """What would fall into a pause waits for the next burst; bursts are counted from the first request."""
    assert BURSTS.next_ms(elapsed_ms, dice(1)) == next_ms
