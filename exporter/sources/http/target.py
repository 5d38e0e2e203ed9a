"""Where an agent answers over HTTP, and how to ask it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """One agent. Its secrets never show in ``repr``."""

    url: str
    """http or https, without a user or password in it."""
    node_id: str | None = None
    """Kafka's ``node.id``; None leaves it to the node to tell."""
    timeout_seconds: float = 60.0
    """Longest wait for one complete answer, and for all that one read needs."""
    username: str | None = None
    """For basic authentication."""
    password: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent along with every request."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """For https; None trusts the system's authorities."""
    max_bytes: int = 64 * MEBIBYTE
    """An answer that is longer, decompressed, is not read to its end."""
