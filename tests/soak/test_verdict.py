"""The verdict finds what a run is for."""

from dataclasses import replace

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


def scrapes() -> list[Record]:
    """Scrapes that went well."""
    return [Scrape(at=at, scraper="first", seconds=0.1, size=1, samples=1) for at in range(0, SECONDS, 10)]


def test_quiet_run_went_well() -> None:
    """Memory that wavers after it has grown in the beginning is flat."""
    verdict = judge([*usages(), *scrapes()])
    assert verdict.failures == ()
    assert verdict.scrapes == 360
    assert verdict.cores == pytest.approx(0.1)


@pytest.mark.parametrize("leak", [12.0, 100.0])
def test_leak_is_found(leak: float) -> None:
    """A tenth of the memory more in an hour fails, however it wavers meanwhile."""
    (failure,) = judge([*usages(leak_mib_per_hour=leak), *scrapes()]).failures
    assert failure.startswith("memory grew by")


def test_one_large_reading_is_no_leak() -> None:
    """A moment of much memory moves neither the slope nor the medians."""
    readings = usages()
    last = readings[-1]
    assert isinstance(last, Usage)
    assert judge([*readings[:-1], replace(last, rss_mib=900.0), *scrapes()]).failures == ()


def test_open_descriptors_are_found() -> None:
    """Descriptors that are opened and not closed fail, long before there are none left."""
    (failure,) = judge([*usages(fds_per_hour=12), *scrapes()]).failures
    assert failure.startswith("descriptors went from")


def test_lost_scrape_is_found() -> None:
    """One scrape that no one answered is enough."""
    lost = Scrape(at=1, scraper="first", seconds=10, lost="TimeoutError")
    verdict = judge([*usages(), *scrapes(), lost])
    assert verdict.lost == 1
    assert verdict.failures == ("1 scrapes were lost, first TimeoutError",)


def test_wrong_scrape_is_found() -> None:
    """So is one that reports something wrong."""
    wrong = Scrape(at=1, scraper="first", seconds=1, faults=("broker 1: no",))
    (failure,) = judge([*usages(), *scrapes(), wrong]).failures
    assert failure == "1 scrapes showed something wrong, first broker 1: no"


def test_failed_page_is_found() -> None:
    """So is a page for people that did not come."""
    visit = Visit(at=1, path="/", seconds=1, problem="HTTP 500")
    (failure,) = judge([*usages(), *scrapes(), visit]).failures
    assert failure == "1 other requests failed, first /: HTTP 500"


def test_unexpected_line_is_found() -> None:
    """So is a line in the log that nothing explains."""
    (failure,) = judge([*usages(errors=2), *scrapes()]).failures
    assert failure == "2 lines in the log were not expected"


def test_run_without_readings_is_not_judged() -> None:
    """No verdict comes out of nothing."""
    with pytest.raises(ValueError, match="too short"):
        judge(scrapes())


def test_slope_is_the_median_of_slopes() -> None:
    """One point far away does not move it."""
    assert slope([(0, 0.0), (1, 1.0), (2, 2.0), (3, 100.0), (4, 4.0)]) == 1.0
    assert slope([(0, 5.0)]) == 0.0
