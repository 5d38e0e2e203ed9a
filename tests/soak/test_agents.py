"""The agents of the soak answer as real ones did."""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import isnan

import pytest
from benchmarks.soak.agents import LIVES, Agent, AgentPlan
from benchmarks.soak.answers import Dialect
from benchmarks.soak.crowd import STAY_SECONDS, Crowd
from benchmarks.soak.weather import Mood, Spell, Weather
from tests.exporter.recorded import jolokia_table, pairs

from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.sources.jolokia import bulk_request
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.exporter.sources.source import NodeId

SPELL = Spell(mood=Mood.GOOD, begin=0, end=100, life=3, born=0)
PER_SECOND = 5.0


def table(dialect: Dialect, second: float, spell: Spell = SPELL) -> BeanTable:
    """What our own source makes of the answer at this second."""
    plan = AgentPlan(name="node-2", number=2, port=1, dialect=dialect, renewed=True)
    body = Agent(plan, PER_SECOND).answer(bulk_request(), spell, second)
    if dialect is Dialect.JOLOKIA:
        return jolokia_table(body)
    reading = TextReader().read(body)
    node_id = NodeId(None).of(reading.layout)
    return BeanTable(node_id=node_id, layout=reading.layout, values=reading.values)


def produced(found: BeanTable) -> dict[str, float]:
    """The produce rates by client id."""
    return {
        column.bean.get("client-id") or "": value
        for column, value in pairs(found)
        if column.bean.get("type") == "Produce" and column.attribute == "byte-rate"
    }


@pytest.mark.parametrize("dialect", Dialect)
def test_answer_is_understood_and_adds_up(dialect: Dialect) -> None:
    """Our sources read every client from it, hostile names included, and what the others produce is the checker's rate."""
    found = table(dialect, 60.0)
    rates = produced(found)
    reported = rates.pop("sum-of-others")
    assert found.node_id == str(2 * LIVES + 3)
    assert len(rates) == PER_SECOND * STAY_SECONDS
    assert sum(rates.values()) == pytest.approx(reported)
    assert any('"' in name or "\n" in name or "<" in name for name in rates)


def test_restarted_node_has_forgotten_its_clients() -> None:
    """Clients are those since the start, and counts begin again at zero."""
    spell = Spell(mood=Mood.GOOD, begin=50, end=100, life=4, born=50)
    assert len(produced(table(Dialect.JOLOKIA, 52.0, spell))) == 2 * PER_SECOND + 1


def test_clients_come_and_go() -> None:
    """No one stays for longer than the time given, and no one comes back."""
    crowd = Crowd("node-1", PER_SECOND)
    first, later = ({each.number for each in crowd.at(at, 0)} for at in (60, 101))
    assert len(first) == len(later) == PER_SECOND * STAY_SECONDS
    assert first.isdisjoint(later)


def test_half_of_the_clients_are_known_elsewhere() -> None:
    """A client of several nodes is one identity; the others are not."""
    names = [{each.client_id for each in Crowd(node, PER_SECOND).at(60, 0)} for node in ("node-1", "node-2")]
    assert len(names[0] & names[1]) == len(names[0]) / 2


def test_unknown_number_is_null() -> None:
    """A client that was not throttled has no throttle time, as in a broker."""
    values = [value for column, value in pairs(table(Dialect.JOLOKIA, 60.0)) if column.attribute == "throttle-time"]
    assert 0 < sum(map(isnan, values)) < len(values)


def test_every_trouble_comes() -> None:
    """Within an hour and eight nodes each mood has its turn, good ones between any two."""
    weathers = [Weather(f"node-{number}") for number in range(8)]
    spells = [weather.at(at) for weather in weathers for at in range(0, 3_600, 5)]
    assert {spell.mood for spell in spells} == set(Mood)
    assert spells[0].mood is Mood.GOOD


def test_refusal_is_a_restart() -> None:
    """After no one listened there is another life, which began when there was a listener again."""
    weather = Weather("node-1")
    spells = [weather.at(at) for at in range(3_600)]
    after = next(later for sooner, later in pairwise(spells) if sooner.mood is Mood.REFUSED and later.mood is Mood.GOOD)
    assert after.life == 1
    assert after.born == after.begin


SECONDS_OF_A_RUN = range(0, 40_000, 40)


def spells(weather: Weather) -> list[Spell]:
    """Of eleven hours."""
    return [weather.at(second) for second in SECONDS_OF_A_RUN]


def test_threads_see_the_weather_of_the_server() -> None:
    """Two scrapers look at their pages at the same time, in any order, and no spell is drawn for each of them."""
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
