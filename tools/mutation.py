"""
Puts small mistakes into the product, one at a time, and reports which of them the unit tests notice.

Cosmic Ray makes the mutants; ``make mutation`` runs a seeded sample of them over all rooms. First, one run of the unit
tests under coverage records which test runs which line. Each mutant then runs in a copy of the checkout, and only the
tests that reach it are asked; for alerts and dashboards all of their tests, as only Prometheus and Grafana understand
their queries. What they miss may be noticed by tests that compare with what was written down from the product itself.
Those notice any change, so they are counted apart.

Not mutated is what cannot change behavior: annotations, options of ``@dataclass`` and decorators for type checkers.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

import cosmic_ray.plugins
from attrs import evolve
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_and_test, mutate_code
from cosmic_ray.work_item import MutationSpec, TestOutcome
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tools.check_coverage import FLOORS

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutation"
UNIT = "not real and not java"
COMPARISONS = (
    "tests/alerts/test_files.py::test_generated_files_are_current",
    "tests/cli/test_transcripts.py",
    "tests/dashboards/test_generated.py",
    "tests/dashboards/test_layout.py::test_rows_panels_and_columns_are_as_laid_out",
    "tests/exporter/exposition/test_golden.py",
    "tests/facts/test_defaults.py",
    "tests/test_docs.py",
)
"""Tests that compare with text that was once written by the product itself."""
ASKED_WHOLE = ("alerts", "dashboards")
"""
Rooms of which all tests run, including tests with a real Prometheus or Grafana's code: one fixture makes what all of
them look at.
"""
COMPILED = ("pipeline/blame", "pipeline/replay")
"""
Folders of which all tests run, not only tests that reach the changed line: coverage sees no line of a kernel that numba
has compiled.
"""
FACTS = "tests/facts"
"""Tests of tables, which read sources and values that were made at import."""
FEWEST = 12
"""Least number of mutants of a room."""
LONGEST_SECONDS = 150.0
"""Timeout of a mutant: then it has made the tests hang, which counts as noticed."""
OUTCOMES = ("caught", "hung", "compared", "survived", "unreached")
NOTICED = ("caught", "hung")
_SKIPPED_OPERATORS = ("core/VariableInserter", "core/VariableReplacer")
_TYPING_DECORATORS = {
    "abstractmethod",
    "dataclass",
    "final",
    "mypyc_attr",
    "overload",
    "override",
}

Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on one mutant."""

    room: str
    path: str
    line: int
    operator: str
    outcome: str
    """
    ``caught``; ``hung`` when the tests did not end in time.

    ``compared`` when only a comparison with what was written down noticed it; ``survived``; or ``unreached`` when no
    unit test
    runs the line.
    """
    tests: int
    """Number of tests that were run."""
    diff: str


def main() -> int:
    """Run the sample; return 0 if at least ``--goal`` percent were caught, else 1."""
    options = _options()
    copies = _copies(options.jobs)
    _check_comparisons(copies[0])
    reached = _reached(options.map or _recorded(copies[0]))
    sample = [
        mutant
        for room, count in _shares(options.room or list(FLOORS), options.sample).items()
        for mutant in _sample(room, count, _chooser(options.seed, room))
    ]
    verdicts = list(_judged(sample, copies, reached))
    (BUILD / "report.json").write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1), "utf-8")
    return _report(verdicts, options.goal)


def _chooser(seed: int, room: str) -> random.Random:
    """Return a random generator for each room, so that its mutants do not depend on the other rooms of the run."""
    return random.Random(f"{seed} {room}")  # noqa: S311 - a sample, not a secret


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutation", description=__doc__.splitlines()[1])
    parser.add_argument("--sample", type=int, default=400, help="mutants in all")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--goal", type=float, default=85.0, help="percent to be caught")
    parser.add_argument("--room", action="append", choices=list(FLOORS))
    parser.add_argument("--map", type=Path, help="coverage data with contexts of an earlier run")
    return parser.parse_args()


