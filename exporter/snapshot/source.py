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
    read_at: float | None = None
    """Unix time in seconds when the numbers were asked for; None while there are none."""
    late: bool = False
    """Whether they are those of an earlier read, because the one under way takes longer than a collection waits."""
    pending: bool = False
    """Whether they are, and the read under way may still answer in time: this is no news of the source."""
    stand_by_of: str | None = None
    """The node for which another source is read instead; None for a source that is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """What one collection got from one source: the input of the join."""

    health: SourceHealth
    table: BeanTable | None
    """None when the read failed; ``health`` says why."""
