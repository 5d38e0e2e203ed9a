"""How much strangers may take: connections, requests at once, and time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the server; times in seconds."""

    connections: int = 512
    """At once, TLS handshakes under way included; Prometheus's own server has the same."""
    requests: int = 40
    """Scrapes at once, until their answers have been taken, as node_exporter; and as many other requests."""
    handshake_seconds: float = 10.0
    head_seconds: float = 10.0
    """From the first byte of a request (of a new connection: from its beginning) until its head is complete."""
    idle_seconds: float = 330.0
    """Between two requests: longer than any useful scrape interval."""
    taking_seconds: float = 60.0
    """For taking an answer."""
    line_bytes: int = 8190
    """Of the request line, and of each header."""
    headers: int = 64
    body_seconds: float = 2.0
    """For ignoring a body."""
    body_bytes: int = 1 << 20
    """Of a body that are ignored; the connection of a client that sends more is cut."""
