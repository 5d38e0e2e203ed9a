"""The same targets with Hypothesis, which tries less and shrinks what it finds."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.named import NAMES, target

seeds_of = cache(lambda name: [*target(name).seeds(), b""])


@st.composite
def altered(draw: st.DrawFn, name: str) -> bytes:
    """Something that is read in practice, with parts cut out, repeated, and put in."""
    data = draw(st.sampled_from(seeds_of(name)))
    words = st.sampled_from(target(name).words) | st.binary(max_size=4)
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        piece = draw(st.just(b"") | words | st.just(data[start:end] * 2))
        data = data[:start] + piece + data[end:]
    return data


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_every_input_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Whatever is raised besides the errors of the reader's room is a finding."""
    target(name).feed(data.draw(altered(name)))
