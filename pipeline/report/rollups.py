"""Usage of groups of clients, from the seconds of roll-ups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.pages.charts import Curve

from ..week import HOURS, QUARTER_MS, hours_of_week, seen_hours
from .summary import Group
from .usage import peaks, usage

COLUMNS: Final = ("user", "client_id", "broker", "quota_type", "start", "amount")
"""What is read of a roll-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a group used on the broker where its peak was highest."""

    broker: str
    usage: Curve
    by_hour: Sequence[float]
    """The highest peak in each hour of the week, Monday 00h first; NaN where the history has no request of anybody, 0 where it has none of the group."""


@dataclass(slots=True)
class _Seconds:
    """What was used on one broker; a second may come in several rows."""

    starts: list[NDArray[np.int64]] = field(default_factory=list)
    amounts: list[NDArray[np.int64]] = field(default_factory=list)

    def sums(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Seconds in order, and what was used in each."""
        starts = np.concatenate(self.starts)
        seconds, whose = np.unique(starts, return_inverse=True)
        sums = np.zeros(seconds.size, np.int64)
        np.add.at(sums, whose, np.concatenate(self.amounts))
        return seconds, sums


def drawn(
    batches: Iterable[pa.RecordBatch],
    groups: Sequence[Group],
    span_ms: tuple[int, int],
    zone: tzinfo,
) -> dict[Group, Drawn]:
    """
    What the groups used; those that used nothing are missing.

    Args:
        batches: of a roll-up by seconds (`quotascope.pipeline.history.schema.ROLLUP`), in any order; only rows of these groups are kept.
        groups: those to be drawn.
        span_ms: beginning and end of the history.
        zone: whose hours and weekdays.

    """
    found: dict[Group, dict[str, _Seconds]] = {group: {} for group in groups}
    quarters = np.zeros(0, np.int64)
    for batch in batches:
        starts: Any = batch.column("start").to_numpy()
        quarters = np.union1d(quarters, starts // QUARTER_MS)
        for group in groups:
            _collect(group, batch, found[group])
    seen = seen_hours(quarters * QUARTER_MS, zone)
    return {
        group: _busiest(group, brokers, span_ms, zone, seen)
        for group, brokers in found.items()
        if brokers
    }


def _collect(group: Group, batch: pa.RecordBatch, brokers: dict[str, _Seconds]) -> None:
    wanted = {"quota_type": group.kind.label, "user": group.user, "client_id": group.client_id}  # fmt: skip
    keep = np.ones(batch.num_rows, np.bool_)
    for name, value in wanted.items():
        if value is not None:
            keep &= _equal(batch, name, value)
    rows = batch.filter(pa.array(keep))
    names: list[str] = [
        str(name) for name in rows.column("broker").unique().to_pylist()
    ]
    for broker in names:
        own = rows.filter(pa.array(_equal(rows, "broker", broker)))
        seconds = brokers.setdefault(broker, _Seconds())
        seconds.starts.append(own.column("start").to_numpy())
        seconds.amounts.append(own.column("amount").to_numpy())


def _equal(batch: pa.RecordBatch, name: str, value: str) -> NDArray[np.bool_]:
    column: Any = batch.column(name)
    same: NDArray[np.bool_] = pc.equal(column, pa.scalar(value)).to_numpy(zero_copy_only=False)  # fmt: skip
    return same


def _busiest(
    group: Group,
    brokers: dict[str, _Seconds],
    span_ms: tuple[int, int],
    zone: tzinfo,
    seen: NDArray[np.bool_],
) -> Drawn:
    made = [(broker, *seconds.sums()) for broker, seconds in sorted(brokers.items())]
    highest = max(made, key=lambda each: peaks(group.kind, each[1], each[2]).max())
    broker, starts, amounts = highest
    return Drawn(
        broker=broker,
        usage=usage(group.kind, starts, amounts, span_ms),
        by_hour=_by_hour(starts, peaks(group.kind, starts, amounts), zone, seen),
    )


def _by_hour(
    starts: NDArray[np.int64],
    rates: NDArray[np.float64],
    zone: tzinfo,
    seen: NDArray[np.bool_],
) -> Sequence[float]:
    highest = np.where(seen, 0.0, np.nan)
    found = np.zeros(HOURS)
    np.maximum.at(found, hours_of_week(starts, zone), rates)
    hours: list[float] = np.where(found > 0, found, highest).tolist()
    return hours
