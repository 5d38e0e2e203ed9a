from __future__ import annotations

import pytest
from tests.exporter.examples import usage

from quotascope.exporter.exposition.places import Run, Scattered, places_of

USAGES = [usage(user=name) for name in "abcdef"]


@pytest.mark.parametrize("numbers", [[1, 2, 3], [], [5]])
def test_numbers_one_after_the_other_are_a_run(numbers: list[int]) -> None:
    """As are those of a single node."""
    places = places_of(numbers)
    assert isinstance(places, Run)
    assert list(range(places.start, places.stop)) == numbers


@pytest.mark.parametrize("numbers", [[1, 3, 2], [0, 2], [2, 1]])
def test_other_numbers_are_scattered(numbers: list[int]) -> None:
    """The rows are in their sequence."""
    places = places_of(numbers)
    assert isinstance(places, Scattered)
    assert places.pick(USAGES) == [USAGES[number] for number in numbers]


def test_a_run_and_scattered_places_say_the_same() -> None:
    """Whichever way the same places are told."""
    run, scattered = Run(2, 5), Scattered([2, 3, 4])
    assert len(run) == len(scattered) == 3
    assert run.pick(USAGES) == scattered.pick(USAGES) == USAGES[2:5]
    assert run.rows([1, 2, 4, 5]) == scattered.rows([1, 2, 4, 5]) == [0, 2]
    moved = [0, 1, 3, 4, 5]
    assert list(run.moved(moved)) == list(scattered.moved(moved)) == [3, 4, 5]


def test_rows_of_scattered_places_are_told_in_their_sequence() -> None:
    """The places that are asked for ascend, their rows need not."""
    assert Scattered([4, 0, 2]).rows([0, 1, 4]) == [0, 1]
