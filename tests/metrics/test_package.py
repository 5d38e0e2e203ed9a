"""Contents and form of the package, and its clocks."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics import engine
from quotascope.metrics.engine.clock import SteadyClock, wall_clock_ms
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.locks import Lock
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.native import compiled
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.sampled import Sample, SampledStat


def test_example_of_the_library() -> None:
    """The engine's example prints the output that it shows."""
    failed, tried = doctest.testmod(engine)
    assert (failed, tried) == (0, 11)


ROOMS = ("catalog", "engine", "engine/extras", "kafka")


@pytest.mark.parametrize("room", ROOMS)
def test_documentation_names_modules_that_there_are(room: str) -> None:
    """Each module that the documentation of a room names exists in it."""
    package = importlib.import_module(f"quotascope.metrics.{room.replace('/', '.')}")
    modules = {info.name for info in pkgutil.iter_modules(package.__path__)}
    named = set(re.findall(r"(?<=[ (`])`([a-z_]+)`(?=[ ,:;\n(])", package.__doc__ or ""))
    assert named <= modules


LOADED = """
import sys
before = set(sys.modules)
import {module}
print(*sorted(name for name in set(sys.modules) - before if name.startswith("quotascope.metrics.")))
"""


@pytest.mark.parametrize(
    ("module", "rooms"),
    [
        ("quotascope.metrics", set()),
        ("quotascope.metrics.catalog", {"catalog", "errors", "kafka"}),
        ("quotascope.metrics.kafka.rules", {"errors", "kafka"}),
        ("quotascope.metrics.kafka.validation", {"errors", "kafka"}),
        ("quotascope.metrics.engine.quota_factory", {"engine", "errors", "kafka"}),
    ],
)
def test_a_room_is_imported_without_the_others(module: str, rooms: set[str]) -> None:
    """The catalog loads no engine, the vocabulary no catalog, and nothing loads the extras."""
    run = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)], check=True, capture_output=True, text=True
    )
    loaded = run.stdout.split()
    assert {name.split(".")[2] for name in loaded} == rooms
    assert not [name for name in loaded if ".extras" in name]


HOT = ["client_quota_manager", "rate", "sampled", "sensor", "token_bucket"]


@pytest.mark.parametrize("name", HOT)
def test_compiled_reports_what_was_loaded(name: str) -> None:
    """`compiled` is true exactly if the hot path comes from shared libraries."""
    file = importlib.import_module(f"quotascope.metrics.engine.{name}").__file__ or ""
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
        """Leave the total alone, so that only the number of events changes."""

    def combine(self, samples: list[Sample]) -> float:
        return float(max((sample.event_count for sample in samples), default=0))


def test_programs_may_bring_statistics_along() -> None:
    """A statistic can be derived from in Python, also when compiled, and the engine calls its overrides."""
    sensor = Registry().sensor("s", EPOCH_MS)
    sensor.add(MetricName("n", "g"), Fullest(), MetricConfig(2, 1_000, quota=Quota(3.0)))
    for after_ms in (0, 1, 2, 1_500):
        sensor.record(1.0, EPOCH_MS + after_ms)
    assert sensor.metrics()[0].value(EPOCH_MS + 1_500) == 3.0


def test_wall_clock_is_epoch_ms() -> None:
    """The wall clock is between two reads of the system's clock."""
    began_ms = time.time_ns() // 1_000_000
    assert began_ms <= wall_clock_ms() <= time.time_ns() // 1_000_000


def test_steady_clock_ignores_a_clock_that_is_set_back() -> None:
    """The steady clock starts at the time of day and advances with the passing of time."""
    wall: Iterator[int] = iter([1_700_000_000_000_000_000])
    passing = iter([5_000_000_000, 5_001_000_000, 5_003_999_999])
    clock = SteadyClock(lambda: next(wall), lambda: next(passing))
    assert [clock(), clock()] == [1_700_000_000_001, 1_700_000_000_003]
