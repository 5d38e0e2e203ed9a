"""The greatest values since each scraper's last scrape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import structlog

from ..snapshot import Peaks, Snapshot
from .slots import Slots
from .stretch import NEVER, Stretch

MOST_SCRAPERS: Final = 8
"""Of those that come when this many are remembered none is, so that nobody can push out the ones that are."""
FORGET_AFTER_SECONDS: Final = 600.0
"""A scraper that has not come for so long is forgotten; Prometheus calls a series stale after half of that."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Scraper:
    since: int
    """Number of the first stretch after its last scrape."""
    seen_at: float


class PeakKeeper:
    """
    Remembers maxima for several scrapers, none of which takes anything from another.

    Time is cut into stretches at each scrape; the maxima of a scraper are those of all stretches since its last one.
    So a sample costs one pass over the entities however many scrapers there are, and memory is a number for each entity
    and stretch, of which there are no more than scrapers. Times are steady ones in seconds.
    """

    def __init__(self) -> None:
        self._slots = Slots()
        self._scrapers: dict[str, _Scraper] = {}
        self._stretches: list[Stretch] = []
        self._next = 0
        self._full = False
        self._noted: object = None

    def note(self, snapshot: Snapshot, at: float) -> None:
        """Take a new snapshot in; free while there is no scraper."""
        self._forget(at)
        if self._scrapers:
            self._stretches[-1].add(snapshot, self._slots.of(snapshot.entities))
            self._noted = snapshot.entities
            self._prune(snapshot)

    def since_last(self, scraper: str, snapshot: Snapshot, at: float) -> Peaks:
        """The maxima since this scraper's last call, those of ``snapshot`` included; its first call begins them."""
        self._forget(at)
        slots = self._slots.of(snapshot.entities)
        known = self._scrapers.get(scraper)
        since = self._next if known is None else known.since
        total = Stretch(-1)
        for stretch in self._stretches:
            if stretch.number >= since:
                total.absorb(stretch)
        if since == self._next or self._noted is not snapshot.entities:
            total.add(snapshot, slots)
        self._noted = None
        self._remember(scraper, at)
        return _peaks(total, snapshot, slots)

    def _remember(self, scraper: str, at: float) -> None:
        if scraper not in self._scrapers and len(self._scrapers) >= MOST_SCRAPERS:
            if not self._full:
                log.warning("too many scrapers to keep maxima for", most=MOST_SCRAPERS)
            self._full = True
            return
        self._stretches.append(Stretch(self._next))
        self._scrapers[scraper] = _Scraper(self._next, at)
        self._next += 1
        self._join_stretches()

    def _join_stretches(self) -> None:
        """Make one of stretches between which no scraper's time begins, and drop those before all."""
        begins = {scraper.since for scraper in self._scrapers.values()}
        joined: list[Stretch] = []
        for stretch in self._stretches:
            if stretch.number in begins:
                joined.append(stretch)
            elif joined:
                joined[-1].absorb(stretch)
        self._stretches = joined

    def _forget(self, at: float) -> None:
        late = [
            name
            for name, scraper in self._scrapers.items()
            if at - scraper.seen_at > FORGET_AFTER_SECONDS
        ]
        for name in late:
            del self._scrapers[name]
        if late:
            self._full = False
            self._join_stretches()

    def _prune(self, snapshot: Snapshot) -> None:
        """Names that come and go between two scrapes must not add up."""
        if not self._slots.crowded(len(snapshot.entities)):
            return
        old = self._slots.keep_only(snapshot.entities)
        for stretch in self._stretches:
            stretch.renumber(old)


def _peaks(total: Stretch, snapshot: Snapshot, slots: list[int]) -> Peaks:
    """Of the entities that this snapshot shows in detail only."""
    rows = len(snapshot.shown)
    utilization, burst_used = np.full(rows, np.nan), np.full(rows, np.nan)
    for row, (slot, usage) in enumerate(zip(slots, snapshot.entities, strict=True)):
        for values, most in ((utilization, total.utilization), (burst_used, total.burst_used)):  # fmt: skip
            if most[slot] > NEVER and usage.detailed:
                values[row] = most[slot]
    present = {node.broker for node in snapshot.nodes}
    queues = total.delay_queue_size.items()
    return Peaks(
        utilization=utilization,
        burst_used=burst_used,
        delay_queue_size={key: size for key, size in queues if key[0] in present},
    )
