"""The soak: its agents answer as real ones did, its scrapers see wrong pages, and its verdict names each failure."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from math import isnan
from typing import Any

import pytest
from benchmarks.soak.agents import LIVES, Agent, AgentPlan
from benchmarks.soak.answers import Dialect
from benchmarks.soak.crowd import STAY_SECONDS, Crowd
from benchmarks.soak.exporter import is_expected
from benchmarks.soak.page import Expected, faults, read_page, strictly_parsed
from benchmarks.soak.records import Record, Scrape, Usage, Visit
from benchmarks.soak.verdict import judge, slope
from benchmarks.soak.weather import Mood, Spell, Weather
from tests.exporter.recorded import jolokia_table, pairs

from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.sources.jolokia import bulk_request
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.exporter.sources.source import NodeId

SPELL = Spell(mood=Mood.GOOD, begin=0, end=100, life=3, born=0)
PER_SECOND = 5.0


def table(dialect: Dialect, second: float, spell: Spell = SPELL) -> BeanTable:
    """Return the table that our own source reads from the answer at this second."""
    plan = AgentPlan(name="node-2", number=2, port=1, dialect=dialect, renewed=True)
    body = Agent(plan, PER_SECOND).answer(bulk_request(), spell, second)
    if dialect is Dialect.JOLOKIA:
        return jolokia_table(body)
    reading = TextReader().read(body)
    node_id = NodeId(None).of(reading.layout)
    return BeanTable(node_id=node_id, layout=reading.layout, values=reading.values)


def produced(page: BeanTable) -> dict[str, float]:
    return {
        column.bean.get("client-id") or "": value
        for column, value in pairs(page)
        if column.bean.get("type") == "Produce" and column.attribute == "byte-rate"
    }


@pytest.mark.parametrize("dialect", Dialect)
def test_answer_is_understood_and_adds_up(dialect: Dialect) -> None:
    """Our sources read every client of an answer, and the produced bytes add up to the checker's rate."""
    page = table(dialect, 60.0)
    rates = produced(page)
    reported = rates.pop("sum-of-others")
    assert page.node_id == str(2 * LIVES + 3)
    assert len(rates) == PER_SECOND * STAY_SECONDS
    assert sum(rates.values()) == pytest.approx(reported)
    assert any('"' in name or "\n" in name or "<" in name for name in rates)


def test_restarted_node_has_forgotten_its_clients() -> None:
    """A restarted node has only clients since its start, and counts from zero."""
    spell = Spell(mood=Mood.GOOD, begin=50, end=100, life=4, born=50)
    assert len(produced(table(Dialect.JOLOKIA, 52.0, spell))) == 2 * PER_SECOND + 1


def test_clients_come_and_go() -> None:
    """No client stays longer than its time, and none comes back."""
    crowd = Crowd("node-1", PER_SECOND)
    first, later = ({each.number for each in crowd.at(at, 0)} for at in (60, 101))
    assert len(first) == len(later) == PER_SECOND * STAY_SECONDS
    assert first.isdisjoint(later)


def test_half_of_the_clients_are_known_elsewhere() -> None:
    """Half of the clients are on several nodes under one identity, and the others are not."""
    names = [{each.client_id for each in Crowd(node, PER_SECOND).at(60, 0)} for node in ("node-1", "node-2")]
    assert len(names[0] & names[1]) == len(names[0]) / 2


def test_unknown_number_is_null() -> None:
    """A client that was not throttled has no throttle time, as in a broker."""
    values = [value for column, value in pairs(table(Dialect.JOLOKIA, 60.0)) if column.attribute == "throttle-time"]
    assert 0 < sum(map(isnan, values)) < len(values)


def test_every_trouble_comes() -> None:
    """Within an hour and eight nodes each mood has its turn, with good ones between any two."""
    weathers = [Weather(f"node-{number}") for number in range(8)]
    spells = [weather.at(at) for weather in weathers for at in range(0, 3_600, 5)]
    assert {spell.mood for spell in spells} == set(Mood)
    assert spells[0].mood is Mood.GOOD


