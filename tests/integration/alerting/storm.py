"""Many clients that run into one default limit at the same time: what pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Final

from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Load, Traffic, in_background

USER: Final = "mallory"
CLIENTS: Final = 48
"""As many as have alerts of their own: more than 50 would have one together."""
LOW: Final[Rule] = ({"user": USER, "client-id": None}, {"producer_byte_rate": 5_000.0})
"""Each of them wants four times as much: about 2 s of delay for each record."""
HIGH: Final[Rule] = ({"user": USER, "client-id": None}, {"producer_byte_rate": 1e9})


@contextmanager
def storm(kafka: Cluster, quotas: Quotas) -> Iterator[None]:
    """All of them at work for the length of a `with` block, each with a client-id of its own."""
    topic = Traffic(kafka).topic()
    quotas.set(LOW)
    loads = (partial(_produce, topic, number) for number in range(CLIENTS))
    with in_background(*loads, of=kafka):
        yield


def _produce(topic: str, number: int, traffic: Traffic) -> Load:
    return traffic.produce(USER, f"storm-{number}", topic, inf, 8_000 + 100 * number, pause=0.5)
