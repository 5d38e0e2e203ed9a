"""The verdict finds what a run is for."""

import re
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.soak.records import Record, Scrape, Usage, Visit
from benchmarks.soak.verdict import judge, slope

SECONDS = 3_600


def usages(leak_mib_per_hour: float = 0.0, fds_per_hour: float = 0.0, errors: int = 0) -> list[Record]:
    """An hour of a process whose memory wavers by some MiB, and had grown before."""
    return [
        Usage(
            at=at,
            rss_mib=120 - 40 * max(0, 300 - at) / 300 + at // 10 % 7 + leak_mib_per_hour * at / SECONDS,
            fds=30 + at // 10 % 4 + int(fds_per_hour * at / SECONDS),
            threads=8 + at // 10 % 3,
            cpu_seconds=at * 0.1,
            other_cpu_seconds=at * 0.05,
            load=1.0,
            errors=errors if at > SECONDS / 2 else 0,
        )
        for at in range(0, SECONDS, 10)
    ]


SCRAPES = [Scrape(at=at, scraper="first", seconds=0.1, size=1, samples=1) for at in range(0, SECONDS, 10)]
"""They went well."""


def test_quiet_run_went_well() -> None:
    """Memory that wavers after it has grown in the beginning is flat."""
    verdict = judge([*usages(), *SCRAPES])
    assert (verdict.failures, verdict.scrapes, verdict.lost) == ((), 360, 0)
    assert verdict.cores == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("usage", "more", "failure"),
    [
        pytest.param({"leak_mib_per_hour": 12.0}, [], "memory grew by .*", id="a tenth of the memory more in an hour"),
        pytest.param({"leak_mib_per_hour": 100.0}, [], "memory grew by .*", id="more of it"),
        pytest.param({"fds_per_hour": 12}, [], "descriptors went from .*", id="descriptors that are not closed"),
        pytest.param({"errors": 2}, [], "2 lines in the log were not expected", id="a line that nothing explains"),
        pytest.param({}, [Scrape(at=1, scraper="first", seconds=10, lost="TimeoutError")], "1 scrapes were lost, first TimeoutError", id="a scrape without an answer"),
        pytest.param({}, [Scrape(at=1, scraper="first", seconds=1, faults=("broker 1: no",))], "1 scrapes showed something wrong, first broker 1: no", id="a wrong page"),
        pytest.param({}, [Visit(at=1, path="/", seconds=1, problem="HTTP 500")], "1 other requests failed, first /: HTTP 500", id="a page for people that did not come"),
    ]
)  # fmt: skip
def test_trouble_is_found(usage: dict[str, Any], more: list[Record], failure: str) -> None:
    """One of each is enough, however the memory wavers meanwhile."""
    verdict = judge([*usages(**usage), *SCRAPES, *more])
    (found,) = verdict.failures
    assert re.fullmatch(failure, found)
    assert verdict.lost == ("lost" in failure)


def test_one_large_reading_is_no_leak() -> None:
    """A moment of much memory moves neither the slope nor the medians."""
    *readings, last = usages()
    assert isinstance(last, Usage)
    assert judge([*readings, replace(last, rss_mib=900.0), *SCRAPES]).failures == ()


def test_run_without_readings_is_not_judged() -> None:
    """No verdict comes out of nothing."""
    with pytest.raises(ValueError, match="too short"):
        judge(SCRAPES)


def test_slope_is_the_median_of_slopes() -> None:
    """One point far away does not move it."""
    assert slope([(0, 0.0), (1, 1.0), (2, 2.0), (3, 100.0), (4, 4.0)]) == 1.0
    assert slope([(0, 5.0)]) == 0.0
