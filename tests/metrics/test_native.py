"""Whether the engine runs as C, and what stays the same then."""

import importlib
import os
from importlib.machinery import EXTENSION_SUFFIXES

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    MetricConfig,
    MetricName,
    Quota,
    Registry,
    Sample,
    SampledStat,
    compiled,
)
from quotascope.metrics.locks import Lock

HOT = ["client_quota_manager", "rate", "sampled", "sensor", "token_bucket"]


@pytest.mark.parametrize("name", HOT)
def test_compiled_tells_what_was_loaded(name: str) -> None:
    """It is true exactly when the hot path comes from shared libraries."""
    file = importlib.import_module(f"quotascope.metrics.{name}").__file__ or ""
    assert compiled == file.endswith(tuple(EXTENSION_SUFFIXES))


def test_the_expected_form_is_tested() -> None:
    """`make compiled` tries the compiled engine, every other target the interpreted one."""
    assert compiled == (
        os.environ.get("QUOTASCOPE_EXPECT", "interpreted") == "compiled"
    )


def test_an_interpreted_engine_needs_the_standard_library_only() -> None:
    """The lock of mypyc's runtime library is taken in a compiled build and nowhere else."""
    assert compiled == (Lock.__module__ != "_thread")


class Fullest(SampledStat):
    """A statistic that a program brings along: the most events of a window."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, value: float) -> None:
        """Only the event counts."""

    def combine(self, samples: list[Sample]) -> float:
        """Look for the fullest window."""
        return float(max((sample.event_count for sample in samples), default=0))


def test_programs_may_bring_statistics_along() -> None:
    """Also compiled, a statistic can be derived from in Python, and the engine calls what it overrides."""
    sensor = Registry().sensor("s", EPOCH_MS)
    sensor.add(
        MetricName("n", "g"), Fullest(), MetricConfig(2, 1_000, quota=Quota(3.0))
    )
    for after_ms in (0, 1, 2, 1_500):
        sensor.record(1.0, EPOCH_MS + after_ms)
    assert sensor.metrics()[0].value(EPOCH_MS + 1_500) == 3.0
