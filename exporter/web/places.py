"""Places for requests that are answered at once, and bytes for their answers: no client takes all of either."""

from __future__ import annotations

import ipaddress
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_SHARE: Final = 4
"""Largest share of the places that one client may have."""
_LEAST_OF_ONE: Final = 2
KNOWN_SECONDS: Final = 900.0
"""Time that a client is known after an answer that it took."""
_MOST_COUNTED: Final = 1_000
"""Most answers that are counted for a client: enough to tell a regular scraper from a passing client."""
MOST_HELD_BYTES: Final = 96 << 20
_LEAST_HELD: Final = 2
"""Answers that never give way, whatever their length."""
_IPV6_PREFIX: Final = 64
"""Length of a network of IPv6 that counts as one client: a provider's customer can choose the other bits."""


class Refusal(StrEnum):
    """Reasons why a request gets no place."""

    BUSY = "busy"
    """All places are taken."""
    ONE_CLIENT = "one_client"
    """This client has its share of the places already."""


@dataclass(slots=True, eq=False)
class Place:
    """The place of one request until its answer is taken."""

    client: str
    is_known: bool
    cut: Callable[[], None]
    """Callback that ends its connection."""
    body: bytes | bytearray = b""
    """Its answer; the same object where clients share it."""


@dataclass(slots=True)
class _Known:
    seen_at: float
    answers: int = 0


@dataclass(slots=True)
class Answers:
    """
    The bytes of all answers that are being taken.

    Each connection holds its answer until its client has taken it. An answer that several connections share counts
    once. When there are too many bytes, connections are cut: first those of unknown clients, of these the client with
    the most bytes, and of its answers the oldest. Two answers always stay: two Prometheus servers may scrape at once,
    whatever the length of the page.
    """

    most_bytes: int = MOST_HELD_BYTES
    cuts: int = 0
    """Number of connections that gave way."""
    _held: dict[Place, None] = field(default_factory=dict)
    """Answers that are being taken, in the order in which that began."""

    @property
    def held_bytes(self) -> int:
        """Return the bytes of all answers, of a shared one once."""
        return sum({id(place.body): len(place.body) for place in self._held}.values())

    def hold(self, place: Place, body: bytes | bytearray) -> int:
        """Count an answer until ``release``; returns how many others had to give way."""
        place.body = body
        self._held[place] = None
        given_way = 0
        while self.held_bytes > self.most_bytes and len(self._held) > _LEAST_HELD:
            victim = self._victim(place)
            if victim is None:
                break
            self.release(victim)
            victim.cut()
            given_way += 1
        self.cuts += given_way
        return given_way

    def release(self, place: Place) -> None:
        """Note that the answer is taken, or its client gone."""
        self._held.pop(place, None)

    def _victim(self, newest: Place) -> Place | None:
        """Return the place that gives way next; None if there is none beside the newest."""
        places = [place for place in self._held if place is not newest and place.body]
        if not places:
            return None
        of_client, shared_by = Counter[str](), Counter(id(place.body) for place in self._held)
        for place in places:
            of_client[place.client] += len(place.body) // shared_by[id(place.body)]
        return max(places, key=lambda place: (not place.is_known, of_client[place.client]))


class Places:
    """
    A limited number of requests at once, of which one client has a quarter at most.

    A client that took an answer lately is known. It gets its first place even when all are taken, so that others cannot
    keep a scraper out. At most as many clients are known as there are places; a new one replaces the one with the
    fewest answers.

    Args:
        max_requests: The number of places.
        clock: Steady seconds.

    """

    def __init__(self, max_requests: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = max_requests
        self.most_of_one = min(max_requests, max(_LEAST_OF_ONE, max_requests // _SHARE))
        """Most requests of one client."""
        self._clock = clock
        self._taken: dict[Place, None] = {}
        self._known: dict[str, _Known] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, address: str, cut: Callable[[], None]) -> Place | Refusal:
        """Return a place for a request from ``address``, to be given back with ``leave``, or why there is none."""
        client = network_of(address)
        record = self._known.get(client)
        is_known = record is not None and self._clock() - record.seen_at <= KNOWN_SECONDS
        places_of_client = sum(place.client == client for place in self._taken)
        if places_of_client >= self.most_of_one:
            return Refusal.ONE_CLIENT
        if len(self._taken) >= self.most and (places_of_client or not is_known):
            return Refusal.BUSY
        place = Place(client, is_known, cut)
        self._taken[place] = None
        return place

    def leave(self, place: Place, *, answered: bool) -> None:
        """Give a place back; ``answered`` is True when the client took its answer."""
        self._taken.pop(place, None)
        if not answered:
            return
        now_seconds = self._clock()
        record = self._known.get(place.client)
        if record is None:
            if len(self._known) >= self.most:
                del self._known[min(self._known, key=lambda name: self._rank(name, now_seconds))]
            record = self._known[place.client] = _Known(now_seconds)
        record.seen_at, record.answers = now_seconds, min(record.answers + 1, _MOST_COUNTED)

    def _rank(self, client: str, now_seconds: float) -> tuple[bool, int, float]:
        """Return the rank of a client among the known ones; the lowest is forgotten first."""
        record = self._known[client]
        is_still_known = now_seconds - record.seen_at <= KNOWN_SECONDS
        return is_still_known, record.answers, record.seen_at


def network_of(address: str) -> str:
    """Return the network that counts as one client: a whole address of IPv4, a /64 of IPv6."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), _IPV6_PREFIX), strict=False))


def surroundings(network: str) -> tuple[str, ...]:
    """
    Return the wider networks around a network of ``network_of``, the nearest first.

    /24, /16 and /8 of IPv4, /48, /32 and /16 of IPv6.
    """
    try:
        address_range = ipaddress.ip_network(network)
    except ValueError:
        return ()
    prefixes = (24, 16, 8) if isinstance(address_range, ipaddress.IPv4Network) else (48, 32, 16)
    return tuple(str(address_range.supernet(new_prefix=prefix)) for prefix in prefixes)
