"""Which beans are left over from earlier rules, and which only look so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType

from ..limits import Limits
from ..mapping import Meaning
from ..snapshot import Floats, Layout
from ..snapshot.layout import TYPES, Rows
from .placing import Placed
from .recent import RecentRows
from .standing import Standing, alike, standing_of

_SAMPLES: Final = np.array(
    [2 if kind is QuotaType.CONTROLLER_MUTATION else 11 for kind in TYPES]
)
"""Of a rate, by quota type."""
_MOST_IDLE_RISE: Final = _SAMPLES / (_SAMPLES - 1) + 1e-9
"""
By how much a rate can rise without traffic, rounding included.

With S samples Kafka's ``Rate`` divides by S - 1 to S windows, depending on the age of
the oldest.
"""


class Staleness:
    """
    Judges beans that the rules do not explain, by what they were at the previous collection.

    Such a bean counts when its rate or throttle rose since the previous collection under the same rules, or was seen to do so
    within the last minute. Under other rules it was used rightly, and its last traffic is no sign that it still is.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._rules: Limits | None = None
        self._standings: NDArray[np.int8] = np.empty(0, np.int8)
        self._last: tuple[Floats, Floats] = np.empty(0), np.empty(0)
        """Usage and throttle time at the previous collection in Kafka's units, 0 for what was not there."""
        self._read_under: dict[str, Limits | None] = {}
        """By node the rules at the previous collection."""
        self._rose = RecentRows()

    def stale(
        self,
        placed: Placed,
        values: Floats,
        leads: Mapping[str, bool | None],
        at: float,
    ) -> NDArray[np.bool_]:
        """
        By row whether it was read but does not count: also mutations of a node that does not lead.

        Args:
            placed: Where the numbers are.
            values: The numbers of all tables, then a NaN.
            leads: By node whether it is the active controller, None when unknown.
            at: Unix time in seconds.

        """
        self._follow(placed, at)
        layout = placed.layout
        stale = np.zeros(len(layout), np.bool_)
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        behind = np.array([leads.get(node) is False for node in layout.nodes], np.bool_)
        stale[mutations] = behind[layout.node_numbers[mutations]]
        stale &= placed.read
        suspects = np.flatnonzero((self._standings != Standing.IN_USE) & placed.read)
        if suspects.size:
            self._judge(suspects, stale, placed, values, at)
        for node in placed.nodes:
            self._read_under[node.node_id] = placed.rules
        return stale

    def forget(self, node_id: str) -> None:
        """Drop what is remembered of a node."""
        self._read_under.pop(node_id, None)

    def _follow(self, placed: Placed, at: float) -> None:
        layout, last = placed.layout, self._layout
        if layout is not last or placed.rules is not self._rules:
            standings = layout.carry(self._standings, last, -1).copy()
            if placed.rules is not self._rules:
                standings[:] = -1
            for row in np.flatnonzero(standings < 0).tolist():
                standings[row] = standing_of(layout.entities[row], placed.rules)
            usage, throttle = (layout.carry(each, last, 0.0) for each in self._last)
            self._last = usage.copy(), throttle.copy()
            self._standings, self._layout, self._rules = standings, layout, placed.rules
        self._rose.follow(layout, at)

    def _judge(
        self,
        suspects: Rows,
        stale: NDArray[np.bool_],
        placed: Placed,
        values: Floats,
        at: float,
    ) -> None:
        """Find out which of the suspects are stale."""
        layout = placed.layout
        now = [
            values[placed.places[meaning][suspects]]
            if meaning in placed.places
            else np.full(suspects.size, np.nan)
            for meaning in (Meaning.USAGE, Meaning.THROTTLE_TIME)
        ]
        before = [each[suspects] for each in self._last]
        for each, last in zip(now, self._last, strict=True):
            last[suspects] = np.fmax(each, 0.0)
        forwarded = (self._standings[suspects] == Standing.FORWARDED) & np.isfinite(
            now[1]
        )
        judged = ~forwarded & ~stale[suspects]
        rises = now[0] > before[0] * _MOST_IDLE_RISE[layout.types[suspects]]
        rises |= now[1] > before[1]  # both are False for NaN
        under = {
            node.node_id: self._read_under.get(node.node_id) for node in placed.nodes
        }
        known = {node for node, then in under.items() if alike(then, placed.rules)}
        comparable = np.array([node in known for node in layout.nodes])
        comparable = comparable[layout.node_numbers[suspects]]
        self._rose.drop(suspects[judged & ~comparable])
        self._rose.note(suspects[judged & comparable & rises], at)
        stale[suspects] |= judged & ~self._rose.among(suspects)
