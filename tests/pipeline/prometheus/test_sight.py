"""Marks of loads, by Kafka's own rate at every phase between load and scrapes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pipeline.prometheus.loads import LOADS, limit_by_log, rates

from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pipeline.prometheus.evidence import Evidence, Sight

HOUR_S = 3_600


def quantile_by_hour(samples: np.ndarray, every_s: int) -> float:
    """Return the highest of the quantiles of each hour, as the server computes it."""
    hours = (samples[start : start + HOUR_S // every_s] for start in range(0, samples.size, HOUR_S // every_s))
    return max((float(np.quantile(hour[hour > 0], 0.99)) for hour in hours if (hour > 0).any()), default=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("load", LOADS)
def test_each_limit_that_is_wrong_is_marked(load: str) -> None:
    """A limit without a mark is within 10 % of the request log's, whatever the phase."""
    values, truth = np.array(rates(load, 3)), limit_by_log(load, 3)
    unmarked = 0
    for every_s in (5, 10, 15, 30, 60):
        for phase_s in range(every_s):
            samples = values[phase_s::every_s]
            above = samples > 0
            changes = int((above[1:] != above[:-1]).sum())
            evidence = Evidence(active_s=float(above.sum() * every_s), changes=changes)
            if evidence.sight(every_s, WindowConfig()) is Sight.WHOLE:
                unmarked += 1
                assert quantile_by_hour(samples, every_s) == pytest.approx(truth, rel=0.1), (every_s, phase_s)
    assert unmarked in {5, 15}  # all phases at 5 s, and at 10 s unless they are bursts
