"""What the entities of a layout used at one moment, by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from .entity import Cause, EntityUsage
from .layout import Floats, Layout, Rows, fixed, order

CAUSES: Final = (None, *Cause)
"""Causes by their number in ``Columns.causes``."""
NAMES: Final = (
    "usage", "throttle_time", "tokens", "reported_utilization",
    "throttled_seconds", "throttled_requests", "rejected_mutations",
)  # fmt: skip
"""The columns of numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """
    Arrays with a value for each row of a layout, NaN where there is none; all of float64 unless said otherwise. Never changed once made.

    A column without any value is ``layout.absent``.
    """

    layout: Layout
    usage: Floats
    """In the unit of ``Entity.limit``."""
    throttle_time: Floats
    """Average throttle of the last 30 to 60 s in seconds, 0 when there was none, NaN where it is not known."""
    tokens: Floats
    """Controller mutations under a limit only; negative is debt."""
    reported_utilization: Floats
    """Usage divided by limit as the node itself tells it."""
    throttled_seconds: Floats
    """Total; embedded engines only, as the next two."""
    throttled_requests: Floats
    """Total."""
    rejected_mutations: Floats
    """Total."""
    causes: NDArray[np.int8]
    """The number of the cause in ``CAUSES``, 0 for rows that were not throttled."""
    detailed: NDArray[np.bool_] | None = None
    """False where utilization, burst, rule and cause series are left out for the sake of their number; None when nowhere."""

    @classmethod
    def of(cls, usages: Iterable[EntityUsage]) -> Columns:
        """The columns of usages in any order: for a few, since each is taken apart."""
        rows = sorted(usages, key=lambda usage: order(usage.entity))
        layout = Layout([row.entity for row in rows])
        columns = {name: _column(rows, name, layout) for name in NAMES}
        causes = np.array([CAUSES.index(row.cause) for row in rows], np.int8)
        detailed = np.array([row.detailed for row in rows], np.bool_)
        return cls(
            layout=layout, **columns, causes=causes, detailed=None if detailed.all() else detailed
        )  # fmt: skip

    @classmethod
    def none(cls) -> Columns:
        """Of no entity at all."""
        return cls.of(())

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
        """The part of its limit that an entity uses, or of its burst of mutations, where that is more; 1 and more mean that it has to wait."""
        return fixed(np.fmax(self.utilization, self.burst_used))

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
        return EntityUsage(
            entity=self.layout.entities[row],
            usage=_number(self.usage, row),
            throttle_time_seconds=_number(self.throttle_time, row) or 0.0,
            throttle_known=_number(self.throttle_time, row) is not None,
            tokens=_number(self.tokens, row),
            cause=CAUSES[self.causes[row]],
            throttled_seconds_total=_number(self.throttled_seconds, row),
            throttled_requests_total=_number(self.throttled_requests, row),
            rejected_mutations_total=_number(self.rejected_mutations, row),
            reported_utilization=_number(self.reported_utilization, row),
            detailed=self.detailed is None or bool(self.detailed[row]),
        )


class Usages(Sequence[EntityUsage]):
    """Rows of columns, each of them made when it is asked for, once."""

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

    def __iter__(self) -> Iterator[EntityUsage]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False  # before any row is made
        return [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]


def _column(rows: Sequence[EntityUsage], name: str, layout: Layout) -> Floats:
    field_name = _FIELDS.get(name, name)
    values = np.array(
        [np.nan if (v := getattr(row, field_name)) is None else v for row in rows], np.float64
    )  # fmt: skip
    if name == "throttle_time":
        values[[not row.throttle_known for row in rows]] = np.nan
    return layout.absent if np.isnan(values).all() else fixed(values)


_FIELDS: Final = {
    "throttle_time": "throttle_time_seconds",
    "throttled_seconds": "throttled_seconds_total",
    "throttled_requests": "throttled_requests_total",
    "rejected_mutations": "rejected_mutations_total",
}


def _number(values: Floats, row: int) -> float | None:
    value = float(values[row])
    return None if value != value else value  # noqa: PLR0124 - NaN
