"""How much strangers may take: connections, requests at once, and time."""

from __future__ import annotations

import resource
from dataclasses import dataclass

import structlog

log = structlog.get_logger()


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


def most_connections(wanted: int) -> int:
    """How many connections the process can have at once: half of the files that it may open at most, so that its own connections find some."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, max(1, hard // 2))


def advice_of_files(wanted: int) -> str:
    """What lets the process have so many connections at once."""
    return f"raise the limit of open files (ulimit -n, LimitNOFILE= of systemd) to {2 * wanted}, or lower server.max_connections"


def connections_within(wanted: int) -> int:
    """
    As many connections as are wanted, or as the process can have.

    Raises the soft limit of open files for them, up to the hard one (setrlimit(2)), and warns when there are
    fewer: else idle connections take the last file, and the exporter neither answers nor reads a source.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * wanted
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = most_connections(wanted)
    if most < wanted:
        log.warning(
            "fewer connections at once than configured: the process may open too few files",
            connections=most,
            max_connections=wanted,
            open_files=soft,
            advice=advice_of_files(wanted),
        )
    return most
