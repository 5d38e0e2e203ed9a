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
_MUTATION_CAUSE: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
_FIELD_OF_COLUMN: Final = {
    "usage": "usage",
    "throttle_time": "throttle_time_seconds",
    "tokens": "tokens",
    "reported_utilization": "reported_utilization",
}
NAMES: Final = tuple(_FIELD_OF_COLUMN)
"""The columns of numbers; ``_FIELD_OF_COLUMN`` has the fields of ``EntityUsage`` that they hold."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """
    Arrays with a value for each row of a layout, float64 unless typed otherwise; NaN for no value.

    The arrays are never changed. A column without any value is ``layout.absent``.
    """

    layout: Layout
    usage: Floats
    """Usage in the unit of ``Entity.limit``; NaN where the node gave none."""
    throttle_time: Floats
    """
    Average throttle time of the last 30 to 60 s in seconds; 0 for no throttle, NaN where it is unknown.

    Under KRaft, the throttle time of controller mutations is the longest request throttle that refers to them
    (``deciders``).
    """
    tokens: Floats
    """Tokens of controller mutations under a limit; negative tokens are debt."""
    reported_utilization: Floats
    """Usage divided by limit as the node itself reports it; NaN if it reports none, or knows no limit."""
    causes: NDArray[np.int8]
    """The number of the cause in ``CAUSES``, 0 for rows that were not throttled."""
    deciders: Mapping[int, Entity] = field(default_factory=dict)
    """
    Entities whose mutation quota decides on a request throttle, by row of the request throttle.

    ``EntityUsage.decided_by`` has the details.
    """
    detailed: NDArray[np.bool_] | None = None
    """
    Mask of the rows with series of utilization, burst, rule and cause.

    Other rows lack them to save series. None if all rows have them.
    """

    @classmethod
    def of(cls, usages: Iterable[EntityUsage] = ()) -> Columns:
        """Return the columns of usages in any order. It takes every usage apart, so it is meant for a few usages."""
        ordered = sorted(usages, key=lambda usage: order(usage.entity))
        layout = Layout([usage.entity for usage in ordered])
        columns = {
            name: np.array([getattr(usage, field_name) for usage in ordered], np.float64)
            for name, field_name in _FIELD_OF_COLUMN.items()
        }
        detailed = np.array([usage.detailed for usage in ordered], np.bool_)
        return cls(
            layout=layout,
            **{name: layout.column(values) for name, values in columns.items()},
            causes=np.array([CAUSES.index(usage.cause) for usage in ordered], np.int8),
            deciders={row: usage.decided_by for row, usage in enumerate(ordered) if usage.decided_by is not None},
            detailed=None if detailed.all() else detailed,
        )

    def __len__(self) -> int:
        return len(self.layout)

    @cached_property
    def utilization(self) -> Floats:
        """Usage divided by limit, a ratio; NaN without usage or limit, and for a limit of 0."""
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
        """The same as ``utilization``, but infinite for any usage under a limit of 0."""
        violated = (self.layout.limits == 0) & (self.usage > 0)
        return fixed(np.where(violated, np.inf, self.utilization))

    @cached_property
    def pressure(self) -> Floats:
        """
        The larger of ``used`` and ``burst_used``. At 1 and above, requests of the entity are throttled or refused.

        It orders entities and is not shown.
        """
        return fixed(np.fmax(self.used, self.burst_used))

    @cached_property
    def held_back(self) -> NDArray[np.bool_]:
        """Mask of the entities that their own limit throttles, so that their usage is a lower bound of their demand."""
        limits, throttle_time, tokens = self.layout.limits, self.throttle_time, self.tokens
        # without a measured throttle, an entity at its limit counts as throttled
        is_at_limit = np.isnan(throttle_time) & np.isnan(tokens) & (self.usage >= limits)
        is_held_back: NDArray[np.bool_] = (throttle_time > 0) | (tokens < 0) | is_at_limit
        is_held_back &= np.isfinite(limits) & (self.causes != _MUTATION_CAUSE)
        return fixed(is_held_back)

    @cached_property
    def usages(self) -> Usages:
        """The usages of the entities of Kafka's own quotas."""
        return Usages(self, np.arange(len(self))[self.layout.own])

    @cached_property
    def tagged(self) -> Usages:
        """The usages of a custom quota callback's entities."""
        return Usages(self, np.arange(len(self))[self.layout.tagged])

    def usage_at(self, row: int) -> EntityUsage:
        """Return the usage in a row."""
        values = {field_name: float(getattr(self, name)[row]) for name, field_name in _FIELD_OF_COLUMN.items()}
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
    """Usages in some rows of columns. A usage is made when it is first read, and kept."""

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
        """Return the usages in the marked rows; the mask has a value for each row of the columns."""
        return Usages(self.columns, self.rows[mask[self.rows]])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False  # before any usage is made
        return [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
