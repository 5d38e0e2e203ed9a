"""Measurements of a node: invented, except for the beans that were recorded."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan
from typing import Final

from benchmarks.soak.crowd import Client

SUM: Final = "sum-of-others"
"""The client id whose produce rate is the sum of all others of the same answer."""
CLOCK: Final = "clock"
"""The client id whose fetch rate is the second of the answer."""
CHECKER: Final = "checker"
"""The user of both."""
ALWAYS_SHOWN_MS: Final = 1e9
"""A throttle so long that a cap on entities leaves its entity in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One quota entity of one kind."""

    kind: str
    """Produce, Fetch or Request."""
    user: str = CHECKER
    client_id: str
    usage: float
    throttle_ms: float = nan


def of_clients(clients: Iterator[Client], second: int) -> Iterator[Reading]:
    """Yield the readings of these clients until this second."""
    for client in clients:
        chance = (client.number * 2_654_435_761 + second * 40_503) % 1_000
        throttle = chance * 3.5 if chance > 950 else nan  # noqa: PLR2004 - one in twenty
        usage = chance * 137.25 if chance > 100 else 0.0  # noqa: PLR2004 - a tenth rests
        yield _reading("Produce", client, usage, throttle)
        if client.number % 3 == 0:
            yield _reading("Fetch", client, usage * 2, nan)
        if client.number % 5 == 0:
            yield _reading("Request", client, chance / 50, throttle)


def checked(readings: list[Reading], second: float) -> list[Reading]:
    """
    Return these readings and two more.

    By them a reader of the exposition sees whether any is missing, and how old it is.
    """
    produced = sum(reading.usage for reading in readings if reading.kind == "Produce")
    return [
        *readings,
        Reading(kind="Produce", client_id=SUM, usage=produced, throttle_ms=ALWAYS_SHOWN_MS),
        Reading(kind="Fetch", client_id=CLOCK, usage=second, throttle_ms=ALWAYS_SHOWN_MS),
    ]


def _reading(kind: str, client: Client, usage: float, throttle_ms: float) -> Reading:
    return Reading(kind=kind, user=client.user, client_id=client.client_id, usage=usage, throttle_ms=throttle_ms)
