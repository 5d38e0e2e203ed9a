"""What the package offers, in which form, and its clocks."""

import ast
import doctest
import importlib
import inspect
import os
import time
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from tests.strategies import EPOCH_MS

from quotascope import metrics
from quotascope.metrics import (
    MetricConfig,
    MetricName,
    Quota,
    Registry,
    Sample,
    SampledStat,
    SteadyClock,
    compiled,
    wall_clock_ms,
)
from quotascope.metrics.locks import Lock


def test_all_is_complete_and_sorted() -> None:
    """Whatever the package's face imports is public, and nothing else is there."""
    tree = ast.parse(Path(inspect.getfile(metrics)).read_text())
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(metrics.__all__) == imported
    assert len(set(metrics.__all__)) == len(metrics.__all__)


def test_example_of_the_library() -> None:
    """The package's own example is what comes out."""
    failed, tried = doctest.testmod(metrics)
    assert (failed, tried) == (0, 7)


def test_every_public_class_is_offered() -> None:
    """A class that is public in its module of the engine's core is public in the package."""
    missing = [f"{module}.{name}" for module in CORE for name in public_classes(module) if name not in metrics.__all__]
    assert missing == []


CORE = (
    *("config", "cumulative", "errors", "expiry", "frequencies", "histogram", "jmx_reporter", "meter", "metric_name"),
    *("percentiles", "quota", "rate", "registry", "reporter", "sampled", "sensor", "stat", "token_bucket", "windowed"),
)


def public_classes(module: str) -> list[str]:
    path = Path(inspect.getfile(metrics)).with_name(f"{module}.py")
    tree = ast.parse(path.read_text())
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


HOT = ["client_quota_manager", "rate", "sampled", "sensor", "token_bucket"]


@pytest.mark.parametrize("name", HOT)
def test_compiled_reports_what_was_loaded(name: str) -> None:
    """It is true exactly when the hot path comes from shared libraries."""
    file = importlib.import_module(f"quotascope.metrics.{name}").__file__ or ""
    assert compiled == file.endswith(tuple(EXTENSION_SUFFIXES))


def test_the_expected_form_is_tested() -> None:
    """`make compiled` tries the compiled engine, every other target the interpreted one."""
    assert compiled == (os.environ.get("QUOTASCOPE_EXPECT", "interpreted") == "compiled")


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
        return float(max((sample.event_count for sample in samples), default=0))


def test_programs_may_bring_statistics_along() -> None:
    """Also compiled, a statistic can be derived from in Python, and the engine calls what it overrides."""
    sensor = Registry().sensor("s", EPOCH_MS)
    sensor.add(MetricName("n", "g"), Fullest(), MetricConfig(2, 1_000, quota=Quota(3.0)))
    for after_ms in (0, 1, 2, 1_500):
        sensor.record(1.0, EPOCH_MS + after_ms)
    assert sensor.metrics()[0].value(EPOCH_MS + 1_500) == 3.0


def test_wall_clock_is_epoch_ms() -> None:
    """It lies between two looks at the system's clock."""
    before = time.time_ns() // 1_000_000
    assert before <= wall_clock_ms() <= time.time_ns() // 1_000_000


def test_steady_clock_ignores_a_clock_that_is_set_back() -> None:
    """It starts at the time of day and goes on with the passing of time."""
    wall: Iterator[int] = iter([1_700_000_000_000_000_000])
    passing = iter([5_000_000_000, 5_001_000_000, 5_003_999_999])
    clock = SteadyClock(lambda: next(wall), lambda: next(passing))
    assert [clock(), clock()] == [1_700_000_000_001, 1_700_000_000_003]
