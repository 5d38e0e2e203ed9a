"""Waiting until two sources of one broker agree."""

import asyncio
from collections.abc import Callable
from typing import Final

from tests.exporter.recorded import numbers
from tests.integration.readings import between

from quotascope.exporter.mapping import Bean
from quotascope.exporter.sources.source import Source

Numbers = dict[tuple[Bean, str], float]

ATTEMPTS: Final = 100

TYPES: Final = {"Produce", "Fetch", "Request", "ControllerMutation"}


def entities(all_numbers: Numbers) -> Numbers:
    """Return the numbers of entities of client quotas."""
    return {
        key: value for key, value in all_numbers.items() if key[0].get("type") in TYPES and len(key[0].properties) > 1
    }


def load(all_numbers: Numbers) -> Numbers:
    """
    Return the numbers that the agents' own requests move only upwards, or not at all.

    Idle handlers, and percentiles of produce requests.
    """
    return {
        (bean, attribute): value
        for (bean, attribute), value in all_numbers.items()
        if bean.get("type") == "KafkaRequestHandlerPool"
        or (bean.get("name"), bean.get("request")) == ("RequestQueueTimeMs", "Produce")
    }


def or_zero(value: float | None) -> float | None:
    """Return a number, with 0 for NaN, which equals nothing."""
    return 0.0 if value is not None and value != value else value  # noqa: PLR0124


async def settle(
    jolokia: Source,
    other_source: Source,
    concerns: Callable[[Bean], bool],
    selected: Callable[[Numbers], Numbers] = entities,
) -> None:
    """Compare each number of a source with Jolokia's before and after it, until each has fitted once."""
    remaining: set[tuple[Bean, str]] | None = None
    for _ in range(ATTEMPTS):
        numbers_before, seen, numbers_after = [
            selected(numbers(await source.read())) for source in (jolokia, other_source, jolokia)
        ]
        expected = {key for key in numbers_before if concerns(key[0])}
        if selected is load:  # test_dialects.py has what each dialect lacks
            expected &= seen.keys()
        if numbers_before.keys() == numbers_after.keys():
            assert seen.keys() == expected
            assert expected
            remaining = {
                key
                for key in (expected if remaining is None else remaining)
                if not between(*map(or_zero, (seen[key], numbers_before[key], numbers_after[key])))
            }
            if not remaining:
                return
        await asyncio.sleep(0.1)
    raise AssertionError(remaining)


def anything(_: Bean) -> bool:
    return True
