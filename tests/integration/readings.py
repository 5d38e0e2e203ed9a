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
"""Attribute, family, and factor from Kafka's unit to the family's, by quota type."""

LIMITS: Final = {
    "produce": "kafka_quota_produce_limit_bytes_per_second",
    "fetch": "kafka_quota_fetch_limit_bytes_per_second",
    "request": "kafka_quota_request_limit_threads",
    "controller_mutation": "kafka_quota_controller_mutation_limit_per_second",
}
"""The family of limits by quota type."""

OWN_PEAK: Final = "kafka_quota_sold_ratio"
"""The family that two exporters need not agree about: each compares with the most that it saw itself."""

Value = float | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A number, where the page has it, and where the node keeps it."""

    family: str
    labels: Mapping[str, str]
    key: agent.Key
    converted: Callable[[Value], Value] = lambda value: value
    """Conversion of the value on the way."""

    def shown(self, page: Page) -> Value:
        return page.get(self.family, **self.labels)


def readings_of(quota_type: str, user: str, client_id: str) -> list[Reading]:
    """Return all readings by which an entity is compared."""
    attribute, family, divisor = USAGE[quota_type]
    labels = {"user": user, "client_id": client_id}
    place = (TYPES[quota_type], user, client_id)
    mutation = quota_type == "controller_mutation"
    readings = [
        Reading(family, labels, (*place, attribute), lambda value: None if value is None else value / divisor),
    ]
    throttle = Reading(
        "kafka_quota_throttle_time_seconds",
        {"quota_type": quota_type, **labels},
        (*place, "throttle-time"),
        lambda value: (value or 0.0) / 1000,
    )
    tokens = Reading("kafka_quota_controller_mutation_tokens", labels, (*place, "tokens"))
    # under KRaft no node measures the throttle time of mutations
    return [*readings, tokens if mutation else throttle]


def delay_queue_of(quota_type: str) -> Reading:
    """Return the reading of the number of muted connections."""
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
        read_before, exporter_page, read_after = agent.quota_numbers(url), page(), agent.quota_numbers(url)
        problems = []
        for reading in list(remaining):
            bounds = [reading.converted(numbers[reading.key]) for numbers in (read_before, read_after)]
            value = reading.shown(exporter_page)
            if between(value, *bounds):
                remaining.remove(reading)
            else:
                problems.append(f"{reading.family} {reading.labels}: {value} is not between {bounds}")
        assert not remaining, "\n".join(problems)

    eventually(compare, seconds=60)


def between(value: float | None, bound: float | None, other: float | None) -> bool:
    """Return whether a value lies between two others, or is equal to one of them; all three may be absent."""
    if value is None or bound is None or other is None:
        return value is bound is other
    low, high = min(bound, other), max(bound, other)
    near = isclose(value, low, rel_tol=1e-9) or isclose(value, high, rel_tol=1e-9)
    return near or low < value < high
