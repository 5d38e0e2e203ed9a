from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import QuotaType
from quotascope.pipeline.recommend.search import lowest
from quotascope.pipeline.recommend.steps import limit_of, rounded_up, steps_of


@given(st.data())
def test_finds_exactly_the_lowest(data: st.DataObject) -> None:
    """Wherever it is, in as many passes as the range has hexadecimal digits, or one more."""
    high = data.draw(st.integers(1, 10**12))
    wanted = data.draw(st.integers(1, high))
    passes = 0

    def good(tried: Sequence[int]) -> list[bool]:
        nonlocal passes
        passes += 1
        return [limit >= wanted for limit in tried]

    assert lowest(good, high) == wanted
    assert passes <= len(f"{high:x}") + 1


@given(steps=st.integers(1, 10**12))
def test_rounding_goes_up_and_not_far(steps: int) -> None:
    """Three digits, and less than 1 % more."""
    rounded = rounded_up(steps)
    assert steps <= rounded < steps * 1.01 + 1
    assert len(str(rounded).rstrip("0")) <= 3


def test_steps_and_limits_are_two_sides() -> None:
    """A limit of so many steps has so many steps."""
    for kind in QuotaType:
        for steps in (1, 29, 105, 123_457):
            assert steps_of(kind, limit_of(kind, steps)) == steps
