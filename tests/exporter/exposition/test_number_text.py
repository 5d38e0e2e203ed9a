from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.utils import floatToGoString

from quotascope.exporter.exposition.lines import texts

EDGES = (
    0.0,
    1e-4,
    math.nextafter(1e-4, 0),
    1e6,
    math.nextafter(1e6, 0),
    1e16,
    math.nextafter(1e16, 0),
    1e22,
    5e-324,
    1.7976931348623157e308,
    1e15,
    1234567.0,
    1000001.0,
    -1e-5,
    -1e6,
    -1234567.5,
    -1e300,
    0.1 + 0.2,
)


@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
            st.floats(1e-5, 1e-3),
            st.floats(1e5, 1e17),
            st.integers(-(2**80), 2**80),
            st.booleans(),
            st.sampled_from(EDGES),
        )
    )
)
def test_text_is_that_of_the_client_library(values: list[float]) -> None:
    """Every number, whole or not, small or huge, reads as prometheus_client writes it."""
    assert texts(np.array(values, np.float64)) == [
        floatToGoString(value).encode()  # type: ignore[no-untyped-call]
        for value in values
    ]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_text(value: float | None) -> None:
    """An empty text stands for a series that is not shown, whatever stands beside it."""
    values = np.array([1.5, value, 2.5], np.float64)
    assert texts(values) == [b"1.5", b"", b"2.5"]


def test_zero_has_no_sign() -> None:
    """A value that turns from 0 to -0 has not changed."""
    assert texts(np.array([-0.0, 0.0])) == [b"0.0", b"0.0"]
