"""Attempts that ended without telling what their Kafka clients were told."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from .recent import Recent

StageReader = Callable[[], Container[int]]
"""Tells in which stages throttles are counted at all."""

_MOST_STAGES = 10_000


class UntoldAttempts:
    """
    Counts, in stages whose attempts do tell, those that could not: the executor was lost, or the attempt killed.

    That an attempt of another stage tells nothing means nothing.
    """

    def __init__(self) -> None:
        self.count = 0
        self._telling: Recent[int, None] = Recent(_MOST_STAGES)
        self._others: Recent[int, int] = Recent(_MOST_STAGES)

    def untold(self, stage: int) -> None:
        """An attempt of this stage did not succeed and left no note."""
        if stage in self._telling:
            self.count += 1
        else:
            self._others[stage] = self._others.get(stage, 0) + 1

    def told(self, stage: int) -> None:
        """An attempt of this stage tells."""
        self._telling[stage] = None
        self.count += self._others.pop(stage, 0)

    def learn(self, telling: Iterable[Container[int]]) -> None:
        """Attempts of these stages tell."""
        for stages in telling:
            for stage in [stage for stage in self._others if stage in stages]:
                self.told(stage)
