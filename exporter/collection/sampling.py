"""Reads between scrapes at a steady pace, and keeps the greatest values of the last minute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import compress
from math import isfinite
from typing import Final

import numpy as np
import structlog
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Floats, Layout, Peaks, Sampling, Snapshot
from ..snapshot.layout import fixed, taken

log = structlog.get_logger()

WINDOW_SECONDS: Final = 60.0
"""The longest usual scrape interval of Prometheus."""
_PARTS: Final = 4
"""Parts of the window, which moves by one part at a time."""


class Sampler:
    """
    Asks for a snapshot at an interval, and shares the snapshots of scrapes.

    Samples are due at fixed times from the start on. Samples that are due while a read is under way are missed and
    counted.

    Args:
        collect: Function that returns a snapshot, from the longest time to wait for sources in seconds. It may return
            an earlier snapshot that is recent enough.
        every_seconds: Interval between samples.
        timeout_seconds: Longest time to wait for sources.
        sampling: The counts to continue; None begins at 0.

    """

    def __init__(
        self,
        collect: Callable[[float], Awaitable[Snapshot]],
        every_seconds: float,
        timeout_seconds: float,
        sampling: Sampling | None = None,
    ) -> None:
        self._collect = collect
        self._every_seconds = every_seconds
        self._timeout_seconds = timeout_seconds
        self.sampling = sampling or Sampling()
        """Numbers of samples that were taken and missed."""

    async def run(
        self, clock: Callable[[], float] | None = None, pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Sample until canceled. ``clock`` returns steady seconds; None is the clock of the event loop."""
        steady_clock = clock or asyncio.get_running_loop().time
        due = steady_clock() + self._every_seconds
        while True:
            await pause(max(0.0, due - steady_clock()))
            taken = 1
            try:
                await self._collect(self._timeout_seconds)
            except Exception:
                log.exception("a sample failed")
                taken = 0
            missed = max(0, int((steady_clock() - due) // self._every_seconds))
            self.sampling = Sampling(samples=self.sampling.samples + taken, missed=self.sampling.missed + missed)
            due += (1 + missed) * self._every_seconds


class PeakKeeper:
    """
    Keeps maxima over a rolling window, the same for every scraper.

    The window reaches back by ``window_seconds`` at least, and by a quarter more at most. The memory grows with the
    entities that were seen in it, not with the number of scrapers.
    """

    def __init__(self, window_seconds: float) -> None:
        self.window_seconds = window_seconds
        self._part = 0
        """The number of the current part of the window."""
        self._utilization = _Window()
        self._burst_used = _Window()
        self._queues: list[dict[tuple[str, QuotaType], float]] = [{}]
        """The greatest delay queue in each part of the window, the current part first."""

    def update(self, snapshot: Snapshot, now_seconds: float) -> Peaks:
        """
        Return the maxima of the entities and nodes of a snapshot, its own values included.

        Call it once for each snapshot, with steady times.
        """
        part = int(now_seconds // (self.window_seconds / _PARTS))
        for _ in range(min(part - self._part, _PARTS + 1)):  # after so many turns, all values are forgotten
            self._utilization.turn()
            self._burst_used.turn()
            self._queues = [{}, *self._queues[:_PARTS]]
        self._part = part
        current = self._queues[0]
        for node in snapshot.nodes:
            for kind, size in node.delay_queue_size.items():
                if isfinite(size):
                    key = node.broker, kind
                    current[key] = max(size, current.get(key, size))
        present = {node.broker for node in snapshot.nodes}
        queues: dict[tuple[str, QuotaType], float] = {}
        for sizes in self._queues:
            for key, size in sizes.items():
                if key[0] in present:
                    queues[key] = max(size, queues.get(key, size))
        columns, layout = snapshot.columns, snapshot.columns.layout
        detailed = columns.detailed
        return Peaks(
            utilization=self._utilization.update(columns.utilization, detailed, layout, layout.limits),
            burst_used=self._burst_used.update(columns.burst_used, detailed, layout, layout.bursts),
            delay_queue_size=queues,
        )


class _Window:
    """
    Keeps the greatest values of one column in each part of the window.

    They are kept by serial of the entity, not by row. So a node that is away for a moment loses its rows in the layout,
    but not its values in the window.
    """

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        """Places in a part by serial, in ascending order of the places."""
        self._parts = np.empty((_PARTS + 1, 0))
        """Greatest values by part, the current part first, and by place; NaN without a value."""
        self._layout = Layout(())
        self._rows = np.empty(0, np.intp)
        """The rows of the layout that can have a value."""
        self._places_of_rows = np.empty(0, np.intp)
        """The place of each row of the layout, -1 for a row that cannot have a value."""

    def turn(self) -> None:
        """
        Begin a new part.

        Entities that have left and have no value in any part are forgotten once they are a quarter of all.
        """
        self._parts = np.roll(self._parts, 1, axis=0)
        self._parts[0] = np.nan
        is_kept: NDArray[np.bool_] = np.logical_or.reduce(np.isfinite(self._parts))
        is_kept[self._places_of_rows[self._rows]] = True  # entities that have not left
        if 4 * is_kept.sum() < 3 * len(is_kept):  # a few more are not worth the work
            serials = compress(self._places, is_kept.tolist())
            self._places = {serial: place for place, serial in enumerate(serials)}
            self._parts = self._parts[:, is_kept]
            places = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
            self._places_of_rows = taken(places, self._places_of_rows, -1)

    def update(self, values: Floats, detailed: NDArray[np.bool_] | None, layout: Layout, bounds: Floats) -> Floats:
        """
        Add the values of a snapshot, and return the greatest value of the window for each row.

        Args:
            values: Ratios by row.
            detailed: Mask of the rows with details. The others have no value; None if all rows have details.
            layout: The layout of the rows.
            bounds: Limits or bursts by row that the values are ratios of. Only rows with one above 0 have a value.

        """
        if layout is not self._layout:
            self._move_to(layout, bounds)
        rows = self._rows
        if not len(rows):
            return layout.absent
        places = self._places_of_rows[rows]
        current_values = values[rows]
        hidden = ~np.isfinite(current_values)
        if detailed is not None:
            hidden |= ~detailed[rows]
        current_values[hidden] = np.nan
        current = self._parts[0]
        current[places] = np.fmax(current[places], current_values)
        greatest = np.full(len(layout), np.nan)
        greatest[rows] = np.fmax.reduce(self._parts)[places]
        if detailed is not None:
            greatest[~detailed] = np.nan
        return fixed(greatest)

    def _move_to(self, layout: Layout, bounds: Floats) -> None:
        """Find the places of the rows of another layout, and add a place for each new entity that has a bound."""
        # a copy, because carried arrays are not writable
        places_of_rows = np.array(layout.carry(self._places_of_rows, self._layout, -1))
        rows = np.flatnonzero(bounds > 0)
        for row in rows[places_of_rows[rows] < 0].tolist():
            places_of_rows[row] = self._places.setdefault(int(layout.serials[row]), len(self._places))
        added_places = len(self._places) - self._parts.shape[1]
        self._parts = np.hstack([self._parts, np.full((_PARTS + 1, added_places), np.nan)])
        self._layout, self._rows, self._places_of_rows = layout, rows, places_of_rows
