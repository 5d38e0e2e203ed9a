"""Kernels run compiled or plain, and never with code of older sources."""

import subprocess
import sys
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.pipeline.replay.ways import WAYS, kernels

from quotascope.pipeline.replay import compiled
from quotascope.pipeline.replay.compiled import Ints, kernel, run


class Given(NamedTuple):
    numbers: Ints


class Made(NamedTuple):
    sums: Ints


Made.WRITTEN = True  # type: ignore[attr-defined]


class Both(NamedTuple):
    given: Given
    made: Made


@kernel
def add_up(both: Both) -> int:
    total = 0
    for place in range(len(both.given.numbers)):
        total += both.given.numbers[place]
        both.made.sums[place] = total
    return total


def fresh() -> Both:
    return Both(Given(np.array([1, 2, 3])), Made(np.zeros(3, np.int64)))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_written_is_seen(way: str) -> None:
    """Either way a kernel returns its result and writes to the arrays that were given."""
    both = fresh()
    with kernels(way):
        assert run(add_up, both, work=1) == 6
    assert both.made.sums.tolist() == [1, 3, 6]
    assert both.given.numbers.tolist() == [1, 2, 3]


@pytest.fixture
def compiled_functions(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """Return the functions that this process has compiled."""
    compiled_functions: dict[Any, Any] = {}
    monkeypatch.setattr(compiled, "_COMPILED", compiled_functions)
    monkeypatch.setattr(compiled, "_STEPS", Counter())
    return compiled_functions


def test_little_work_is_not_compiled_for(compiled_functions: dict[Any, Any]) -> None:
    """A few steps run plain, until there were many; then always compiled."""
    for _ in range(2):
        run(add_up, fresh(), work=compiled.WAY.least_work // 2 - 1)
        assert not compiled_functions
    run(add_up, fresh(), work=2)
    assert list(compiled_functions) == [add_up]
    run(add_up, fresh(), work=10)
    assert compiled_functions[add_up].stats.cache_hits or compiled_functions[add_up].signatures


def test_kept_on_disk_for_these_sources_only(compiled_functions: dict[Any, Any]) -> None:
    """Code on disk is stamped with all sources of the kernels: a private place of numba's, which this guards."""
    with kernels("compiled"):
        run(add_up, fresh(), work=1)
    added = compiled_functions[add_up]
    assert added._cache._cache_file._source_stamp == compiled._stamp(added)
    assert added._cache._cache_file._load_index()


WITHOUT = """
import sys
sys.modules["numba"] = None
import numpy as np
from quotascope.metrics.kafka.release import NEWEST_RELEASE
from quotascope.pipeline.replay.algorithms import CHECKED, Events, observe, rings_of
from quotascope.pipeline.replay.compiled import WAY
count = 3
events = Events(
    np.zeros(count, np.int32), np.arange(count) * 100, np.full(count, 10.0), np.full(count, CHECKED, np.int8)
)
print(WAY.compiled, observe(events, rings_of([NEWEST_RELEASE]), 11, 1000).rates.tolist())
"""


def test_without_numba() -> None:
    """Without numba, kernels run as Python."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout == "False [1.0, 1.9801980198019802, 2.9411764705882355]\n"
