"""Verdict on a run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final

from benchmarks.soak.records import Record, Scrape, Usage, Visit

WARM_UP: Final = 0.2
"""The part of the run before which memory may grow: caches fill up."""
GROWTH: Final = 0.05
"""The part of its memory by which a process may grow from then to the end, and still be called flat."""
NOISE_MIB: Final = 2.0
"""Less than that is not growth: a page of the largest kind more or less."""
MORE_HANDLES: Final = 5
"""Number of descriptors or threads more at the end than at the beginning, by their medians, that is a leak."""
_HOUR: Final = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Movement of a figure after the warm-up."""

    first: float
    """Median of the first quarter."""
    last: float
    """Median of the last quarter."""
    per_hour: float
    """The median of the slopes between any two readings (Theil and Sen), which outliers do not move."""
    hours: float

    @property
    def growth(self) -> float:
        """Growth over the whole time by the slope, or the difference of the quarters, if that is less."""
        return min(self.per_hour * self.hours, self.last - self.first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The figures, and what is wrong with them."""

    scrapes: int
    lost: int
    faulty: int
    slowest_seconds: float
    visits: int
    failed_visits: int
    memory: Trend
    fds: Trend
    threads: Trend
    cores: float
    """CPU seconds of the exporter in a second."""
    other_cores: float
    failures: tuple[str, ...]


def judge(records: Sequence[Record]) -> Verdict:
    """Judge a run by its records. Raises `ValueError` when there are too few."""
    scrapes = [record for record in records if isinstance(record, Scrape)]
    visits = [record for record in records if isinstance(record, Visit)]
    usages = [record for record in records if isinstance(record, Usage)]
    if not scrapes or len(usages) < 2:  # noqa: PLR2004 - a line needs two points
        raise ValueError("the run was too short to be judged")
    memory, fds, threads = (
        trend(usages, figure) for figure in (_rss, lambda usage: usage.fds, lambda usage: usage.threads)
    )
    seconds = usages[-1].at - usages[0].at
    return Verdict(
        scrapes=len(scrapes),
        lost=sum(bool(scrape.lost) for scrape in scrapes),
        faulty=sum(bool(scrape.faults) for scrape in scrapes),
        slowest_seconds=max(scrape.seconds for scrape in scrapes),
        visits=len(visits),
        failed_visits=sum(bool(visit.problem) for visit in visits),
        memory=memory,
        fds=fds,
        threads=threads,
        cores=(usages[-1].cpu_seconds - usages[0].cpu_seconds) / seconds,
        other_cores=(usages[-1].other_cpu_seconds - usages[0].other_cpu_seconds) / seconds,
        failures=(
            *_of_answers(scrapes, visits),
            *_of_handles(memory, fds, threads),
            *_of_log(usages),
        ),
    )


def trend(usages: Sequence[Usage], figure: Callable[[Usage], float]) -> Trend:
    """Return the movement of a figure after the warm-up."""
    ready = usages[0].at + WARM_UP * (usages[-1].at - usages[0].at)
    points = [(usage.at, figure(usage)) for usage in usages if usage.at >= ready]
    quarter = max(len(points) // 4, 1)
    return Trend(
        first=median(value for _, value in points[:quarter]),
        last=median(value for _, value in points[-quarter:]),
        per_hour=slope(points) * _HOUR,
        hours=(points[-1][0] - points[0][0]) / _HOUR,
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Theil's and Sen's, per second; 0 of a single point."""
    slopes = [(later[1] - sooner[1]) / (later[0] - sooner[0]) for sooner, later in combinations(points, 2)]
    return median(slopes) if slopes else 0.0


def _rss(usage: Usage) -> float:
    return usage.rss_mib


def _of_answers(scrapes: Sequence[Scrape], visits: Sequence[Visit]) -> Iterator[str]:
    lost = [scrape for scrape in scrapes if scrape.lost]
    if lost:
        yield f"{len(lost)} scrapes were lost, first {lost[0].lost}"
    faulty = [scrape for scrape in scrapes if scrape.faults]
    if faulty:
        yield f"{len(faulty)} scrapes showed something wrong, first {faulty[0].faults[0]}"
    failed = [visit for visit in visits if visit.problem]
    if failed:
        yield f"{len(failed)} other requests failed, first {failed[0].path}: {failed[0].problem}"


def _of_handles(memory: Trend, fds: Trend, threads: Trend) -> Iterator[str]:
    if memory.growth > max(GROWTH * memory.first, NOISE_MIB):
        yield f"memory grew by {memory.growth:.1f} MiB, {memory.per_hour:.1f} MiB/h"
    for name, handles in (("descriptors", fds), ("threads", threads)):
        if handles.last - handles.first > MORE_HANDLES:
            yield f"{name} went from {handles.first:g} to {handles.last:g}"


def _of_log(usages: Sequence[Usage]) -> Iterator[str]:
    if usages[-1].errors:
        yield f"{usages[-1].errors} lines in the log were not expected"
