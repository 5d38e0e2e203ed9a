"""The tool that puts mistakes into the code: which mistakes it makes, and which tests it asks."""

import random
from pathlib import Path

import pytest
from tools import mutation

SOURCE = '''\
"""A module."""

from dataclasses import dataclass

LIMIT: int | None = 7


@dataclass(frozen=True)
class Pair:
    """Two numbers."""

    first: int | None
    second: int = 3

    @property
    def total(self) -> int | float:
        """Their sum."""
        return self.second + 1
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A file with something of everything."""
    path = tmp_path / "module.py"
    path.write_text(SOURCE, "utf-8")
    return path


def test_annotations_and_options_of_dataclasses_are_left_alone(module: Path) -> None:
    """Numbers, operators and decorators that run are changed; what only type checkers read is not."""
    lines = {line for line, _ in mutation._mutants(module)}
    assert lines == {5, 13, 15, 18}
    assert all(column > 15 for line, column in mutation._mutants(module) if line == 5)


@pytest.mark.slow
def test_a_seed_chooses_the_same_mutants() -> None:
    """A seed chooses the same mutants again, and another seed chooses others."""
    room = "quotas"
    one, same, other = (
        list(mutation._sample(room, 15, random.Random(seed)))  # noqa: S311 - a sample
        for seed in (1, 1, 2)
    )
    assert one == same != other
    assert len({(m.module_path, m.operator_name, m.occurrence) for m in one}) == 15


def test_a_line_is_tried_by_the_tests_that_run_it() -> None:
    """
    A line that runs at import is tried by all tests of its file.

    One beside kernels is tried by its folder's as well, and one that no test runs by none.
    """
    near, far = "tests/quotas/test_a.py::test_a", "tests/cli/test_b.py::test_b"
    kernel = "pipeline/replay/a.py"
    reached = mutation._Reached(
        {"quotas/a.py": {1: {""}, 2: {far, near}, 3: {far, ""}}, "quotas/b.py": {1: {""}}, kernel: {1: {far}}}
    )
    assert reached.tests("quotas/a.py", 2, 2) == [near, far]
    assert reached.tests("quotas/a.py", 3, 3) == [far]
    assert reached.tests("quotas/a.py", 1, 1) == [near, far, mutation.FACTS]
    assert reached.tests("quotas/a.py", 9, 9) == []
    assert reached.tests("quotas/b.py", 1, 1) == ["tests/quotas", mutation.FACTS]
    assert reached.tests("alerts/a.py", 9, 9) == ["tests/alerts"]
    assert reached.tests(kernel, 1, 1) == ["tests/pipeline/replay", far]
