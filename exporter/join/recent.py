"""What was seen a short while ago."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType

from ..snapshot import Entity, Floats, Layout
from ..snapshot.layout import Rows

_Name = tuple[str, QuotaType, str, str]

LINGER_SECONDS: Final = 60.0
"""How long a throttle stays in Kafka's averages: 2 x 30 s."""


class RecentRows:
    """
    When each entity was last seen in some state, for a minute: by row while it is in the layout, and by name when it left.

    An entity that leaves and comes back in time, as after a change of its beans, is as recent as before.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._seen: Floats = np.empty(0)
        """Unix time in seconds, -inf for never."""
        self._left: dict[_Name, float] = {}

    def follow(self, layout: Layout, at: float) -> None:
        """Take another layout over, and drop what is too long ago at ``at``."""
        if layout is not self._layout:
            last, rows = self._layout, layout.rows_in(self._layout)
            gone = self._seen.copy()
            gone[rows[rows >= 0]] = -np.inf
            for row in np.flatnonzero(gone > -np.inf).tolist():
                self._left[_name(last.entities[row])] = float(gone[row])
            self._seen = layout.carry(self._seen, last, -np.inf).copy()
            for row in np.flatnonzero(rows < 0).tolist() if self._left else ():
                name = _name(layout.entities[row])
                self._seen[row] = self._left.pop(name, -np.inf)
            self._layout = layout
        self._seen[np.abs(at - self._seen) > LINGER_SECONDS] = -np.inf
        self._left = {
            name: seen
            for name, seen in self._left.items()
            if abs(at - seen) <= LINGER_SECONDS
        }

    def note(self, rows: Rows, at: float) -> None:
        """See the entities of these rows now."""
        self._seen[rows] = at

    def drop(self, rows: Rows) -> None:
        """Never have seen the entities of these rows."""
        self._seen[rows] = -np.inf

    def among(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows were seen."""
        return self._seen[rows] > -np.inf

    def seen(self) -> tuple[bytes, tuple[_Name, ...]]:
        """What is equal as long as the same rows of a layout were seen, and the same entities of those that left."""
        return (self._seen > -np.inf).tobytes(), tuple(self._left)

    def clients(self) -> Iterator[tuple[str, str]]:
        """User and client id of each entity that was seen, also of those that left."""
        for row in np.flatnonzero(self._seen > -np.inf).tolist():
            entity: Entity = self._layout.entities[row]
            yield entity.user, entity.client_id
        for *_, user, client_id in self._left:
            yield user, client_id


def _name(entity: Entity) -> _Name:
    return entity.broker, entity.quota_type, entity.user, entity.client_id
