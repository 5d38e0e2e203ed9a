"""What the kernels kept count of, in a shape to add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels.compiled import Codes, Ints
from ..kernels.ledger import ACTIVE_MS, FIELDS, PAIR_FIELDS, Ledger
from ..kernels.requests import KINDS, Scale


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Booked:
    """By pair and candidate."""

    cells: Ints
    """By pair, candidate, kind and field of `kernels.ledger`."""
    late: Ints
    """By pair and candidate, ms."""
    active: Ints
    """By pair and candidate, ms."""

    @staticmethod
    def joined(parts: Sequence[Booked]) -> Booked:
        """Those of all candidates, given one by one."""
        return Booked(
            cells=np.concatenate([part.cells for part in parts], axis=1),
            late=np.concatenate([part.late for part in parts], axis=1),
            active=np.concatenate([part.active for part in parts], axis=1),
        )


def booked_of(ledger: Ledger, scale: Scale, ranks: Codes) -> Booked:
    """The figures of a ledger that is closed, whose candidates stand by rank."""
    shape = (scale.pairs, scale.candidates)
    cells = ledger.cells.reshape(*shape, KINDS, FIELDS)
    late = ledger.late.reshape(shape)
    if (ranks[1:] < ranks[:-1]).any():
        candidates = np.argsort(ranks)
        cells, late = cells[:, candidates], late[:, candidates]
    active = ledger.pairs.reshape(scale.pairs, PAIR_FIELDS)[:, ACTIVE_MS]
    return Booked(
        cells=cells,
        late=late,
        active=np.broadcast_to(active[:, np.newaxis], shape),
    )
