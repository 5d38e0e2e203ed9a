"""What was counted for one client, as plain values that can be sent and added up."""

from __future__ import annotations

from typing import Literal, NamedTuple

Side = Literal["read", "write", "admin"]
"""What a client is for: a consumer reads, a producer writes."""

OVERFLOW = "__overflow__"
"""User and client-id of what is counted for all clients that came too late to be counted one by one."""


class Client(NamedTuple):
    """Who was throttled."""

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
