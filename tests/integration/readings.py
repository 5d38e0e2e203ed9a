"""Compares what is exported with what the node itself says, while it changes."""

from collections.abc import Callable, Iterable
from math import isclose
from typing import Final

from . import agent
from .eventually import eventually
from .page import Page

TYPES: Final = {
    "produce": "Produce",
    "fetch": "Fetch",
    "request": "Request",
    "controller_mutation": "ControllerMutation",
}
"""Kafka's group by quota type."""

USAGE: Final = {
    "produce": ("byte-rate", "kafka_quota_produce_bytes_per_second", 1),
    "fetch": ("byte-rate", "kafka_quota_fetch_bytes_per_second", 1),
    "request": ("request-time", "kafka_quota_request_threads", 100),
    "controller_mutation": (
        "mutation-rate",
        "kafka_quota_controller_mutations_per_second",
        1,
    ),
}
"""By quota type: the attribute, the family, and how much of Kafka's unit is one of the family's."""

LIMITS: Final = {
    "produce": "kafka_quota_produce_limit_bytes_per_second",
    "fetch": "kafka_quota_fetch_limit_bytes_per_second",
    "request": "kafka_quota_request_limit_threads",
    "controller_mutation": "kafka_quota_controller_mutation_limit_per_second",
}
"""The family of limits by quota type."""

Value = float | None
Reading = tuple[str, agent.Key, Callable[[Page], Value], Callable[[Value], Value]]
"""What it is called, where the node keeps it, where the page has it, and what becomes of it on the way."""


def readings_of(quota_type: str, user: str, client_id: str) -> list[Reading]:
    """Everything that an entity is to be compared by."""
    attribute, family, divisor = USAGE[quota_type]
    labels = {"user": user, "client_id": client_id}
    place = (TYPES[quota_type], user, client_id)
    readings: list[Reading] = [
        (
            f"{family} {labels}",
            (*place, attribute),
            lambda page: page.get(family, **labels),
            lambda value: None if value is None else value / divisor,
        ),
        (
            f"throttle time {quota_type} {labels}",
            (*place, "throttle-time"),
            lambda page: page.get("kafka_quota_throttle_time_seconds", quota_type=quota_type, **labels),
            lambda value: None if value is None and quota_type == "controller_mutation" else (value or 0.0) / 1000,
        ),
    ]
    if quota_type == "controller_mutation":
        readings.append(
            (
                f"tokens {labels}",
                (*place, "tokens"),
                lambda page: page.get("kafka_quota_controller_mutation_tokens", **labels),
                lambda value: value,
            )
        )
    return readings


def delay_queue_of(quota_type: str) -> Reading:
    """How many connections are muted."""
    labels = {"quota_type": quota_type, "broker": "1"}
    return (
        f"delay queue {quota_type}",
        (TYPES[quota_type], "", "", "queue-size"),
        lambda page: page.get("kafka_quota_delay_queue_size", **labels),
        lambda value: value,
    )


def agree(url: str, page: Callable[[], Page], readings: Iterable[Reading]) -> None:
    """
    Assert that the page shows what the node says.

    A number that changes all the time agrees when it lies between two direct reads, one before and one after the
    page; one that does not change must be equal. Each gets several attempts, because a rate may go up and
    down between two reads.
    """
    remaining = list(readings)

    def compare() -> None:
        before = agent.quota_numbers(url)
        seen = page()
        after = agent.quota_numbers(url)
        for reading in list(remaining):
            name, key, shown, converted = reading
            bounds = converted(before[key]), converted(after[key])
            if between(shown(seen), *bounds):
                remaining.remove(reading)
            else:
                problems[name] = f"{shown(seen)} is not between {bounds}"
        names = [name for name, *_ in remaining]
        assert not names, "\n".join(f"{name}: {problems[name]}" for name in names)

    problems: dict[str, str] = {}
    eventually(compare, seconds=60)


def between(value: float | None, one: float | None, other: float | None) -> bool:
    """Whether a value lies between two others, or is equal to one of them; all three may be absent."""
    if value is None or one is None or other is None:
        return value is one is other
    low, high = min(one, other), max(one, other)
    near = isclose(value, low, rel_tol=1e-9) or isclose(value, high, rel_tol=1e-9)
    return near or low < value < high