def _copies(count: int) -> list[Path]:
    """
    Return copies of the checkout with the bytecode of product and tests.

    Without the bytecode, Python would compile everything for each mutant.
    """
    first_copy = _copy(BUILD / "0")
    subprocess.run(
        [*_pytest(first_copy), "--collect-only", "--quiet"],
        cwd=first_copy, check=True, stdout=subprocess.DEVNULL,
        env={key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    )  # fmt: skip
    further = [BUILD / str(number) for number in range(1, count)]
    for another in further:
        shutil.rmtree(another, ignore_errors=True)
        shutil.copytree(first_copy, another, symlinks=True)
    return [first_copy, *further]


def _check_comparisons(copy: Path) -> None:
    """Run the comparisons without a mutant: a comparison that already fails cannot notice one."""
    command = [*_pytest(copy, ()), *(str(copy / comparison) for comparison in COMPARISONS)]
    if subprocess.run(command, cwd=copy, check=False).returncode:
        raise SystemExit("quotascope: the comparisons fail without any mutant")


def _copy(target: Path) -> Path:
    """Copy the files that git knows of the checkout, without those that it ignores."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        source, copy = ROOT / name, target / name
        if source.is_symlink() or source.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    return target


def _pytest(copy: Path, without: Sequence[str] = COMPARISONS, markers: str = UNIT) -> list[str]:
    """Return the command that runs tests of a copy with the copy's product, not that of the checkout."""
    return [
        "env", f"PYTHONPATH={copy / '.imports'}", sys.executable, "-m", "pytest",
        f"--rootdir={copy}", "-c", str(copy / "pyproject.toml"), "-p", "no:cacheprovider", "-p", "no:randomly",
        "-q", "--hypothesis-seed=1", "-m", markers, *(f"--deselect={test}" for test in without),
    ]  # fmt: skip


def _recorded(copy: Path) -> Path:
    """Return the coverage data of the unit tests, by test."""
    data = BUILD / "coverage"
    data.unlink(missing_ok=True)
    rooms = [f"--cov={room}" for room in FLOORS]
    ran = subprocess.run(
        [*_pytest(copy), *rooms, "--cov-context=test", "--cov-report="],
        cwd=copy, check=False, env={**os.environ, "COVERAGE_FILE": str(data)}
    )  # fmt: skip
    if ran.returncode:
        raise SystemExit("quotascope: the unit tests fail without any mutant")
    return data


class _Reached:
    """Tests that run a line."""

    def __init__(self, lines: dict[str, dict[int, set[str]]]) -> None:
        self._lines = lines

    def tests(self, path: str, first_line: int, last_line: int) -> list[str]:
        """
        Return the tests that run one of the lines.

        For a line that runs at import, these are all tests that run any line of the file, and the tests of tables.

        A file of constants alone has no line that a test runs: then the tests of its room are run.
        """
        room = path.partition("/")[0]
        if room in ASKED_WHOLE:
            return [f"tests/{room}"]
        lines = self._lines.get(path, {})
        selected = set().union(*(lines.get(n, ()) for n in range(first_line, last_line + 1))) - {""}
        if not selected:
            at_import = any("" in lines.get(n, ()) for n in range(first_line, last_line + 1))
            if not at_import:
                return []
            selected = set().union(*lines.values()) - {""} or {f"tests/{room}"}
            selected.add(FACTS)
        near = f"tests/{Path(path).parent}"
        if str(Path(path).parent) in COMPILED:
            selected.add(near)
        return sorted(selected, key=lambda test: (not test.startswith(near), test))


def _reached(data: Path) -> _Reached:
    """
    Return the lines that each test function runs, whatever its parameters.

    Read from coverage's own file, since its interface gives the contexts of a line as lists of texts, and slowly.
    """
    lines: dict[str, dict[int, set[str]]] = {}
    with sqlite3.connect(data) as store:
        tests = {
            number: context.rpartition("|")[0].partition("[")[0]
            for number, context in store.execute("select id, context from context")
        }
        for number, path in store.execute("select id, path from file"):
            of_file = lines.setdefault(_in_checkout(path), {})
            for context, line in store.execute(
                "select context_id, tono from arc where file_id = ? and tono > 0", (number,)
            ):
                of_file.setdefault(line, set()).add(tests[context])
    return _Reached(lines)


def _in_checkout(path: str) -> str:
    """Return the path within the checkout of a file in a copy, where tests ran: from the room's name on."""
    parts = Path(path).parts
    rooms = (place for place, part in enumerate(parts) if part in FLOORS)
    ends = (Path(*parts[place:]) for place in rooms)
    return str(next((end for end in ends if (ROOT / end).exists()), path))


def _shares(rooms: list[str], sample: int) -> dict[str, int]:
    """Return the number of mutants of each room, in proportion to its lines, at least ``FEWEST``."""
    lines = {room: sum(map(_lines, _files(room))) for room in rooms}
    all_lines = sum(lines.values())
    return {room: max(FEWEST, round(sample * room_lines / all_lines)) for room, room_lines in lines.items()}


def _files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _sample(room: str, count: int, chooser: random.Random) -> Iterator[MutationSpec]:
    """Yield places to mutate: files in proportion to their length, a random place in each, and one of its mutants."""
    files = [path for path in _files(room) if _lines(path) > 1]
    weights = list(map(_lines, files))
    chosen: set[tuple[Path, str, int]] = set()
    mutants_by_path: dict[Path, dict[Position, list[MutationSpec]]] = {}
    while len(chosen) < count:
        path = chooser.choices(files, weights)[0]
        if path not in mutants_by_path:
            mutants_by_path[path] = _mutants(path)
        if not mutants_by_path[path]:
            continue
        place = chooser.choice(sorted(mutants_by_path[path]))
        mutant = chooser.choice(mutants_by_path[path][place])
        key = path, mutant.operator_name, mutant.occurrence
        if key not in chosen and _can_be_made(mutant):
            chosen.add(key)
            yield mutant


def _can_be_made(mutant: MutationSpec) -> bool:
    """
    Return whether a mutant can be made.

    The operator may find no way to change the place, fail at it, as at names with a dot, or produce no Python.
    """
    operator = cosmic_ray.plugins.get_operator(mutant.operator_name)()
    source = mutant.module_path.read_text("utf-8")
    try:
        code = mutate_code(source, operator, mutant.occurrence)
        return code is not None and ast.parse(code) is not None
    except Exception:  # noqa: BLE001 - whatever the operator did not expect
        return False


def _mutants(path: Path) -> dict[Position, list[MutationSpec]]:
    """Return all mutants of a file by the place where they begin, except mutants that cannot change behavior."""
    nodes = list(ast_nodes(get_ast_from_path(path)))
    silent = _silent(path.read_text("utf-8"))
    by_position: dict[Position, list[MutationSpec]] = {}
    for name in cosmic_ray.plugins.operator_names():
        if name in _SKIPPED_OPERATORS:
            continue
        operator = cosmic_ray.plugins.get_operator(name)()
        places = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if not any(begin <= start < end for begin, end in silent):
                by_position.setdefault(start, []).append(MutationSpec(path, name, occurrence, start, end))
    return by_position


def _silent(source: str) -> list[tuple[Position, Position]]:
    """Return the spans in which a mutant cannot change behavior."""
    parts: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.arg(annotation=annotation) if annotation:
                parts.append(annotation)
            case ast.AnnAssign(annotation=annotation):
                parts.append(annotation)
                if ast.unparse(annotation).endswith("TypeAlias") and node.value:
                    parts.append(node.value)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                parts.append(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            parts.append(node.returns)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts += [decorator for decorator in node.decorator_list if _is_typing(decorator)]
    return [_span(part) for part in parts]


def _is_typing(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(name).rpartition(".")[2] in _TYPING_DECORATORS


def _span(node: ast.AST) -> tuple[Position, Position]:
    """Return the span of a node, from the ``@`` of a decorator, which is one column before its name."""
    start = (node.lineno, max(node.col_offset - 1, 0))  # type: ignore[attr-defined]
    return start, (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _judged(sample: list[MutationSpec], copies: list[Path], reached: _Reached) -> Iterator[Verdict]:
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def judge(mutant: MutationSpec) -> Verdict:
        copy = free.get()
        try:
            return _verdict(mutant, copy, reached)
        finally:
            free.put(copy)

    console = Console(stderr=True)
    with ThreadPoolExecutor(len(copies)) as pool:
        judged = pool.map(judge, sample)
        for verdict in track(judged, "mutants", len(sample), console=console):
            console.print(f"{verdict.outcome}: {verdict.path}:{verdict.line} {verdict.operator}")
            yield verdict


def _verdict(mutant: MutationSpec, copy: Path, reached: _Reached) -> Verdict:
    path = mutant.module_path.relative_to(ROOT)
    first_line, last_line = _statement(mutant)
    tests = reached.tests(str(path), first_line, last_line)
    outcome, diff = "unreached", ""
    for markers in (UNIT, "real") if path.parts[0] in ASKED_WHOLE else (UNIT,):
        if tests and outcome in ("unreached", "survived"):
            command = _pytest(copy, markers=markers)
            outcome, diff = _tried(mutant, copy, tests, command)
    if outcome == "survived":
        compared, _ = _tried(mutant, copy, COMPARISONS, _pytest(copy, ()))
        outcome = "survived" if compared == "survived" else "compared"
    return Verdict(
        path.parts[0], str(path), mutant.start_pos[0], mutant.operator_name, outcome, len(tests), diff
    )  # fmt: skip


def _statement(mutant: MutationSpec) -> tuple[int, int]:
    """
    Return the lines of the innermost statement around a mutant.

    In a table, only the first line is known to run.
    """
    lines = mutant.start_pos[0], mutant.end_pos[0]
    tree = ast.parse(mutant.module_path.read_text("utf-8"))
    around = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]
    spans = [span for span in around if span[0] <= lines[0] and lines[1] <= span[1]]
    return min(spans, key=lambda span: span[1] - span[0], default=lines)


def _tried(mutant: MutationSpec, copy: Path, tests: Sequence[str], pytest: list[str]) -> tuple[str, str]:
    """Run the tests on a mutant; return ``caught``, ``hung`` or ``survived``, and how the mutant differs."""
    names = copy / "build" / "tests.txt"
    names.parent.mkdir(exist_ok=True)
    names.write_text("\n".join(f"{copy}/{test}" for test in tests), "utf-8")
    mutant_of_copy = evolve(mutant, module_path=copy / mutant.module_path.relative_to(ROOT))
    command = shlex.join([*pytest, "-x", f"@{names}"])
    # a mutant of the same size, made in the second in which its file was last compiled, would run as the bytecode of
    # that file
    command = f"env PYTHONDONTWRITEBYTECODE=1 {command}"
    result = mutate_and_test([mutant_of_copy], command, LONGEST_SECONDS)
    if result.test_outcome is TestOutcome.INCOMPETENT:
        raise SystemExit(f"quotascope: {mutant.module_path}: {result.output}")
    if result.test_outcome is TestOutcome.SURVIVED:
        return "survived", result.diff or ""
    # Cosmic Ray's own words in place of the tests' output
    return "hung" if result.output == "timeout" else "caught", result.diff or ""


def _report(verdicts: Iterable[Verdict], goal: float) -> int:
    verdicts = list(verdicts)
    console = Console()
    for verdict in verdicts:
        if verdict.outcome not in NOTICED:
            console.rule(f"{verdict.outcome}: {verdict.path}:{verdict.line} {verdict.operator}")
            console.print(verdict.diff, markup=False, highlight=False)
    table = Table("room", "mutants", "caught", "survived", "unreached", "caught %", title="Mutants")
    for room in [*FLOORS, "all"]:
        outcomes = Counter(v.outcome for v in verdicts if room in (v.room, "all"))
        if outcomes:
            table.add_row(room, *_figures(outcomes))
    console.print(table)
    caught = sum(verdict.outcome in NOTICED for verdict in verdicts)
    return int(100 * caught < goal * len(verdicts))


def _figures(outcomes: Counter[str]) -> list[str]:
    counts = [outcomes.total(), *(outcomes[outcome] for outcome in OUTCOMES)]
    caught = sum(outcomes[outcome] for outcome in NOTICED)
    return [*map(str, counts), f"{100 * caught / outcomes.total():.1f}"]


if __name__ == "__main__":
    sys.exit(main())
