"""Reads what entities used out of the numbers of all tables, by arrays of places."""

from __future__ import annotations

from operator import is_not
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType

from ..mapping import DIVISORS, USAGE, Meaning
from ..snapshot import Columns, Floats, Layout
from ..snapshot.layout import TYPES, Rows, fixed
from .placing import OF_ENTITIES, Placed

_UNLIMITED_TOKENS: Final = 9e15
"""
More tokens than any limit gives. A bucket without a limit grows by Long.MAX a second up to
1e20: within a millisecond of losing its limit it holds this many.
"""
_OF_USAGE: Final = np.array([USAGE[kind].divisor for kind in TYPES])
"""Kafka's unit divided by this is ours."""


class UsageReader:
    """The entities that count, and where to read what they used; the ``last`` layout is kept if entities and limits are the same."""

    def __init__(self, placed: Placed, counted: NDArray[np.bool_], last: Layout) -> None:
        layout, rows = placed.layout, np.flatnonzero(counted)
        if len(rows) < len(layout):
            layout = layout.changed(np.flatnonzero(~counted))
        if len(layout) == len(last) and not any(map(is_not, layout.entities, last.entities)):
            layout = last
        here = np.full(len(placed.layout), -1)
        here[rows] = np.arange(len(rows))
        self.placed, self.counted, self.layout = placed, counted, layout
        self.places = {meaning: at[rows] for meaning, at in placed.places.items()}
        self._folded = {
            meaning: (places[here[of] >= 0], here[of[here[of] >= 0]]) for meaning, (places, of) in placed.folded.items()
        }
        self._usage_divisors = _OF_USAGE[layout.types]
        # NaN after a minute without a throttle is 0 where a node measures it: it has the column. Of controller mutations that holds
        # beside a counter of an embedded engine only: under KRaft the column is there, and never more than NaN.
        nowhere = np.full(len(layout), -1)
        measured = self.places.get(Meaning.THROTTLE_TIME, nowhere) >= 0
        measured &= (layout.types != TYPES.index(QuotaType.CONTROLLER_MUTATION)) | (
            self.places.get(Meaning.THROTTLED_SECONDS, nowhere) >= 0
        )
        self._unthrottled = np.where(measured, 0.0, np.nan)

    def read(self, values: Floats) -> Columns:
        """What the entities used, without causes; ``values`` are the numbers of all tables and a NaN."""
        layout = self.layout
        read: dict[str, Any] = dict.fromkeys(OF_ENTITIES.values(), layout.absent)
        for meaning, places in self.places.items():
            column = self._in_base_units(meaning, values[places], slice(None))
            if meaning in self._folded:
                self._fold(meaning, column, values)
            read[OF_ENTITIES[meaning]] = layout.column(column)
        causes = np.zeros(len(layout), np.int8)
        return Columns(layout=layout, causes=fixed(causes), **read)

    def _fold(self, meaning: Meaning, column: Floats, values: Floats) -> None:
        """Add usages up where several entities of a callback are shown as one, and take the longest throttle."""
        places, rows = self._folded[meaning]
        each = self._in_base_units(meaning, values[places], rows)
        column[rows] = np.nan
        if meaning is Meaning.USAGE:
            # by size, so that the sum does not depend on the order
            sizes = np.lexsort((each, rows))
            column[rows[~np.isnan(each)]] = 0.0
            np.add.at(column, rows[sizes], np.nan_to_num(each[sizes]))
        else:
            np.fmax.at(column, rows, each)

    def _in_base_units(self, meaning: Meaning, numbers: Floats, rows: Rows | slice) -> Floats:
        """Kafka's numbers of some rows; what is not finite becomes NaN, or 0 where nothing was throttled."""
        known = np.isfinite(numbers)
        if meaning is Meaning.TOKENS:
            known &= numbers < _UNLIMITED_TOKENS
            if self.placed.rules is not None:
                known &= ~np.isnan(self.layout.limits[rows])
        divisor: Floats | float = DIVISORS.get(meaning, 1.0)
        if meaning is Meaning.USAGE:
            divisor = self._usage_divisors[rows]
        throttle = meaning is Meaning.THROTTLE_TIME
        instead = self._unthrottled[rows] if throttle else np.nan
        return np.where(known, numbers / divisor, instead)
