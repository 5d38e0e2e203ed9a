"""Rules that hold for all tests."""

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import core, is_hypothesis_test, settings

GIVE = "import tempfile; print(tempfile.gettempdir(), end='')"


def test_what_is_left_lies_in_the_folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """
    Temporary files of this process and its children, Spark's included, lie in the folder of the run.

    Pytest removes it after a run without failures.
    """
    base = tmp_path_factory.getbasetemp()
    child = subprocess.run([sys.executable, "-c", GIVE], check=True, capture_output=True, text=True).stdout
    option = os.environ["SPARK_SUBMIT_OPTS"].partition("java.io.tmpdir=")[2]
    for folder in (tempfile.gettempdir(), child, option):
        assert Path(folder).is_relative_to(base)


def test_random_examples_are_others_in_each_run(request: pytest.FixtureRequest) -> None:
    """Random examples differ between runs, and follow the seed that the run shows unless they have their own."""
    assert not settings().derandomize
    option = request.config.option
    seed = getattr(option, "randomly_seed", None)
    if option.hypothesis_seed is None and isinstance(seed, int):
        assert core.global_force_seed == seed
    assert settings().print_blob


def test_thorough_tries_more() -> None:
    """`make thorough` loads the thorough profile."""
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    assert "QUOTASCOPE_HYPOTHESIS_PROFILE=thorough" in makefile
    thorough = settings.get_profile("thorough")
    assert thorough.max_examples > 10 * settings.get_profile("desk").max_examples


def test_what_takes_long_runs_without_coverage(request: pytest.FixtureRequest) -> None:
    """Slow, Java and random tests run without coverage, and all others with it, so that these keep its floors."""

    def takes_long(item: pytest.Item) -> bool:
        marked = item.get_closest_marker("slow") or item.get_closest_marker("java")
        return bool(marked) or is_hypothesis_test(getattr(item, "obj", None))

    items = request.session.items
    wrong = [item.name for item in items if takes_long(item) is not bool(item.get_closest_marker("no_cover"))]
    assert wrong[:10] == []


TESTS = Path(__file__).parent
IN_TEXT = re.compile(r"^\s*(?:from (\S+) import (\w+)|import (\S+))", re.MULTILINE)


def imported(text: str) -> Iterator[str]:
    """Yield what a module imports, programs in its texts included, by dotted names."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module}.{name.name}" for name in names)
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.Constant(value=str(program)):
                yield from (f"{module}.{name}" if module else plain for module, name, plain in IN_TEXT.findall(program))


def wrong_imports(file: str, text: str) -> list[str]:
    """Return what a file of tests must not import."""
    of_tests = {name for name in imported(text) if re.search(r"(^|\.)test_", name)} - {
        name for name in imported(text) if name.startswith("aiohttp.")
    }
    of_benchmarks = {name for name in imported(text) if name.partition(".")[0] == "benchmarks"}
    return sorted(of_tests | (set() if file.startswith("benchmarks/") else of_benchmarks))


def test_test_modules_import_helpers_only() -> None:
    """No test module is imported, and benchmarks are imported by their own tests alone."""
    files = {path.relative_to(TESTS).as_posix(): path for path in TESTS.rglob("*.py") if path != Path(__file__)}
    wrong = {file: names for file, path in files.items() if (names := wrong_imports(file, path.read_text("utf-8")))}
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from tests.cli import (\n    test_main,\n)", ["tests.cli.test_main"]),
        ("from .test_main import run", ["test_main.run"]),
        ("import benchmarks.soak", ["benchmarks.soak"]),
        ('PROGRAM = """\nfrom tests.cli.test_main import run\n"""', ["tests.cli.test_main.run"]),
        ("from aiohttp.test_utils import TestServer\nfrom tests.cli import conftest", []),
    ],
)
def test_an_import_of_a_test_module_is_found(text: str, names: list[str]) -> None:
    """Imports in parentheses, relative ones and those of programs in texts are seen."""
    assert wrong_imports("cli/test_main.py", text) == names
