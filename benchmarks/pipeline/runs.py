"""Work that is done by several sides in turns, and what each used for it."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from benchmarks.pipeline.processes import watch
from rich.console import Console
from rich.progress import track
from rich.table import Table

MIB = 1 << 20
STDERR = Console(stderr=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One time."""

    seconds: float
    cpu: float
    """CPU seconds of all its processes."""
    jvm: int
    """Most bytes resident of the JVM; 0 where there is none."""
    python: int
    """The same of the largest Python process."""
    workers: int
    """Most bytes resident of all Python workers of Spark together."""


@dataclass(slots=True, kw_only=True)
class Side:
    """Who does it."""

    name: str
    rows: int
    """Rows or lines that it goes through."""
    work: Callable[[], object]
    pid: int
    """The process that works, with those below it."""
    base: str = ""
    """Whose time it is compared with, round by round."""
    goal: float = 0
    """How many times as long it may take; 0 without a goal."""
    by_cpu: bool = False
    """Whether CPU time is compared, else seconds."""
    runs: list[Run] = field(default_factory=list)

    def beside(self, base: str, goal: float = 0, *, by_cpu: bool = False) -> Self:
        """Compare it with another side; return itself."""
        self.base, self.goal, self.by_cpu = base, goal, by_cpu
        return self

    def run(self) -> None:
        """Do it once."""
        with watch(self.pid) as used:
            start = time.perf_counter()
            self.work()
            seconds = time.perf_counter() - start
        self.runs.append(
            Run(seconds=seconds, cpu=used.cpu, jvm=used.peak("java"), python=used.peak("python"), workers=used.together)
        )

    def median(self, figure: Callable[[Run], float]) -> float:
        """The middle of all runs."""
        return statistics.median(map(figure, self.runs))


def in_turns(title: str, sides: Sequence[Side], rounds: int) -> None:
    """
    Let all do it so many times, in turns.

    Every second round goes backwards: who comes after whom matters, as Spark's Python workers wait a minute for more to do.
    """
    for turn in track(range(rounds), title, console=STDERR):
        for side in reversed(sides) if turn % 2 else sides:
            side.run()
            done = side.runs[-1]
            STDERR.log(f"{side.name}: {done.seconds:.1f} s, CPU {done.cpu:.1f} s")


def ratios(side: Side, sides: Sequence[Side]) -> list[float]:
    """How many times as long as its base it took, or how many times its CPU time, round by round."""
    base = next((each for each in sides if each.name == side.base), None)
    if base is None:
        return []
    pairs = zip(side.runs, base.runs, strict=True)
    if side.by_cpu:
        return [mine.cpu / theirs.cpu for mine, theirs in pairs]
    return [mine.seconds / theirs.seconds for mine, theirs in pairs]


def table(title: str, sides: Sequence[Side]) -> Table:
    """Return the results as people read them."""
    shown = Table(title=title)
    shown.add_column("")
    for heading in (
        *("seconds", "rows/s", "CPU µs a row", "ratio: min / median / max"),
        *("JVM MiB", "largest Python MiB", "all workers MiB"),
    ):
        shown.add_column(heading, justify="right")
    for side in sides:
        shown.add_row(*_cells(side, sides))
    return shown


def _cells(side: Side, sides: Sequence[Side]) -> Iterator[str]:
    seconds = side.median(lambda run: run.seconds)
    yield side.name
    yield f"{seconds:.1f}"
    yield f"{side.rows / seconds:,.0f}"
    yield f"{side.median(lambda run: run.cpu) / side.rows * 1e6:.2f}"
    yield _compared(side, ratios(side, sides))
    for bytes_ in (
        max(run.jvm for run in side.runs),
        max(run.python for run in side.runs),
        max(run.workers for run in side.runs),
    ):
        yield f"{bytes_ / MIB:,.0f}" if bytes_ else ""


def _compared(side: Side, found: list[float]) -> str:
    if not found:
        return ""
    middle = statistics.median(found)
    goal = f", goal {side.goal:g}" if side.goal else ""
    color = "red" if side.goal and middle > side.goal else "default"
    return (
        f"[{color}]{min(found):.2f} / {middle:.2f} / {max(found):.2f}{goal}[/] "
        f"({side.base}{', CPU' if side.by_cpu else ''})"
    )


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Sides that did the same work, and facts about the work."""

    title: str
    sides: Sequence[Side]
    facts: dict[str, float] = field(default_factory=dict)
    """Such as bytes on disk, by name with unit."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        sides = {each.name: self._plain(each) for each in self.sides}
        return {"facts": self.facts, "sides": sides}

    def _plain(self, side: Side) -> dict[str, Any]:
        found = ratios(side, self.sides)
        compared = {
            "base": side.base,
            "min": min(found, default=None),
            "median": statistics.median(found) if found else None,
            "max": max(found, default=None),
        }
        runs = [asdict(run) for run in side.runs]
        return {"rows": side.rows, "runs": runs, "times_as_long": compared if found else None}
