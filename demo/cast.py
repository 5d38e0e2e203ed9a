"""The clients of the demo, the requests that they send, and the quotas that each of them is there to show."""

from dataclasses import dataclass
from random import Random
from typing import ClassVar, Final

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType


@dataclass(frozen=True, slots=True, kw_only=True)
class Produce:
    """Write data."""

    api: ClassVar = "Produce"
    size: int
    """Header and body in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Read data."""

    api: ClassVar = "Fetch"
    size: int
    """Bytes that wait to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopics:
    """Create topics."""

    api: ClassVar = "CreateTopics"
    partitions: tuple[int, ...]
    """Partitions of each topic."""
    version: int = 7
    """
    Version of the request. From 6 on a topic over the quota is refused; before, it is created and the client muted
    afterwards (KIP-599).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Any request that takes the broker's time and moves no data, here commits of offsets."""

    api: ClassVar = "OffsetCommit"


Request = Produce | Fetch | CreateTopics | Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to a request."""

    throttle_ms: int = 0
    """Time in ms for which the client has to stay silent (`throttle_time_ms`)."""
    again: Request | None = None
    """Request for the refused part: data held back, topics refused with error 89."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """A steady pace, if wished with pauses. All times in ms."""

    every_ms: int
    """Mean time between two requests."""
    jitter: float = 0.1
    """Variation of that time, as a part of it."""
    busy_ms: int = 0
    """Length of a burst; 0 for no pauses."""
    pause_ms: int = 0
    """Silence after a burst."""
    first_ms: int = 0
    """Time of the first request after the start."""

    def next_ms(self, elapsed_ms: int, random: Random) -> int:
        """Return when the request after the one at `elapsed_ms` is due, both since the start."""
        spread = self.jitter * self.every_ms
        due_ms = elapsed_ms + round(random.uniform(self.every_ms - spread, self.every_ms + spread))
        cycle_ms = self.busy_ms + self.pause_ms
        if not self.busy_ms:
            return due_ms
        into_cycle_ms = (due_ms - self.first_ms) % cycle_ms
        if into_cycle_ms < self.busy_ms:
            return due_ms
        return due_ms + cycle_ms - into_cycle_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One client: who it is and what it does over and over."""

    user: str
    """Name of the principal."""
    client_id: str
    """The client-id it sends."""
    request: Request
    """Request that it sends each time."""
    thread_ms: float
    """Time that one request keeps a thread of the broker busy."""
    rhythm: Rhythm
    connections: int = 1
    """Number of its connections, each with one request at a time."""


NIGHTLY: Final = Role(
    user="etl",
    client_id="spark-nightly",
    request=Produce(size=600_000),
    thread_ms=6.0,
    rhythm=Rhythm(every_ms=100, busy_ms=14_000, pause_ms=6_000),
)
"""Bursts at three times its limit, then rests."""

BACKFILL: Final = Role(
    user="etl",
    client_id="spark-backfill",
    request=Produce(size=250_000),
    thread_ms=5.0,
    rhythm=Rhythm(every_ms=240, first_ms=300),
)
"""The same user under the rule for all its other clients, a little over the limit."""

ORDERS: Final = Role(
    user="orders",
    client_id="orders-api",
    request=Produce(size=46_000),
    thread_ms=3.0,
    rhythm=Rhythm(every_ms=50, first_ms=50),
)
"""Well behaved: just below its limit, never throttled."""

BILLING: Final = Role(
    user="CN=billing,O=Acme",
    client_id='invoice writer #2 "A/B"*',
    request=Produce(size=150_000),
    thread_ms=4.0,
    rhythm=Rhythm(every_ms=200, first_ms=120),
)
"""Client without a rule of its own, so under the default; its names need Kafka's encodings."""

ALICE: Final = Role(
    user="alice",
    client_id="dashboard",
    request=Fetch(size=300_000),
    thread_ms=4.0,
    rhythm=Rhythm(every_ms=400, first_ms=80),
)
"""Shares one quota with all clients that have the client-id `dashboard`."""

BOB: Final = Role(
    user="bob",
    client_id="dashboard",
    request=Fetch(size=300_000),
    thread_ms=4.0,
    rhythm=Rhythm(every_ms=400, first_ms=280),
)
"""Alone within the limit, together with alice over it."""

