"""Times of what several sides do in turns, and their ratios, round by round."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from benchmarks.output import STDERR
from rich.progress import track

Result = TypeVar("Result")
Figures = TypeVar("Figures")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds of a piece of work, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def cpu_timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the CPU seconds of this process for a piece of work, and its result; garbage is collected before."""
    gc.collect()
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def in_turns(
    sides: Mapping[str, Callable[[], Figures]],
    rounds: int,
    *,
    warm_up: int = 0,
    title: str = "",
    prepare: Callable[[int], object] = lambda number: number,
) -> dict[str, list[Figures]]:
    """
    Let all sides do the same so many times, and return the figures of each, round by round.

    Every second round goes backwards, since it matters who comes after whom: Spark's Python workers wait a minute for
    more to do.

    Args:
        sides: what measures a side once, by name.
        rounds: rounds that count.
        warm_up: rounds before them: caches fill, and a JVM compiles what it does often.
        title: what the bar of progress says; there is none without it.
        prepare: is called with the number of each round before it.

    """
    names = list(sides)
    figures: dict[str, list[Figures]] = {name: [] for name in names}
    for number in track(range(warm_up + rounds), title, console=STDERR, disable=not title):
        prepare(number)
        for name in names[::-1] if number % 2 else names:
            measured = sides[name]()
            if number >= warm_up:
                figures[name].append(measured)
    return figures


def ratios(figures: Sequence[float], base: Sequence[float]) -> list[float]:
    """Return the ratio of each figure to that of another side in the same round."""
    return [figure / other for figure, other in zip(figures, base, strict=True)]


def spread(figures: Sequence[float], form: str = ".3g", scale: float = 1.0) -> str:
    """Return the least, the median and the greatest figure as text."""
    return " / ".join(
        format(figure * scale, form) for figure in (min(figures), statistics.median(figures), max(figures))
    )


def judged(figures: Sequence[float], goal: float | None, form: str = ".2f", *, at_least: bool = False) -> str:
    """Return `spread` in red where the median is beyond a goal, as rich reads it."""
    median = statistics.median(figures)
    missed = goal is not None and (median < goal if at_least else median > goal)
    return f"[red]{spread(figures, form)}[/]" if missed else spread(figures, form)
