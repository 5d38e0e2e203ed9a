"""Who works on the demo's cluster: names, habits, and what each of them is there to show."""

from dataclasses import dataclass
from typing import Final

from .request import Call, CreateTopics, Fetch, Produce, Request
from .rhythm import Rhythm


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One client: who it is and what it does over and over."""

    user: str
    """Name of the principal."""
    client_id: str
    """The client-id it sends."""
    request: Request
    """What it asks for each time."""
    thread_ms: float
    """Time that one request keeps a thread of the broker busy."""
    rhythm: Rhythm


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
    request=Produce(size=45_000),
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
"""Without a rule of its own, so under the default; its names need Kafka's encodings."""

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
    user="checkout",
    client_id="cart-svc",
    request=Call(),
    thread_ms=9.0,
    rhythm=Rhythm(every_ms=25, first_ms=10),
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
)
