"""Compares what is exported with what the node itself says, while it changes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
    "controller_mutation": ("mutation-rate", "kafka_quota_controller_mutations_per_second", 1),
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


@dataclass(frozen=True, slots=True)
class Reading:
    """A number, where the page has it, and where the node keeps it."""

    family: str
    labels: Mapping[str, str]
    key: agent.Key
    converted: Callable[[Value], Value] = lambda value: value
    """What becomes of it on the way."""

    def shown(self, page: Page) -> Value:
        return page.get(self.family, **self.labels)


def readings_of(quota_type: str, user: str, client_id: str) -> list[Reading]:
    """Everything that an entity is to be compared by."""
    attribute, family, divisor = USAGE[quota_type]
    labels = {"user": user, "client_id": client_id}
    place = (TYPES[quota_type], user, client_id)
    mutation = quota_type == "controller_mutation"

    def seconds(value: Value) -> Value:
        return None if value is None and mutation else (value or 0.0) / 1000

    readings = [
        Reading(family, labels, (*place, attribute), lambda value: None if value is None else value / divisor),
        Reading(
            "kafka_quota_throttle_time_seconds",
            {"quota_type": quota_type, **labels},
            (*place, "throttle-time"),
            seconds,
        ),
    ]
    tokens = Reading("kafka_quota_controller_mutation_tokens", labels, (*place, "tokens"))
    return [*readings, tokens] if mutation else readings


def delay_queue_of(quota_type: str) -> Reading:
    """How many connections are muted."""
    labels = {"quota_type": quota_type, "broker": "1"}
    return Reading("kafka_quota_delay_queue_size", labels, (TYPES[quota_type], "", "", "queue-size"))


def agree(url: str, page: Callable[[], Page], readings: Iterable[Reading]) -> None:
    """
    Assert that the page shows what the node says.

    A number that changes all the time agrees when it lies between two direct reads, one before and one after the
    page; one that does not change must be equal. Each gets several attempts, because a rate may go up and
    down between two reads.
    """
    remaining = list(readings)

    def compare() -> None:
        before, seen, after = agent.quota_numbers(url), page(), agent.quota_numbers(url)
        problems = []
        for reading in list(remaining):
            bounds = [reading.converted(read[reading.key]) for read in (before, after)]
            shown = reading.shown(seen)
            if between(shown, *bounds):
                remaining.remove(reading)
            else:
                problems.append(f"{reading.family} {reading.labels}: {shown} is not between {bounds}")
        assert not remaining, "\n".join(problems)

    eventually(compare, seconds=60)


def between(value: float | None, one: float | None, other: float | None) -> bool:
    """Whether a value lies between two others, or is equal to one of them; all three may be absent."""
    if value is None or one is None or other is None:
        return value is one is other
    low, high = min(one, other), max(one, other)
    near = isclose(value, low, rel_tol=1e-9) or isclose(value, high, rel_tol=1e-9)
    return near or low < value < high
