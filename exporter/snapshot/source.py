"""What one source gave, and how that went."""

from __future__ import annotations

from dataclasses import dataclass

from ..beans import BeanTable


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """How the last read of one source went."""

    name: str
    dialect: str
    up: bool
    duration_seconds: float
    readings: int = 0
    """Numbers given by the last successful read."""
    error: str | None = None
    """What was wrong and what to do, when it failed."""
    remark: str | None = None
    """What was wrong and what to do, although it could be read."""
    hint: str | None = None
    """What to check if there are quotas, because it told of no entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """What one collection got from one source: the input of the join."""

    health: SourceHealth
    table: BeanTable | None
    """None when the read failed; ``health`` says why."""
