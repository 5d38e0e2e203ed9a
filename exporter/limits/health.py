"""How reading the configured limits goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsHealth:
    """How reading the configured limits goes."""

    configured: bool = True
    """False when nobody said where the limits are to be read."""
    read_at: float | None = None
    """Unix time of the last success in seconds."""
    error: str | None = None
    """Why the last read failed; None when it succeeded."""
    denied: bool = False
    """Whether it failed for a missing permission or wrong credentials."""
    errors_total: int = 0
    changes_total: Mapping[str, int] = field(default_factory=dict)
    """Limits set, changed or removed, by quota key."""