def test_refusal_is_a_restart() -> None:
    """A node that refused connections restarts with a new life, which begins with its listener."""
    weather = Weather("node-1")
    spells = [weather.at(at) for at in range(3_600)]
    after = next(later for sooner, later in pairwise(spells) if sooner.mood is Mood.REFUSED and later.mood is Mood.GOOD)
    assert after.life == 1
    assert after.born == after.begin


SECONDS_OF_A_RUN = range(0, 40_000, 40)


def spells(weather: Weather) -> list[Spell]:
    """Return the spell of the weather at each second of eleven hours."""
    return [weather.at(second) for second in SECONDS_OF_A_RUN]


def test_threads_see_the_weather_of_the_server() -> None:
    """Threads that ask for the weather at the same time, in any order, get the same spells."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns as often as they can
    try:
        for number in range(5):
            name = f"node-{number}"
            late, shared = Weather(name), Weather(name)
            last = late.at(39_960)
            with ThreadPoolExecutor(4) as threads:
                seen = list(threads.map(spells, [shared] * 4))
            assert seen == [spells(late)] * 4
            assert last == seen[0][-1]
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"level": "info", "msg": "listening"}', True),
        ('{"level": "warning", "msg": "source is down", "error": "no"}', True),
        ('{"level": "warning", "msg": "no quotas", "advice": "set some"}', True),
        ('{"level": "error", "msg": "a request failed"}', False),
        ('{"level": "warning", "msg": "Unclosed client session"}', False),
        ('{"level": "info", "msg": "well", "exception": "Traceback"}', False),
        ("Traceback (most recent call last):", False),
        ("[]", False),
        ("", False),
    ],
)
def test_lines_that_are_expected(line: str, *, expected: bool) -> None:
    """Log lines may be news and warnings of real faults, and no errors, complaints of libraries or tracebacks."""
    assert is_expected(line) == expected


PAGE = """\
# TYPE kafka_quota_produce_bytes_per_second gauge
kafka_quota_produce_bytes_per_second{broker="1",client_id="a",cluster="soak",user="u"} 10.0
kafka_quota_produce_bytes_per_second{broker="1",client_id="__overflow__",cluster="soak",user="__overflow__"} 5.0
kafka_quota_produce_bytes_per_second{broker="1",client_id="sum-of-others",cluster="soak",user="checker"} 15.0
kafka_quota_fetch_bytes_per_second{broker="1",client_id="clock",cluster="soak",user="checker"} 100.0
quotascope_source_up{cluster="soak",source="node-1"} 1.0
quotascope_source_up{cluster="soak",source="node-2"} 0.0
quotascope_source_unplaced_series{cluster="soak",source="node-1"} 0.0
quotascope_limits_refresh_errors_total{cluster="soak"} 3
"""
EXPECTED = Expected(
    at=101.0,
    up={"node-1": True, "node-2": False},
    agents=frozenset({"node-1", "node-2"}),
    listed=frozenset({"node-1", "node-2"}),
    counters={'quotascope_limits_refresh_errors_total{cluster="soak"}': 3.0},
)


@pytest.mark.parametrize(
    ("old", "new", "expected", "found"),
    [
        pytest.param("", "", {}, [], id="what agrees with the agents is fine"),
        pytest.param(
            "} 5.0",
            "} 4.0",
            {},
            ["broker 1: produce rates add up to 14 and not to 15"],
            id="a client that is neither shown nor folded",
        ),
        pytest.param(
            "",
            "",
            {"at": 200.0},
            ["broker 1: numbers are 100 s old"],
            id="a page from a while ago, by the agent's own clock",
        ),
        pytest.param("", "", {"up": {"node-1": True, "node-2": True}}, ["node-2 is shown down"], id="wrong health"),
        pytest.param(
            "",
            "",
            {"listed": frozenset({"node-1"})},
            ["sources ['node-1', 'node-2'] and not ['node-1']"],
            id="a source that is not listed",
        ),
        pytest.param(
            '"clock"',
            '"o"',
            {},
            ["1 sources are read as a whole, but 1 sums and 0 clocks are shown"],
            id="a source without numbers",
        ),
        pytest.param(
            "} 3\n", "} 2\n", {},
            ['quotascope_limits_refresh_errors_total{cluster="soak"} fell from 3 to 2'], id="a falling counter"),
        pytest.param(
            'node-2"} 0.0',
            'node-3"} 0.0',
            {"up": {}, "listed": None},
            [],
            id="right after a change it is not certain what is shown",
        ),
    ]
)  # fmt: skip
def test_faults_of_a_page(old: str, new: str, expected: dict[str, Any], found: list[str]) -> None:
    """A page's wrong values are reported, and no others."""
    page = read_page(PAGE.replace(old, new) if old else PAGE)
    assert page.samples == 8
    assert list(faults(page, replace(EXPECTED, **expected))) == found


