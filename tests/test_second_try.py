"""What a second try forgives, and what it shows."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import subprocess
import sys
import pytest
tries = []

def wait_for_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)

@pytest.fixture(scope="module")
def server():
    wait_for_a_process()

def test_slow_once():
    tries.append(1)
    wait_for_a_process()
    assert len(tries) > 1, "the broker was late"

def test_broken():
    wait_for_a_process()
    assert False

def test_pure():
    tries.append(1)
    assert len(tries) > 10

def test_unhurried(server):
    tries.append(1)
    assert len(tries) > 4
"""
OFTEN = """
import os
import pytest
tries = set()

@pytest.mark.parametrize("number", range(8))
def test_slow_once(number):
    os.waitpid(os.fork() or os._exit(0), 0)
    new = number not in tries
    tries.add(number)
    assert not new
"""


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tests: str) -> pytest.RunResult:
    """A run of these tests, in their order."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makepyfile(tests)
    return pytester.runpytest_subprocess("-p", "tests.second_try", "-p", "no:randomly", "-p", "no:cov")


def test_only_who_waits_for_a_process_gets_one(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Itself or by a fixture; a test that fails twice fails, and what failed at the first try is shown."""
    result = run(pytester, monkeypatch, TESTS)
    assert result.parseoutcomes() == {"passed": 2, "failed": 2, "rerun": 3}
    result.stdout.fnmatch_lines(["*test_slow_once was tried twice*", "*the broker was late*"])


def test_a_run_has_few(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails once in every test is no accident."""
    result = run(pytester, monkeypatch, OFTEN)
    assert result.parseoutcomes() == {"passed": 5, "failed": 3, "rerun": 5}
    result.stdout.fnmatch_lines(["*5 tests were tried twice: later failures*"])
