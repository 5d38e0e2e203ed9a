"""Every process and thread that asks for the weather gets the same."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from benchmarks.soak.weather import Spell, Weather

SECONDS = range(0, 40_000, 40)


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def spells(weather: Weather) -> list[Spell]:
    """Of eleven hours."""
    return [weather.at(second) for second in SECONDS]


@pytest.mark.usefixtures("hurried")
def test_threads_see_the_weather_of_the_server() -> None:
    """Two scrapers look at their pages at the same time, and no spell is drawn for each of them."""
    for number in range(5):
        name = f"node-{number}"
        shared = Weather(name)
        with ThreadPoolExecutor(4) as threads:
            seen = list(threads.map(spells, [shared] * 4))
        assert seen == [spells(Weather(name))] * 4
