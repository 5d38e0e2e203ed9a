"""What the kernels kept count of, in a shape to add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..kernels.compiled import Codes, Ints
from ..kernels.ledger import ACTIVE_MS, PAIR_FIELDS, Ledger
from ..kernels.requests import Scale
from ..kernels.totals import Booked


def booked_of(ledger: Ledger, scale: Scale, candidates: Codes) -> Booked:
    """The figures of a ledger that is closed; the candidates are given by rank."""
    active = ledger.pairs.reshape(scale.pairs, PAIR_FIELDS)[:, ACTIVE_MS]
    return Booked(
        cells=ledger.cells,
        late=ledger.late,
        active=np.repeat(active, scale.candidates),
        ranks=np.argsort(candidates).astype(np.int32),
    )


def joined(parts: Sequence[Booked], pairs: int) -> Booked:
    """Those of all candidates, given one by one."""
    return Booked(
        cells=_by_pair((part.cells for part in parts), pairs),
        late=_by_pair((part.late for part in parts), pairs),
        active=_by_pair((part.active for part in parts), pairs),
        ranks=np.arange(len(parts), dtype=np.int32),
    )


def _by_pair(figures: Iterable[Ints], pairs: int) -> Ints:
    """The figures of several candidates, by pair first."""
    return np.concatenate([one.reshape(pairs, -1) for one in figures], axis=1).ravel()