@pytest.mark.parametrize(
    ("up", "faults_of_it"),
    [
        pytest.param({}, [], id="just after a change"),
        pytest.param({"node-1": True}, ["node-1 is read in part"], id="for long"),
    ],
)
def test_source_that_is_read_in_part_may_lack_numbers(up: dict[str, bool], faults_of_it: list[str]) -> None:
    """The exporter says what it left out, which it may for as long as a node changes its answers."""
    page = read_page(
        PAGE.replace('"clock"', '"o"').replace(
            'series{cluster="soak",source="node-1"} 0', 'series{cluster="soak",source="node-1"} 2'
        )
    )
    assert list(faults(page, replace(EXPECTED, up=up))) == faults_of_it


def test_series_that_is_there_twice_is_refused() -> None:
    """Prometheus would drop such a page, and so does the strict reading."""
    assert strictly_parsed(PAGE) == 8
    with pytest.raises(ValueError, match="1 series are there twice"):
        strictly_parsed(PAGE + PAGE.splitlines()[1] + "\n")


SECONDS = 3_600


def usages(leak_mib_per_hour: float = 0.0, fds_per_hour: float = 0.0, errors: int = 0) -> list[Record]:
    """Return an hour of a process whose memory grew before and then wavers by some MiB."""
    return [
        Usage(
            at=offset,
            rss_mib=120 - 40 * max(0, 300 - offset) / 300 + offset // 10 % 7 + leak_mib_per_hour * offset / SECONDS,
            fds=30 + offset // 10 % 4 + int(fds_per_hour * offset / SECONDS),
            threads=8 + offset // 10 % 3,
            cpu_seconds=offset * 0.1,
            other_cpu_seconds=offset * 0.05,
            load=1.0,
            errors=errors if offset > SECONDS / 2 else 0,
        )
        for offset in range(0, SECONDS, 10)
    ]


SCRAPES = [Scrape(at=offset, scraper="first", seconds=0.1, size=1, samples=1) for offset in range(0, SECONDS, 10)]
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
        pytest.param(
            {},
            [Scrape(at=1, scraper="first", seconds=10, lost="TimeoutError")],
            "1 scrapes were lost, first TimeoutError",
            id="a scrape without an answer",
        ),
        pytest.param(
            {},
            [Scrape(at=1, scraper="first", seconds=1, faults=("broker 1: no",))],
            "1 scrapes showed something wrong, first broker 1: no",
            id="a wrong page",
        ),
        pytest.param(
            {},
            [Visit(at=1, path="/", seconds=1, problem="HTTP 500")],
            "1 other requests failed, first /: HTTP 500",
            id="a page for people that did not come",
        ),
    ]
)  # fmt: skip
def test_trouble_is_found(usage: dict[str, Any], more: list[Record], failure: str) -> None:
    """One case of a trouble is enough to fail the run, however the memory wavers."""
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
    """A run without readings has no verdict."""
    with pytest.raises(ValueError, match="too short"):
        judge(SCRAPES)


def test_slope_is_the_median_of_slopes() -> None:
    """The slope is the median of slopes, which one point far away does not change."""
    assert slope([(0, 0.0), (1, 1.0), (2, 2.0), (3, 100.0), (4, 4.0)]) == 1.0
    assert slope([(0, 5.0)]) == 0.0
