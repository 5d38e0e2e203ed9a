"""
Counts the bytes that teams move, as Kafka has no counter of bytes by client.

A rate is a mean over the last ten seconds or so (Kafka's quota window). It stands for the time since the last
collection, if that is not too long. Collections up to a window apart miss nothing; collections farther apart are
samples. Counters begin at 0 when the exporter starts. Prometheus adds up their increases over restarts, and takes the
larger increase of two exporters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Floats, Snapshot
from ..snapshot.layout import fixed
from ..snapshot.teams import TeamSums

LONGEST_S: Final = 90.0
"""Seconds between two collections that a rate may stand for: the longest usual scrape interval, and half of it."""
COUNTED: Final = tuple(kind for kind in QuotaType if kind.of_bytes)


class TeamCounter:
    """Adds up rates of teams over time, before entities are folded for the number of series."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._bytes: dict[QuotaType, Floats] = {kind: np.empty(0) for kind in COUNTED}
        """Bytes counted so far, by place in the names."""
        self._seen_seconds = 0.0
        self._last_seconds: float | None = None

    def count(
        self, sums: TeamSums, rates: Mapping[QuotaType, Floats], snapshot: Snapshot, now_seconds: float
    ) -> TeamSums:
        """
        Count the time since the last call, and return the sums with the bytes counted so far.

        Args:
            sums: The sums of the snapshot.
            rates: The usage of the teams by quota type, in the order of their names. Nodes with old numbers are left
                out, since a node that hangs keeps its last rate as long as it hangs.
            snapshot: The snapshot, which shows whether a node is missing.
            now_seconds: Steady time at which the numbers of the snapshot were asked for.

        """
        self._follow(sums.names)
        elapsed = None if self._last_seconds is None else now_seconds - self._last_seconds
        self._last_seconds = now_seconds
        if elapsed is not None and 0 < elapsed <= LONGEST_S:
            for kind in COUNTED:
                finite_rates = np.nan_to_num(rates[kind], nan=0.0, posinf=0.0, neginf=0.0)
                self._bytes[kind] = self._bytes[kind] + np.maximum(finite_rates, 0.0) * elapsed
            if not snapshot.incomplete and not snapshot.old_sources:
                self._seen_seconds += elapsed
        return self.with_counters(sums)

    def with_counters(self, sums: TeamSums) -> TeamSums:
        """Return the sums with the bytes counted so far; NaN for a team without entities and bytes."""
        self._follow(sums.names)
        counted: Mapping[QuotaType, Floats] = {
            kind: fixed(np.where((values > 0) | (sums.entities > 0), values, np.nan))
            for kind, values in self._bytes.items()
        }
        return replace(sums, bytes=counted, seen_seconds=self._seen_seconds)

    def _follow(self, names: tuple[str, ...]) -> None:
        """Use the names of the present teams, and drop the counters of teams that left the file."""
        if names is self._names or names == self._names:
            return
        for kind, values in self._bytes.items():
            by_name = dict(zip(self._names, values.tolist(), strict=True))
            self._bytes[kind] = np.array([by_name.get(name, 0.0) for name in names])
        self._names = names
