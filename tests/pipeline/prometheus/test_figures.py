"""Figures of samples that are here: as Prometheus's queries have them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.pipeline.prometheus import promql
from quotascope.pipeline.prometheus.figures import Track, Window, answer, scrapes_by_hour
from quotascope.pipeline.prometheus.promql import HOUR_S, Samples

RATES = Samples(name="kafka_x")


def track(*samples: tuple[float, float | None]) -> Track:
    """Return a track of times in seconds and values; None ends the series."""
    times = np.array([round(at * 1_000) for at, _ in samples], np.int64)
    values = np.array([value or 0.0 for _, value in samples], np.float64)
    return Track.of(times, values, np.array([value is None for _, value in samples], np.bool_))


def figure(query: promql.Query, *tracks: Track, samples: Samples = RATES, end: float = HOUR_S) -> list[float]:
    return [value for _, value in answer(query, Window(tracks, samples, 0.0, end, 10.0))]


def test_a_sample_lasts_five_minutes_unless_the_series_ends() -> None:
    """Steps after the last sample have its value for five minutes, and none from a staleness marker on."""
    assert figure(promql.active, track((10, 1.0))) == [30]
    assert figure(promql.active, track((10, 1.0), (30, None))) == [2]
    assert figure(promql.seen, track((10, 1.0), (30, None))) == [1]
    assert figure(promql.seen, track((30, None))) == []


def test_a_range_has_its_end_and_not_its_begin() -> None:
    """A sample at a whole hour counts for the hour that ends with it."""
    both = track((0, 5.0), (HOUR_S, 7.0))
    assert figure(promql.total, both) == [7.0]
    assert figure(promql.total, both, end=HOUR_S - 1) == []
    assert scrapes_by_hour(both, 0, HOUR_S, 600) == {HOUR_S: (1.0, 1.0)}


def test_a_sample_that_is_there_twice_counts_once() -> None:
    """A sample that two ingests added counts once."""
    assert figure(promql.total, track((20, 2.0), (10, 1.0), (20, 2.0))) == [3.0]


def test_series_of_a_sum_are_added_and_those_of_throttles_are_not() -> None:
    """Series of a rate are added, and of series of throttle times the longest counts, unless it is NaN."""
    pair = track((10, 1.0), (20, None)), track((10, 2.0), (20, None))
    assert figure(promql.total, *pair, samples=Samples(name="kafka_x", by=("user",))) == [3.0]
    throttles = Samples(name="kafka_x", by=("user",), of_rates=False)
    assert figure(promql.throttles, *pair, samples=throttles) == [2.0]
    unknown = track((10, float("nan")), (20, None)), pair[0]
    assert figure(promql.throttles, *unknown, samples=throttles) == [1.0]
    assert figure(promql.throttles, *reversed(unknown), samples=throttles) == [1.0]


def test_the_highest_hour_is_that_of_its_own_samples() -> None:
    """The highest hour is that of the clock hour whose own samples have the highest quantile."""
    samples = track(*((at, 1.0 if at <= HOUR_S else 3.0) for at in range(10, 2 * HOUR_S + 1, 10)))
    assert figure(partial(promql.highest_hour, share=0.5), samples, end=2 * HOUR_S) == [3.0]
    assert figure(partial(promql.quantile, share=0.25), samples, end=2 * HOUR_S) == [1.0]
    assert figure(promql.changes, samples, end=2 * HOUR_S) == [0.0]
    assert figure(partial(promql.active, above=2.0), samples, end=2 * HOUR_S) == [360]


@given(values=st.lists(st.floats(0.5, 1e9), min_size=1, max_size=30), share=st.floats(0, 1))
def test_a_quantile_is_numpys(values: list[float], share: float) -> None:
    """A quantile between two samples is interpolated as `quantile_over_time` does."""
    samples = track(
        *((10.0 * place, value) for place, value in enumerate(values, start=1)), (10.0 * (len(values) + 1), None)
    )
    (figure_of_range,) = figure(partial(promql.quantile, share=share), samples)
    assert figure_of_range == pytest.approx(np.quantile(values, share), rel=1e-9)
