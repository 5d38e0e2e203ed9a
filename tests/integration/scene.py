"""The scene of most tests: rules of every level, and who is to be seen under them."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from tests.cluster.quotas import Rule
from tests.cluster.traffic import ANONYMOUS, Load, Traffic

HOSTILE: Final = "my app/1=x,*?"
"""A client id that JMX has to quote."""
TEAM: Final = "svc:team a"
"""A user whose name Kafka percent-encodes."""
DEFAULT: Final = "<default>"

RULES: Final[tuple[Rule, ...]] = (
    ({"user": "alice", "client-id": "scene-app"}, {"producer_byte_rate": 40_000.0}),
    ({"user": "alice", "client-id": None}, {"producer_byte_rate": 50_000.0}),
    ({"user": "bob"}, {"producer_byte_rate": 60_000.0, "controller_mutation_rate": 2.0}),
    ({"user": None, "client-id": HOSTILE}, {"producer_byte_rate": 70_000.0}),
    ({"user": None, "client-id": None}, {"producer_byte_rate": 80_000.0}),
    ({"user": "carol"}, {"consumer_byte_rate": 90_000.0}),
    ({"user": None}, {"consumer_byte_rate": 100_000.0}),
    ({"client-id": "scene-spam"}, {"request_percentage": 0.5}),
    ({"client-id": None}, {"request_percentage": 150.0}),
)
"""
All eight levels at once, over the four quota types: a stronger default would hide the weaker levels of its own type.
"""


@dataclass(frozen=True, slots=True)
class Expected:
    """An entity that the load makes appear, the rule that decides for it, and its limit."""

    quota_type: str
    user: str
    client_id: str
    level: str
    rule: tuple[str, str]
    """rule_user and rule_client_id."""
    limit: float
    """Limit in the unit of the limit's family."""
    throttled: bool = True

    def __str__(self) -> str:
        return f"{self.quota_type}-{self.level}"


EXPECTED: Final = (
    Expected("produce", "alice", "scene-app", "user_client", ("alice", "scene-app"), 40_000),
    Expected("produce", "alice", "scene-other", "user_default_client", ("alice", DEFAULT), 50_000),
    Expected("produce", "bob", "", "user", ("bob", ""), 60_000),
    Expected("produce", TEAM, HOSTILE, "default_user_client", (DEFAULT, HOSTILE), 70_000),
    Expected(
        "produce", ANONYMOUS, "scene-quiet", "default_user_default_client", (DEFAULT, DEFAULT), 80_000, throttled=False
    ),
    Expected("fetch", "carol", "", "user", ("carol", ""), 90_000),
    Expected("fetch", TEAM, "", "default_user", (DEFAULT, ""), 100_000),
    Expected("request", "", "scene-spam", "client", ("", "scene-spam"), 0.005),
    Expected("request", "", "scene-quiet", "default_client", ("", DEFAULT), 1.5, throttled=False),
    # the wait of forwarded requests shows in group Request
    Expected("controller_mutation", "bob", "", "user", ("bob", ""), 2, throttled=False),
)


def load(topic: str) -> tuple[Callable[[Traffic], Load], ...]:
    """Return the clients that make every entity of `EXPECTED` appear; for `in_background`."""
    return (
        lambda t: t.produce("alice", "scene-app", topic, inf),
        lambda t: t.produce("alice", "scene-other", topic, inf),
        lambda t: t.produce("bob", "scene-bulk", topic, inf),
        lambda t: t.produce(TEAM, HOSTILE, topic, inf),
        lambda t: t.produce(ANONYMOUS, "scene-quiet", topic, inf, pause=0.2),
        lambda t: t.fetch("carol", "scene-reader", topic, inf),
        lambda t: t.fetch(TEAM, "scene-reader", topic, inf),
        lambda t: t.request("alice", "scene-spam", inf),
        lambda t: t.overdraw("bob", "scene-admin", 30, inf),
    )
