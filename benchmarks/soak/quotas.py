"""The quotas of real Kafka during a run; all of them distinguish users and client-ids, as the agents' beans do."""

from typing import Final

from benchmarks.soak.crowd import USERS
from tests.cluster.quotas import Rule

LASTING: Final[tuple[Rule, ...]] = (
    (
        {"user": None, "client-id": None},
        {
            "producer_byte_rate": 1.2e5,
            "consumer_byte_rate": 2e5,
            "request_percentage": 20.0,
        },
    ),
    ({"user": "team 3", "client-id": None}, {"request_percentage": 15.0}),
)
"""Rules that most entities are under, from before the exporter starts."""


def client_rule(number: int) -> Rule:
    """Return a rule for one client that all nodes know, if it is there."""
    entity = {"user": f"team {number % USERS}", "client-id": f"all-{number:07d}"}
    return entity, {"producer_byte_rate": 1e4 + number}
