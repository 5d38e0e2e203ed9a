"""The helpers that load a real broker do what the tests built on them rely on."""

import pytest

from .quotas import Quotas
from .traffic import Traffic, together

pytestmark = pytest.mark.real


def test_producers_and_consumers_are_throttled(quotas: Quotas, traffic: Traffic) -> None:
    """A byte-rate quota throttles the user who has it, and no other client."""
    topic = traffic.topic(records=1000)
    slow = {"producer_byte_rate": 20_000.0, "consumer_byte_rate": 20_000.0}
    quotas.set(({"user": "alice"}, slow))
    produced, fetched, free = together(
        lambda: traffic.produce("alice", "my app/1=x,*?", topic, 3),
        lambda: traffic.fetch("alice", "reader", topic, 3),
        lambda: traffic.produce("carol", "writer", topic, 3),
    )
    assert produced.throttled
    assert fetched.throttled
    assert free.count > produced.count
    assert not free.throttled


def test_requests_are_throttled(quotas: Quotas, traffic: Traffic) -> None:
    """A request quota throttles a client that only asks small things."""
    quotas.set(({"user": "bob"}, {"request_percentage": 0.5}))
    assert traffic.request("bob", "asker", 2).throttled
    assert not traffic.request("carol", "asker", 1).throttled


def test_mutations_are_refused(quotas: Quotas, traffic: Traffic) -> None:
    """The request after the one that overdraws is refused when strict, and only asked to wait when not."""
    quotas.set(({"user": "carol"}, {"controller_mutation_rate": 1.0}))
    overdrawn = traffic.mutate("carol", "maker", 30)
    assert (overdrawn.error, overdrawn.throttle_ms) == (0, 0)
    refused = traffic.mutate("carol", "maker", 1)
    assert refused.error == 89
    assert refused.throttle_ms > 10_000
    delayed = traffic.mutate("carol", "maker", 1, strict=False)
    assert delayed.error == 0
    assert delayed.throttle_ms > 10_000
