"""What the kernels kept count of, in a shape to add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels.compiled import Ints
from ..kernels.ledger import ACTIVE_MS, FIELDS, PAIR_FIELDS, Ledger
from ..kernels.requests import KINDS, Scale


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Booked:
    """By candidate and pair."""

    cells: Ints
    """By candidate, pair, kind and field of `kernels.ledger`."""
    late: Ints
    """By candidate and pair, ms."""
    active: Ints
    """By candidate and pair, ms."""

    @staticmethod
    def joined(parts: Sequence[Booked]) -> Booked:
        """Those of all candidates, given one by one."""
        return Booked(
            cells=np.concatenate([part.cells for part in parts]),
            late=np.concatenate([part.late for part in parts]),
            active=np.concatenate([part.active for part in parts]),
        )


def booked_of(ledger: Ledger, scale: Scale) -> Booked:
    """The figures of a ledger that is closed."""
    shape = (scale.candidates, scale.pairs)
    cells = ledger.cells.reshape(scale.pairs, scale.candidates, KINDS, FIELDS)
    active = ledger.pairs.reshape(scale.pairs, PAIR_FIELDS)[:, ACTIVE_MS]
    return Booked(
        cells=cells.swapaxes(0, 1),
        late=ledger.late.reshape(shape),
        active=np.broadcast_to(active, shape),
    )
