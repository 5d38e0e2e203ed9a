"""What is remembered of sources from one collection to the next."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import structlog

from ..snapshot import SourceHealth

log = structlog.get_logger()


class SourceMemory:
    """Tells when a source goes down or comes back, and keeps how much its last successful read gave."""

    def __init__(self) -> None:
        self._up: dict[str, bool] = {}
        self._readings: dict[str, int] = {}

    def complete(self, health: SourceHealth) -> SourceHealth:
        """The health with its last known number of readings; logs a change of state, unless the source may still answer in time."""
        if health.pending:
            return self.glance(health)
        before = self._up.get(health.name)
        if before is not health.up:
            _tell(health, first=before is None)
        self._up[health.name] = health.up
        if health.up:
            self._readings[health.name] = health.readings
        return self.glance(health)

    def glance(self, health: SourceHealth) -> SourceHealth:
        """The same without taking note, for a read that still goes on."""
        if health.up:
            return health
        return replace(health, readings=self._readings.get(health.name, 0))

    def keep_only(self, names: Container[str]) -> None:
        """Forget all other sources."""
        for name in [name for name in self._up if name not in names]:
            del self._up[name]
            self._readings.pop(name, None)


def _tell(health: SourceHealth, *, first: bool) -> None:
    if health.up:
        event = "source is up" if first else "source is up again"
        log.info(event, source=health.name, readings=health.readings)
    else:
        log.warning("source is down", source=health.name, error=health.error)
