"""Bounds."""

import math

from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import Quota

finite = st.floats(allow_nan=False)


@given(bound=finite, value=finite)
def test_bounds_are_inclusive(bound: float, value: float) -> None:
    """A value may reach its bound from either side."""
    assert Quota(bound).acceptable(value) == (value <= bound)
    assert Quota(bound, upper=False).acceptable(value) == (value >= bound)
    assert Quota(bound).acceptable(bound)


def test_nan_is_never_acceptable() -> None:
    """What is not known does not keep to a bound."""
    assert not Quota(5.0).acceptable(math.nan)
    assert not Quota(5.0, upper=False).acceptable(math.nan)


def test_equal_by_bound_and_direction() -> None:
    """Two quotas of the same bound and direction are the same quota."""
    assert Quota(5) == Quota(5.0)
    assert hash(Quota(5)) == hash(Quota(5.0))
    assert Quota(5.0) != Quota(5.0, upper=False)
    assert Quota(5.0) != Quota(6.0)
    assert Quota(5.0) != 5.0


def test_repr_tells_the_direction() -> None:
    """A reader of a log can tell an upper from a lower bound."""
    assert (repr(Quota(5.0)), repr(Quota(1.0, upper=False))) == (
        "Quota(5.0, upper)",
        "Quota(1.0, lower)",
    )
