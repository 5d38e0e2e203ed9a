"""The usage of the entities of a layout at one moment, by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from .entity import Entity, EntityUsage, ThrottleCause
from .layout import Floats, Layout, Rows, fixed, order

CAUSES: Final = (None, *ThrottleCause)
"""Causes by their number in ``Columns.causes``."""
_NOT_ITS_OWN: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
_FIELDS: Final = {
    "usage": "usage",
    "throttle_time": "throttle_time_seconds",
    "tokens": "tokens",
    "reported_utilization": "reported_utilization",
}
NAMES: Final = tuple(_FIELDS)
"""The columns of numbers; ``_FIELDS`` has the fields of ``EntityUsage`` that they hold."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """
    Arrays with a value for each row of a layout, NaN where there is none; all of float64 unless said otherwise.

    Never changed once made. A column without any value is ``layout.absent``.
    """

    layout: Layout
    usage: Floats
    """Usage in the unit of ``Entity.limit``; NaN where the node gave none."""
    throttle_time: Floats
    """
    Average throttle of the last 30 to 60 s in seconds, 0 when there was none, NaN where it is not known.

    Under KRaft that of controller mutations is the longest request throttle that refers to them (``deciders``).
    """
    tokens: Floats
    """Controller mutations under a limit only; negative is debt."""
    reported_utilization: Floats
    """Usage divided by limit as the node itself reports it; NaN when it reports none, or knows no limit."""
    causes: NDArray[np.int8]
    """The number of the cause in ``CAUSES``, 0 for rows that were not throttled."""
    deciders: Mapping[int, Entity] = field(default_factory=dict)
    """
    By row of a request throttle of controller mutations: the entity whose quota decides, as ``EntityUsage.decided_by``.
    """
    detailed: NDArray[np.bool_] | None = None
    """
    False where series of utilization, burst, rule and cause are left out to save series; None if they are left out
    nowhere.
    """

    @classmethod
    def of(cls, usages: Iterable[EntityUsage] = ()) -> Columns:
        """Return the columns of usages in any order. This is for a few usages, since it takes each one apart."""
        rows = sorted(usages, key=lambda usage: order(usage.entity))
        layout = Layout([row.entity for row in rows])
        columns = {
            name: np.array([getattr(row, field_name) for row in rows], np.float64)
            for name, field_name in _FIELDS.items()
        }
        detailed = np.array([row.detailed for row in rows], np.bool_)
        return cls(
            layout=layout,
            **{name: layout.column(values) for name, values in columns.items()},
            causes=np.array([CAUSES.index(row.cause) for row in rows], np.int8),
            deciders={place: row.decided_by for place, row in enumerate(rows) if row.decided_by is not None},
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
        """Usage divided by limit, as ``utilization``, but infinite for any usage under a limit of 0."""
        violated = (self.layout.limits == 0) & (self.usage > 0)
        return fixed(np.where(violated, np.inf, self.utilization))

    @cached_property
    def pressure(self) -> Floats:
        """
        The larger of ``used`` and ``burst_used``: at 1 and above the entity is throttled or refused.

        This number orders entities, and is not shown.
        """
        return fixed(np.fmax(self.used, self.burst_used))

    @cached_property
    def held_back(self) -> NDArray[np.bool_]:
        """Return whether the limit of an entity throttles it, so that its usage is a lower bound of its demand."""
        limits, delays, tokens = self.layout.limits, self.throttle_time, self.tokens
        at_limit = np.isnan(delays) & np.isnan(tokens) & (self.usage >= limits)
        is_held_back: NDArray[np.bool_] = (delays > 0) | (tokens < 0) | at_limit
        is_held_back &= np.isfinite(limits) & (self.causes != _NOT_ITS_OWN)
        return fixed(is_held_back)

    @cached_property
    def usages(self) -> Usages:
        """The rows of Kafka's own quotas, one by one."""
        return Usages(self, np.arange(len(self))[self.layout.own])

    @cached_property
    def tagged(self) -> Usages:
        """The usages of a custom quota callback's entities."""
        return Usages(self, np.arange(len(self))[self.layout.tagged])

    def usage_at(self, row: int) -> EntityUsage:
        """Return the usage of one entity."""
        values = {field_name: float(getattr(self, name)[row]) for name, field_name in _FIELDS.items()}
        values_or_none: dict[str, Any] = {
            field_name: None if isnan(value) else value for field_name, value in values.items()
        }
        return EntityUsage(
            entity=self.layout.entities[row],
            cause=CAUSES[self.causes[row]],
            decided_by=self.deciders.get(row),
            detailed=self.detailed is None or bool(self.detailed[row]),
            **values_or_none,
        )


class Usages(Sequence[EntityUsage]):
    """Rows of columns as usages; each usage is made once, when it is first read."""

    def __init__(self, columns: Columns, rows: Rows) -> None:
        self.columns = columns
        self.rows = rows
        self._usages: list[EntityUsage | None] = [None] * len(rows)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> EntityUsage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EntityUsage]: ...
    def __getitem__(self, index: int | slice) -> EntityUsage | Sequence[EntityUsage]:
        if isinstance(index, slice):
            return Usages(self.columns, self.rows[index])
        usage = self._usages[index]
        if usage is None:
            usage = self._usages[index] = self.columns.usage_at(int(self.rows[index]))
        return usage

    def where(self, mask: NDArray[np.bool_]) -> Usages:
        """Return the rows where an array with a value for each row of the columns is true."""
        return Usages(self.columns, self.rows[mask[self.rows]])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False  # before any usage is made
        return [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
