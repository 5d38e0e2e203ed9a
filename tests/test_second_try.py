"""What a second try forgives, and what it tells."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFIGURATION = """
[pytest]
markers =
    real: waits for others
"""
TESTS = """
import pytest
tries = []

@pytest.mark.real
def test_slow_once():
    tries.append(1)
    assert len(tries) > 1, "the broker was late"

@pytest.mark.real
def test_broken():
    assert False

def test_pure():
    tries.append(1)
    assert len(tries) > 10
"""


@pytest.fixture
def result(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.RunResult:
    """Of tests of which one fails once, one always, and one that waits for nobody at its first try."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makefile(".ini", pytest=CONFIGURATION)
    pytester.makepyfile(TESTS)
    return pytester.runpytest_subprocess(
        "-p", "tests.second_try", "-p", "no:randomly", "-p", "no:cov"
    )


def test_only_mistakes_and_pure_functions_fail(result: pytest.RunResult) -> None:
    """Who fails twice fails, and a pure function gets one try."""
    assert result.parseoutcomes() == {"passed": 1, "failed": 2, "rerun": 2}


def test_first_failure_is_told(result: pytest.RunResult) -> None:
    """With its text, though the second try passed."""
    result.stdout.fnmatch_lines(
        ["*test_slow_once was tried twice*", "*the broker was late*"]
    )
