"""The runner of benchmarks, and the times that they share."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from benchmarks.__main__ import MODULES, main, subject
from benchmarks.timing import in_turns, judged, ratios, spread

ROOT = Path(__file__).parents[2]


def test_the_list_has_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name, each benchmark is listed with its subject, and each module with `main` is in the list."""
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(MODULES)
    assert all(subject(name) in line for name, line in zip(MODULES, lines, strict=True))
    folder = ROOT / "benchmarks"
    modules = {
        ".".join(file.relative_to(folder).with_suffix("").parts)
        for file in folder.rglob("*.py")
        if file != folder / "__main__.py" and re.search("^def main\\(", file.read_text(), re.MULTILINE)
    }
    assert modules == set(MODULES.values())


def test_documented_commands_name_benchmarks() -> None:
    """Each `python -m benchmarks NAME` of the documentation, the Makefile and the benchmarks names a benchmark."""
    files = [ROOT / "Makefile", *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.py")]
    names = {name for file in files for name in re.findall(r"-m benchmarks ([a-z][a-z-]*)", file.read_text())}
    assert names
    assert names <= set(MODULES)


@pytest.mark.parametrize("name", ["exposition", "text-parser", "sampling"])
def test_a_benchmark_has_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The help of a benchmark has its subject and ends with code 0."""
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert " ".join(capsys.readouterr().out.split()).startswith(f"usage: python -m benchmarks {name}")


def test_an_unknown_name_is_wrong_usage() -> None:
    """A name that no benchmark has ends with code 2."""
    run = subprocess.run([sys.executable, "-m", "benchmarks", "speed"], capture_output=True, cwd=ROOT, check=False)
    assert run.returncode == 2


def test_each_side_comes_before_and_after_each_other() -> None:
    """Each side runs before and after each other one, so that its leftovers affect only every second round."""
    done: list[str] = []
    results = in_turns({name: partial(done.append, name) for name in "abc"}, rounds=4)
    assert "".join(done) == "abc" + "cba" + "abc" + "cba"
    assert {name: len(figures) for name, figures in results.items()} == {"a": 4, "b": 4, "c": 4}


def test_rounds_before_any_counts() -> None:
    """Figures of the first rounds are left out, and each round is prepared for all sides."""
    prepared: list[int] = []
    results = in_turns({"a": lambda: prepared[-1], "b": lambda: -prepared[-1]}, 2, warm_up=3, prepare=prepared.append)
    assert prepared == [0, 1, 2, 3, 4]
    assert results == {"a": [3, 4], "b": [-3, -4]}


def test_ratios_are_of_the_same_round() -> None:
    """A ratio is of two times in the same round, as a slow round slows both sides."""
    assert ratios([1.0, 10.0, 3.0], [2.0, 20.0, 4.0]) == [0.5, 0.5, 0.75]
    assert spread([3.0, 1.0, 2.0], ".1f", 10) == "10.0 / 20.0 / 30.0"


def test_a_missed_goal_is_red() -> None:
    """A median beyond its goal, an upper or a lower one, is red."""
    figures = [1.0, 1.2, 9.0]
    assert judged(figures, 1.2) == judged(figures, None) == "1.00 / 1.20 / 9.00"
    assert judged(figures, 1.1) == judged(figures, 1.3, at_least=True) == "[red]1.00 / 1.20 / 9.00[/]"
