"""Random input for the tests of the engine."""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.quota import Quota

EPOCH_MS = 1_700_000_000_000
"""Where the traces begin: some time in 2023."""

_DESK = 50
"""Examples of the profile `desk`."""


def examples(desk: int) -> int:
    """
    Return the number of examples of a test that has its own number of them in the profile `desk`.

    The profile `thorough` multiplies it as all others.
    """
    return desk * settings().max_examples // _DESK


HOSTILE = (
    "",
    " ",
    "a b\tc",
    "line\nbreak\r\n",
    'quo"te',
    "back\\slash",
    "\\n",
    "*?",
    "a,b=c:d",
    "%41%",
    "<default>",
    "~!'()+",
    "é😀\u2028",
    "x" * 10_000,
)
"""Names that were seen, or would break something if they were."""

texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=20), st.text(alphabet='ab"\\*?\n\r,=:%+ ~._-\t', max_size=12)
)
"""Hostile text without halves of surrogate pairs."""

broken_texts = st.text(alphabet=st.characters(categories=["Cs", "Ll", "Po"]), max_size=12)
"""Text with halves of surrogate pairs, as a client can send them."""

tag_keys = st.text(alphabet="abcdefghijklmnopqrstuvwxyz-_", min_size=1, max_size=8).filter(lambda key: key != "type")
tag_maps = st.dictionaries(tag_keys, texts | broken_texts, max_size=4)

bounds = st.sampled_from((0.1, 1.0, 5.0, 1024.0, 1e9))
quotas = st.builds(Quota, bounds)

values = st.integers(-1_000, 1_000).map(float)
"""Whole numbers: their sums are exact in any order."""

configs = st.builds(
    MetricConfig,
    samples=st.integers(1, 12),
    time_window_ms=st.sampled_from((1, 10, 1_000, 30_000)),
    event_window=st.sampled_from((1, 3, 9_223_372_036_854_775_807)),
    quota=quotas,
)


@dataclass(frozen=True, slots=True)
class Event:
    """A value and when it is recorded."""

    at_ms: int
    value: float


@st.composite
def traces(draw: st.DrawFn, max_size: int = 40) -> list[Event]:
    """Events in the order of their times, close together and far apart."""
    steps = st.one_of(st.integers(0, 50), st.integers(0, 3_000), st.integers(0, 200_000))
    trace = []
    now_ms = EPOCH_MS
    for step in draw(st.lists(steps, max_size=max_size)):
        now_ms += step
        trace.append(Event(now_ms, draw(values)))
    return trace
