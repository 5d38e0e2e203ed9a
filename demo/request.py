"""What a client asks of the broker, and what it hears back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Produce:
    """Write data."""

    size: int
    """Header and body in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Read data."""

    size: int
    """Bytes that wait to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopics:
    """Create topics."""

    partitions: tuple[int, ...]
    """Partitions of each topic."""
    version: int = 7
    """From 6 on a topic over the quota is refused; before, it is made and the client muted afterwards (KIP-599)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Anything that takes the broker's time and moves no data, such as committing offsets."""


Request = Produce | Fetch | CreateTopics | Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to a request."""

    throttle_ms: int = 0
    """How long the client is to stay silent (`throttle_time_ms`)."""
    again: Request | None = None
    """What was not done and is to be asked for again: data held back, topics refused with error 89."""
