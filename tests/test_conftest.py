"""Rules that hold for all tests."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import core, is_hypothesis_test, settings

GIVE = "import tempfile; print(tempfile.gettempdir(), end='')"


def test_what_is_left_lies_in_the_folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of this process and of those that it starts, Spark's included; pytest removes it after a run without failures."""
    base = tmp_path_factory.getbasetemp()
    child = subprocess.run([sys.executable, "-c", GIVE], check=True, capture_output=True, text=True).stdout
    option = os.environ["SPARK_SUBMIT_OPTS"].partition("java.io.tmpdir=")[2]
    for folder in (tempfile.gettempdir(), child, option):
        assert Path(folder).is_relative_to(base)


def test_random_examples_are_others_in_each_run(request: pytest.FixtureRequest) -> None:
    """And follow the seed that the run shows, unless it was given one of their own."""
    assert not settings().derandomize
    option = request.config.option
    seed = getattr(option, "randomly_seed", None)
    if option.hypothesis_seed is None and isinstance(seed, int):
        assert core.global_force_seed == seed
    assert settings().print_blob


def test_thorough_tries_more() -> None:
    """The profile is the one that `make thorough` loads."""
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    assert "QUOTASCOPE_HYPOTHESIS_PROFILE=thorough" in makefile
    thorough = settings.get_profile("thorough")
    assert thorough.max_examples > 10 * settings.get_profile("desk").max_examples


def test_what_takes_long_runs_without_coverage(request: pytest.FixtureRequest) -> None:
    """So do random tests, and nothing else: the floors of coverage are held by the others."""

    def takes_long(item: pytest.Item) -> bool:
        marked = item.get_closest_marker("slow") or item.get_closest_marker("java")
        return bool(marked) or is_hypothesis_test(getattr(item, "obj", None))

    items = request.session.items
    wrong = [item.name for item in items if takes_long(item) is not bool(item.get_closest_marker("no_cover"))]
    assert wrong[:10] == []
