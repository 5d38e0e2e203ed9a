"""What the entities of a layout used at one moment, by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from .entity import EntityUsage, ThrottleCause
from .layout import Floats, Layout, Rows, fixed, order

CAUSES: Final = (None, *ThrottleCause)
"""Causes by their number in ``Columns.causes``."""
_FIELDS: Final = {
    "usage": "usage",
    "throttle_time": "throttle_time_seconds",
    "tokens": "tokens",
    "reported_utilization": "reported_utilization",
    "throttled_seconds": "throttled_seconds_total",
    "throttled_requests": "throttled_requests_total",
    "refused_mutations": "refused_mutations_total",
}
NAMES: Final = tuple(_FIELDS)
"""The columns of numbers; ``_FIELDS`` has the fields of ``EntityUsage`` that they hold."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """
    Arrays with a value for each row of a layout, NaN where there is none; all of float64 unless said otherwise. Never changed once made.

    A column without any value is ``layout.absent``.
    """

    layout: Layout
    usage: Floats
    """In the unit of ``Entity.limit``; NaN where the node gave none."""
    throttle_time: Floats
    """Average throttle of the last 30 to 60 s in seconds, 0 when there was none, NaN where it is not known."""
    tokens: Floats
    """Controller mutations under a limit only; negative is debt."""
    reported_utilization: Floats
    """Usage divided by limit as the node itself reports it; NaN when it reports none, or knows no limit."""
    throttled_seconds: Floats
    """Total; embedded engines only, as the next two."""
    throttled_requests: Floats
    """Total."""
    refused_mutations: Floats
    """Total; controller mutations only."""
    causes: NDArray[np.int8]
    """The number of the cause in ``CAUSES``, 0 for rows that were not throttled."""
    detailed: NDArray[np.bool_] | None = None
    """False where utilization, burst, rule and cause series are left out to save series; None when nowhere."""

    @classmethod
    def of(cls, usages: Iterable[EntityUsage] = ()) -> Columns:
        """The columns of usages in any order: for a few, since each is taken apart."""
        rows = sorted(usages, key=lambda usage: order(usage.entity))
        layout = Layout([row.entity for row in rows])
        columns = {name: np.array([getattr(row, of) for row in rows], np.float64) for name, of in _FIELDS.items()}
        detailed = np.array([row.detailed for row in rows], np.bool_)
        return cls(
            layout=layout,
            **{name: layout.column(values) for name, values in columns.items()},
            causes=np.array([CAUSES.index(row.cause) for row in rows], np.int8),
            detailed=None if detailed.all() else detailed,
        )

    def __len__(self) -> int:
        return len(self.layout)

    @cached_property
    def utilization(self) -> Floats:
        """Usage divided by limit, a ratio; NaN without either, and for a limit of 0."""
        limits = self.layout.limits
        with np.errstate(invalid="ignore", over="ignore"):
            return fixed(self.usage / np.where(limits > 0, limits, np.nan))

    @cached_property
    def burst_used(self) -> Floats:
        """1 - tokens / burst: 1 is an empty bucket, above 1 is debt."""
        if self.tokens is self.layout.absent:
            return self.layout.absent
        bursts = self.layout.bursts
        with np.errstate(invalid="ignore", over="ignore"):
            return fixed(1 - self.tokens / np.where(bursts > 0, bursts, np.nan))

    @cached_property
    def used(self) -> Floats:
        """
        The larger of the parts of the limit and of the burst that are used; at 1 and above the entity is throttled or refused.

        Infinite for any usage of a limit of 0, which violates it.
        """
        violated = (self.layout.limits == 0) & (self.usage > 0)
        return fixed(np.where(violated, np.inf, np.fmax(self.utilization, self.burst_used)))

    @cached_property
    def usages(self) -> Usages:
        """The rows of Kafka's own quotas, one by one."""
        return Usages(self, np.arange(len(self))[self.layout.own])

    @cached_property
    def tagged(self) -> Usages:
        """The rows of a custom quota callback, one by one."""
        return Usages(self, np.arange(len(self))[self.layout.tagged])

    def usage_at(self, row: int) -> EntityUsage:
        """What one entity used."""
        values = {of: float(getattr(self, name)[row]) for name, of in _FIELDS.items()}
        known: dict[str, Any] = {of: None if isnan(value) else value for of, value in values.items()}
        return EntityUsage(
            entity=self.layout.entities[row],
            cause=CAUSES[self.causes[row]],
            detailed=self.detailed is None or bool(self.detailed[row]),
            **known,
        )


class Usages(Sequence[EntityUsage]):
    """Rows of columns; each is made once, when it is first read."""

    def __init__(self, columns: Columns, rows: Rows) -> None:
        self.columns = columns
        self.rows = rows
        self._made: list[EntityUsage | None] = [None] * len(rows)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> EntityUsage: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[EntityUsage]: ...
    def __getitem__(self, at: int | slice) -> EntityUsage | Sequence[EntityUsage]:
        if isinstance(at, slice):
            return Usages(self.columns, self.rows[at])
        made = self._made[at]
        if made is None:
            made = self._made[at] = self.columns.usage_at(int(self.rows[at]))
        return made

    def where(self, wanted: NDArray[np.bool_]) -> Usages:
        """Those for which an array with a value for each row of the columns is true."""
        return Usages(self.columns, self.rows[wanted[self.rows]])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False  # before any row is made
        return [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
