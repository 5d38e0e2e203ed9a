"""Work that is done by several sides in turns, and what each used for it."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from benchmarks.output import STDERR
from benchmarks.pipeline.processes import watch
from benchmarks.timing import in_turns, judged, ratios, timed
from rich.table import Table

MIB = 1 << 20


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
    """Side of a comparison."""

    name: str
    rows: int
    """Rows or lines that it goes through."""
    work: Callable[[], object]
    pid: int
    """The process that works, with those below it."""
    base: str = ""
    """Name of the side whose time it is compared with, round by round."""
    goal: float = 0
    """Largest ratio of its time to that of the base; 0 without a goal."""
    by_cpu: bool = False
    """True if CPU time is compared, else seconds."""
    runs: list[Run] = field(default_factory=list)

    def beside(self, base: str, goal: float = 0, *, by_cpu: bool = False) -> Self:
        """Compare it with another side; return itself."""
        self.base, self.goal, self.by_cpu = base, goal, by_cpu
        return self

    def run(self) -> Run:
        """Do it once, and return what it used."""
        with watch(self.pid) as used:
            seconds, _ = timed(self.work)
        STDERR.log(f"{self.name}: {seconds:.1f} s, CPU {used.cpu:.1f} s")
        return Run(
            seconds=seconds, cpu=used.cpu, jvm=used.peak("java"), python=used.peak("python"), workers=used.together
        )

    def median(self, figure: Callable[[Run], float]) -> float:
        """Return the median of all runs."""
        return statistics.median(map(figure, self.runs))


def run_in_turns(title: str, sides: Sequence[Side], rounds: int, *, warm_up: int = 0) -> None:
    """Let all do it so many times, in turns, after rounds that do not count, and keep what they used."""
    runs = in_turns({side.name: side.run for side in sides}, rounds, title=title, warm_up=warm_up)
    for side in sides:
        side.runs = runs[side.name]


def compared(side: Side, sides: Sequence[Side]) -> list[float]:
    """Return the ratio of its time, or CPU time, to that of its base, round by round."""
    base = next((candidate for candidate in sides if candidate.name == side.base), None)
    if base is None:
        return []
    mine, theirs = ([run.cpu if side.by_cpu else run.seconds for run in runs] for runs in (side.runs, base.runs))
    return ratios(mine, theirs)


def table(title: str, sides: Sequence[Side]) -> Table:
    """Return the results as people read them."""
    result_table = Table(title=title)
    result_table.add_column("")
    for heading in (
        *("seconds", "rows/s", "CPU µs a row", "ratio: min / median / max"),
        *("JVM MiB", "largest Python MiB", "all workers MiB"),
    ):
        result_table.add_column(heading, justify="right")
    for side in sides:
        result_table.add_row(*_cells(side, sides))
    return result_table


def _cells(side: Side, sides: Sequence[Side]) -> Iterator[str]:
    seconds = side.median(lambda run: run.seconds)
    yield side.name
    yield f"{seconds:.1f}"
    yield f"{side.rows / seconds:,.0f}"
    yield f"{side.median(lambda run: run.cpu) / side.rows * 1e6:.2f}"
    yield _compared(side, compared(side, sides))
    for bytes_ in (
        max(run.jvm for run in side.runs),
        max(run.python for run in side.runs),
        max(run.workers for run in side.runs),
    ):
        yield f"{bytes_ / MIB:,.0f}" if bytes_ else ""


def _compared(side: Side, compared_ratios: list[float]) -> str:
    if not compared_ratios:
        return ""
    goal = f", goal {side.goal:g}" if side.goal else ""
    return f"{judged(compared_ratios, side.goal or None)}{goal} ({side.base}{', CPU' if side.by_cpu else ''})"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Sides that did the same work, and facts about the work."""

    title: str
    sides: Sequence[Side]
    facts: dict[str, float] = field(default_factory=dict)
    """Facts such as bytes on disk, by name with unit."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        sides = {side.name: self._plain(side) for side in self.sides}
        return {"facts": self.facts, "sides": sides}

    def _plain(self, side: Side) -> dict[str, Any]:
        compared_ratios = compared(side, self.sides)
        times_as_long = {
            "base": side.base,
            "min": min(compared_ratios, default=None),
            "median": statistics.median(compared_ratios) if compared_ratios else None,
            "max": max(compared_ratios, default=None),
        }
        runs = [asdict(run) for run in side.runs]
        return {"rows": side.rows, "runs": runs, "times_as_long": times_as_long if compared_ratios else None}
