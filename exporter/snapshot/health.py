"""What a source answered, and how reading it and the exporter's other work go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """What to check if there are quotas, because the answer had no entity."""
    read_at: float | None = None
    """Unix time in seconds when the numbers were asked for; None while there are none."""
    late: bool = False
    """Whether they are those of an earlier read, because the one under way takes longer than a collection waits."""
    pending: bool = False
    """Whether they are, and the read under way may still answer in time: the state of the source has not changed yet."""
    stand_by_of: str | None = None
    """The node for which another source is read instead; None for a source that is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """What one collection got from one source: the input of the join."""

    health: SourceHealth
    table: BeanTable | None
    """None when the read failed; ``health`` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryHealth:
    """How finding nodes in one way goes."""

    name: str
    """The label ``discovery``."""
    targets: int = 0
    """How many nodes the last look that succeeded gave."""
    found_at: float | None = None
    """Unix time in seconds of that look."""
    error: str | None = None
    """What was wrong with the last look, wholly or in part."""
    errors_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How reading between scrapes goes."""

    samples: int = 0
    """Reads taken since the start."""
    missed: int = 0
    """Reads that were due while an earlier one was still under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushHealth:
    """How pushing over OTLP goes, since this exporter started."""

    exports_total: Mapping[str, int] = field(default_factory=dict)
    """Pushes by outcome: ``success``, ``partial``, ``failure``."""
    points_total: Mapping[str, int] = field(default_factory=dict)
    """Points by what became of them: ``accepted``, ``rejected``, ``lost``."""
    error: str | None = None
    """Why the last push did not succeed; None when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadHealth:
    """How the last attempt to read the configuration went; the first is the start."""

    succeeded_at: float
    """Unix time in seconds of the last that succeeded."""
    error: str | None = None
    """Why the last one did not succeed; None when it did."""
    needs_restart: tuple[str, ...] = ()
    """Fields that have changed, but only count after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHealth:
    """How the exporter's own work goes at one moment: a part of each snapshot."""

    discoveries: tuple[DiscoveryHealth, ...] = ()
    sampling: Sampling | None = None
    """None when only scrapes read."""
    push: PushHealth | None = None
    """None when nothing is pushed."""
    reload: ReloadHealth | None = None
    """None where the configuration is not read again."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """How often background work failed and began again since the exporter started, by its name; empty where there is none."""
