"""Failures that a second try forgives, and the lines that it prints."""

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


def test_few_get_one_who_wait_for_a_process(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A test waits itself or by a fixture; a test that fails twice fails, and what failed at the first try is shown.

    Three of the five second tries of a run are left to the first file, two to the second: what fails once in every test
    is no accident.
    """
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makepyfile(test_a=TESTS, test_b=OFTEN)
    result = pytester.runpytest_subprocess("-p", "tests.second_try", "-p", "no:randomly", "-p", "no:cov")
    assert result.parseoutcomes() == {"passed": 2 + 2, "failed": 2 + 6, "rerun": 3 + 2}
    result.stdout.fnmatch_lines(["*test_slow_once was tried twice*", "*the broker was late*"])
    result.stdout.fnmatch_lines(["*5 tests were tried twice: later failures*"])
