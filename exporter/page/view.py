"""What one request gets to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..diagnosis.selection import in_order, matching
from ..diagnosis.trails import Trails
from ..diagnosis.units import limits_unknown
from ..snapshot import EntityUsage, Snapshot
from .query import Query, address_of


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Some entities of a snapshot."""

    snapshot: Snapshot
    trails: Trails
    """How full their limits were lately."""
    query: Query
    total: int
    """How many entities match the query."""
    limits_unknown: int
    """How many of all measured entities may have a limit that is unknown; ``Show.NEAR`` cannot find them."""
    rows: Sequence[EntityUsage]
    """Those of them that are shown."""

    @property
    def before(self) -> str | None:
        """The address of the part before this one; None on the first."""
        if self.query.offset == 0:
            return None
        return self._at(max(0, self.query.offset - self.query.size))

    @property
    def following(self) -> str | None:
        """The address of the next part; None on the last."""
        end = self.query.offset + self.query.size
        return self._at(end) if end < self.total else None

    def _at(self, offset: int) -> str:
        return address_of(replace(self.query, offset=offset))


def view_of(snapshot: Snapshot, trails: Trails, query: Query) -> View:
    """What a query finds."""
    measured = snapshot.measured
    found = matching(measured, query.selection)
    end = query.offset + query.size
    rows = in_order(found, query.selection, min(end, len(found)))[query.offset :]
    return View(
        snapshot=snapshot,
        trails=trails,
        query=query,
        total=len(found),
        limits_unknown=limits_unknown(measured),
        rows=rows,
    )
