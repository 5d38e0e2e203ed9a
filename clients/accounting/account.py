"""Counters of throttle times, safe to use from any thread and in bounded space."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

_RECENT_SECONDS = 60.0

Side = Literal["read", "write", "admin"]
"""Side of a client: a consumer reads, a producer writes."""
_SIDES = get_args(Side)

OVERFLOW = "__overflow__"
"""User and client-id that stand for all clients beyond the cap, which are counted together."""


class Client(NamedTuple):
    """Identity of a client: its user, client-id and side."""

    user: str
    """The configured principal, empty where none is known."""
    client_id: str
    side: Side


class ClientTotals(NamedTuple):
    """The counts of one client; times are whole ms, as in Kafka's protocol, so that sums are exact."""

    client: Client
    throttled_ms: int = 0
    """Sum of all throttle times."""
    responses: int = 0
    """Responses with a throttle time."""
    longest_ms: int = 0
    """The longest ever."""
    recent_longest_ms: int = 0
    """The longest of the last minute, or of up to two: no reader that comes once a minute misses one."""
    quota_retries: int = 0
    """Admin calls repeated after error 89."""

    def plus(self, other: ClientTotals) -> ClientTotals:
        """Return the sums of both clients' counts, under the name of this client."""
        return ClientTotals(
            self.client,
            self.throttled_ms + other.throttled_ms,
            self.responses + other.responses,
            max(self.longest_ms, other.longest_ms),
            max(self.recent_longest_ms, other.recent_longest_ms),
            self.quota_retries + other.quota_retries,
        )


class RecentLongest:
    """
    The largest value of the last `span` seconds, or of up to twice as long, in constant space.

    It is the same for all who ask, and however often they do. Times are seconds of one clock.
    """

    __slots__ = ("_began", "_current", "_previous", "_span")

    def __init__(self, span: float, now: float) -> None:
        self._span = span
        self._began = now
        self._previous = 0
        self._current = 0

    def record(self, value: int, now: float) -> None:
        """Record a value that is not negative."""
        self._turn(now)
        self._current = max(self._current, value)

    def value(self, now: float) -> int:
        """Return the largest value; 0 when there was none."""
        self._turn(now)
        return max(self._previous, self._current)

    def _turn(self, now: float) -> None:
        passed = int((now - self._began) // self._span)
        if passed > 0:
            self._previous = self._current if passed == 1 else 0
            self._current = 0
            self._began += passed * self._span


class ClientAccount:
    """Counts of one client, returned by `ThrottleAccount.client`; all methods may be called from any thread."""

    __slots__ = ("_clock", "_lock", "_recent", "_totals")

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._totals = ClientTotals(client)
        self._recent = RecentLongest(_RECENT_SECONDS, clock())

    def throttled(self, throttle_ms: int) -> None:
        """Count the throttle time of a response; one of 0 is no throttle, and is not counted."""
        if throttle_ms > 0:
            self.add(ClientTotals(self._totals.client, throttle_ms, 1, throttle_ms))

    def retried(self) -> None:
        """Count an admin call that is repeated because a quota refused it (error 89)."""
        self.add(ClientTotals(self._totals.client, quota_retries=1))

    def add(self, totals: ClientTotals) -> None:
        """Add the totals of any client, counted elsewhere."""
        with self._lock:
            self._totals = self._totals.plus(totals)
            self._recent.record(totals.longest_ms, self._clock())

    @property
    def totals(self) -> ClientTotals:
        """The counts so far."""
        with self._lock:
            recent = self._recent.value(self._clock())
            return self._totals._replace(recent_longest_ms=recent)


class ThrottleAccount:
    """
    The counts of all clients of a program.

    Args:
        most_clients: how many are counted one by one; those that come later are counted together, by side, as
            `OVERFLOW`.
        clock: seconds that do not go back.

    """

    def __init__(self, most_clients: int = 1_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_clients = most_clients
        self._clock = clock
        self._lock = threading.Lock()
        self._clients: dict[Client, ClientAccount] = {}

    def client(self, user: str, client_id: str, side: Side) -> ClientAccount:
        """
        Return the counts of one client; its series are shown from this call on, at first as zeros.

        Clients with the same user, client-id and side are counted as one, as a quota does. Raises `ValueError` for
        another side than read, write and admin.
        """
        if side not in _SIDES:
            raise ValueError(f"side is one of {', '.join(_SIDES)}, not {side!r}")
        with self._lock:
            return self._known(Client(user, client_id, side))

    def add(self, totals: ClientTotals) -> None:
        """Add counts made elsewhere, such as in a task."""
        self.client(*totals.client).add(totals)

    def totals(self) -> tuple[ClientTotals, ...]:
        """Return the counts of each client so far, sorted by user, client-id and side."""
        with self._lock:
            clients = [self._clients[client] for client in sorted(self._clients)]
        return tuple(account.totals for account in clients)

    def _known(self, client: Client) -> ClientAccount:
        account = self._clients.get(client)
        if account is None and len(self._clients) >= self._most_clients:
            client = Client(OVERFLOW, OVERFLOW, client.side)
            account = self._clients.get(client)
        if account is None:
            account = self._clients[client] = ClientAccount(client, self._clock)
        return account
