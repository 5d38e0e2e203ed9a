"""Content of a page of the exporter, and its check."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isclose
from typing import Final

from benchmarks.soak.readings import CLOCK, SUM
from prometheus_client import parser as plain_text
from prometheus_client.openmetrics import parser as openmetrics

_PRODUCE: Final = 'kafka_quota_produce_bytes_per_second{broker="'
_FETCH: Final = 'kafka_quota_fetch_bytes_per_second{broker="'
_UP: Final = "quotascope_source_up{"
_UNPLACED: Final = "quotascope_source_unplaced_series{"
_SOURCE: Final = 'source="'
_OWN: Final = "quotascope_"
_SUM_TAG: Final = f',client_id="{SUM}",'
_CLOCK_TAG: Final = f',client_id="{CLOCK}",'
_END: Final = "# EOF\n"
OLDEST_SECONDS: Final = 40.0
"""
No number of a source that is up may be older: the pause between two reads, the longest read, and the time for which it
may be shown again.
"""


@dataclass(slots=True)
class Page:
    """The lines that are looked at."""

    produced: dict[str, float] = field(default_factory=dict)
    """Sum of the produce rates, in bytes/s by broker, without those of the sums."""
    sums: dict[str, float] = field(default_factory=dict)
    """Sums by the agent's own account."""
    clocks: dict[str, float] = field(default_factory=dict)
    """The second at which the agent answered."""
    up: dict[str, bool] = field(default_factory=dict)
    """State by source."""
    partial: set[str] = field(default_factory=set)
    """Sources of whose answers the exporter says that it left something out."""
    counters: dict[str, float] = field(default_factory=dict)
    """The exporter's own, by series."""
    samples: int = 0


def read_page(text: str) -> Page:
    """Read the text format or OpenMetrics, as this exporter writes them. Raises `ValueError`."""
    page = Page()
    for line in text.splitlines():
        if not line.startswith("#"):
            page.samples += 1
            _read_line(page, line)
    return page


def _read_line(page: Page, line: str) -> None:
    if line.startswith(_PRODUCE):
        broker = line[len(_PRODUCE) : line.index('"', len(_PRODUCE))]
        if _SUM_TAG in line:
            page.sums[broker] = _value(line)
        else:
            page.produced[broker] = page.produced.get(broker, 0.0) + _value(line)
    elif line.startswith(_FETCH) and _CLOCK_TAG in line:
        page.clocks[line[len(_FETCH) : line.index('"', len(_FETCH))]] = _value(line)
    elif line.startswith(_UP):
        page.up[_source(line)] = _value(line) == 1
    elif line.startswith(_UNPLACED):
        if _value(line):
            page.partial.add(_source(line))
    elif line.startswith(_OWN):
        series = line.rpartition(" ")[0]
        if series.partition("{")[0].endswith("_total"):
            page.counters[series] = _value(line)


def _source(line: str) -> str:
    start = line.index(_SOURCE) + len(_SOURCE)
    return line[start : line.rindex('"')]


def _value(line: str) -> float:
    return float(line.rpartition(" ")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Expectations of a page."""

    at: float
    """Seconds since the run began."""
    up: Mapping[str, bool]
    """State by source, of those that have been well or ill for a while."""
    agents: frozenset[str]
    """The sources that are agents of ours: each of those that are up has a sum and a clock."""
    listed: frozenset[str] | None
    """Sources that are read now; None when that has just changed."""
    counters: Mapping[str, float]
    """Counters of the page before."""


def faults(page: Page, expected: Expected) -> Iterator[str]:
    """Yield the faults of a page."""
    yield from _wrong_sums(page)
    yield from _wrong_sources(page, expected)
    for broker, second in page.clocks.items():
        if expected.at - second > OLDEST_SECONDS:
            yield f"broker {broker}: numbers are {expected.at - second:.0f} s old"
    for series, value in page.counters.items():
        if value < expected.counters.get(series, 0.0):
            yield f"{series} fell from {expected.counters[series]:g} to {value:g}"


def _wrong_sums(page: Page) -> Iterator[str]:
    for broker, stated in page.sums.items():
        total = page.produced.get(broker, 0.0)
        if not isclose(total, stated, rel_tol=1e-6, abs_tol=1e-6):
            yield f"broker {broker}: produce rates add up to {total:g} and not to {stated:g}"


def _wrong_sources(page: Page, expected: Expected) -> Iterator[str]:
    ours = {name for name in page.up if name in expected.agents}
    for name in sorted(ours & expected.up.keys()):
        if page.up[name] != expected.up[name]:
            yield f"{name} is shown {'up' if page.up[name] else 'down'}"
    if expected.listed is not None and ours != expected.listed:
        yield f"sources {sorted(ours)} and not {sorted(expected.listed)}"
    up_now = {name for name in ours if page.up[name]}
    for name in sorted(up_now & page.partial & expected.up.keys()):
        yield f"{name} is read in part"
    # a node whose answers have just become short again gives some of its beans: the first requests were too long still
    whole = len(up_now - page.partial)
    if not all(whole <= len(numbers) <= len(up_now) for numbers in (page.sums, page.clocks)):
        yield f"{whole} sources are read as a whole, but {len(page.sums)} sums and {len(page.clocks)} clocks are shown"


def strictly_parsed(text: str) -> int:
    """Read the whole page with prometheus_client's parsers. Returns the samples; raises `ValueError`."""
    parse = openmetrics if text.endswith(_END) else plain_text
    label_sets: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    count = 0
    for family in parse.text_string_to_metric_families(text):
        for sample in family.samples:
            count += 1
            label_sets.add((sample.name, tuple(sorted(sample.labels.items()))))
    if len(label_sets) != count:
        raise ValueError(f"{count - len(label_sets)} series are there twice")
    return count
