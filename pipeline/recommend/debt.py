"""The token bucket of mutations when nothing is refused: the form of it in which a higher limit never throttles longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType, WindowConfig

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MS: Final = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DebtSensor:
    """
    Mutations that are all charged (Kafka: `TokenBucket`, KIP-599).

    What a strict quota refuses takes nothing, so that later mutations wait less than here: these figures are upper bounds, and the
    limits that they lead to safe ones.
    """

    times_ms: Ints
    values: Floats
    """Partitions; 0 for a request that the log shows as refused, whose retry is in the log as well."""
    permissive: NDArray[np.bool_]
    """Requests that are charged before they are checked, not after: clients that are too old to be refused."""
    config: WindowConfig
    kind: QuotaType = QuotaType.CONTROLLER_MUTATION

    @property
    def window_ms(self) -> int:
        """One window of the quota."""
        return self.config.window_ms

    @property
    def enough(self) -> float:
        """A limit whose burst holds all at once."""
        return float(self.values.sum()) / self._burst_s

    @property
    def _burst_s(self) -> float:
        return float(self.config.samples * self.config.window_seconds)

    def throttles_ms(self, limits: Floats) -> Ints:
        """Ms to wait after each mutation, as an array of limits x mutations."""
        return np.stack([self._of(limit) for limit in limits.tolist()])

    def _of(self, limit: float) -> Ints:
        since = (self.times_ms - self.times_ms[0]) / _MS
        taken = np.concatenate(([0.0], np.cumsum(self.values)))
        before = taken[:-1] - limit * since
        debt = before - np.minimum.accumulate(before)
        checked = np.where(self.permissive, debt + self.values, debt)
        over = np.maximum(checked - limit * self._burst_s, 0.0)
        throttles: Ints = np.ceil(over / limit * _MS).astype(np.int64)
        return throttles