DANA: Final = Role(
    user="dana",
    client_id="notebook",
    request=Fetch(size=500_000),
    thread_ms=5.0,
    rhythm=Rhythm(every_ms=1_000, first_ms=500),
)
"""Reads twice what a notebook may."""

MIRROR: Final = Role(
    user="mirror",
    client_id="mirror-maker",
    request=Fetch(size=400_000),
    thread_ms=8.0,
    rhythm=Rhythm(every_ms=100, first_ms=30),
)
"""The busiest reader, and no rule limits what it reads."""

CART: Final = Role(
    user="checkout", client_id="cart-svc", request=Call(), thread_ms=9.0, rhythm=Rhythm(every_ms=25, first_ms=10)
)
"""Many small requests: no bytes to speak of, but a third of a thread."""

DEPLOY: Final = Role(
    user="deploy",
    client_id="terraform",
    request=CreateTopics(partitions=(3, 3, 3, 3, 3, 3, 3, 3)),
    thread_ms=20.0,
    rhythm=Rhythm(every_ms=12_000, first_ms=1_000),
)
"""Creates more topics at once than its bucket holds; the rest is refused with error 89 and tried again."""

CONNECT: Final = Role(
    user="connect",
    client_id="connect-cluster",
    request=CreateTopics(partitions=(3,), version=5),
    thread_ms=10.0,
    rhythm=Rhythm(every_ms=2_000, first_ms=700),
)
"""An old client that creates a topic now and then, within the default for clients."""

_MINUTE_MS: Final = 60_000
EVENING_MS: Final = 30 * _MINUTE_MS
"""
The evening repeats: quiet, from minute 2 the sale, from minute 9 the tests, from minute 17 all is quiet again.

Alerts wait for five or ten minutes, and stay for ten: in a shorter evening none of them would end.
"""

SALE: Final = tuple(
    Role(
        user=user,
        client_id="till",
        request=Produce(size=100_000),
        thread_ms=2.0,
        rhythm=Rhythm(
            every_ms=200, busy_ms=7 * _MINUTE_MS, pause_ms=EVENING_MS - 7 * _MINUTE_MS, first_ms=2 * _MINUTE_MS
        ),
        connections=12,
    )
    for user in (
        "cellar",
        "gifts",
        "mail",
        "prices",
        "reviews",
        "search",
        "stock",
        "tracking",
    )
)
"""Eight services that write twelve times what the default allows: the spike. About 90 connections only wait."""

TESTS: Final = Role(
    user="ci",
    client_id="topic-tests",
    request=CreateTopics(partitions=(3,) * 10),
    thread_ms=20.0,
    rhythm=Rhythm(every_ms=500, busy_ms=8 * _MINUTE_MS, pause_ms=EVENING_MS - 8 * _MINUTE_MS, first_ms=9 * _MINUTE_MS),
    connections=4,
)
"""Tests that create topics as if there were no quota: refusals thirty times as many as usual."""

CAST: Final = (
    NIGHTLY,
    BACKFILL,
    ORDERS,
    BILLING,
    ALICE,
    BOB,
    DANA,
    MIRROR,
    CART,
    DEPLOY,
    CONNECT,
    *SALE,
    TESTS,
)


RULES: Final[dict[QuotaType, dict[QuotaEntity, float]]] = {
    QuotaType.PRODUCE: {
        QuotaEntity("etl", "spark-nightly"): 2_000_000.0,
        QuotaEntity("etl", DEFAULT): 800_000.0,
        QuotaEntity("orders", None): 1_000_000.0,
        QuotaEntity(DEFAULT, None): 500_000.0,
    },
    QuotaType.FETCH: {
        QuotaEntity(DEFAULT, "notebook"): 250_000.0,
        QuotaEntity(None, "dashboard"): 1_000_000.0,
    },
    QuotaType.REQUEST: {
        QuotaEntity(DEFAULT, DEFAULT): 20.0,
    },
    QuotaType.CONTROLLER_MUTATION: {
        QuotaEntity("deploy", None): 1.0,
        QuotaEntity(None, DEFAULT): 2.0,
    },
}
"""Bounds in Kafka's units: bytes/s, bytes/s, percent of one thread, partitions/s."""
