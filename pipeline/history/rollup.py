"""
Sums of history by second, minute and hour.

Everything is an integer: bytes and partitions are, and thread time is taken in whole microseconds, which is what brokers log. So the sums
are the same on one machine and on many, whatever is added first.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import QuotaType

from ..table.partitions import Numbers
from .grouping import Groups
from .schema import ROLLUP, Column

WIDTHS: Final = {"seconds": 1_000, "minutes": 60_000, "hours": 3_600_000}
"""Names of the roll-ups, and the ms that a row of each spans."""
KEY: Final = ("user", "client_id", "broker", "quota_type", "start")
"""What a sum is about."""
SUMS: Final = ("requests", "amount", "throttled", "throttle_ms")
"""What is added up."""

_NAMES: Final = ("user", "client_id", "broker")


def rollup(history: pa.Table, width_ms: int) -> pa.Table:
    """
    Add up history over spans of `width_ms`.

    Bytes, handler time and partitions count when they were charged, network time when the response had left.

    Returns:
        Rows of `ROLLUP`, one for each key, in no particular order.

    """
    clients = Groups.of(history, _NAMES)
    return pa.concat_tables(_charged(clients, history, width_ms))


def add_up(sums: pa.Table, width_ms: int) -> pa.Table:
    """Add up rows of `ROLLUP` over longer spans, to one row for each key: those of seconds give those of minutes."""
    groups = Groups.of(sums, (*_NAMES, "quota_type"))
    values = [sums.column(name).to_numpy() for name in SUMS]
    names, starts, totals = groups.sums(
        sums.column("start").to_numpy(), width_ms, values
    )
    return _rows(names, names.column("quota_type"), starts, totals)


def _charged(clients: Groups, history: pa.Table, width_ms: int) -> Iterator[pa.Table]:
    decided = history.column("timestamp")
    mutated = pc.coalesce(history.column("mutation_timestamp"), decided)
    charges: dict[QuotaType, list[tuple[Column, Column]]] = {
        QuotaType.PRODUCE: [(decided, history.column("produce_bytes"))],
        QuotaType.FETCH: [(decided, history.column("fetch_bytes"))],
        QuotaType.REQUEST: [
            (decided, _us(history.column("request_ms"))),
            (history.column("completed"), _us(history.column("network_ms"))),
        ],
        QuotaType.CONTROLLER_MUTATION: [(mutated, history.column("mutations_charged"))],
    }
    told = _told(history)
    for quota_type, parts in charges.items():
        yield _sums_of(quota_type, clients, parts, told, width_ms)


def _sums_of(
    quota_type: QuotaType,
    clients: Groups,
    parts: Sequence[tuple[Column, Column]],
    told: Sequence[Numbers],
    width_ms: int,
) -> pa.Table:
    """Add up what one quota is charged; only the first part, of the decision, counts a request and what it was told."""
    of_row, starts, values = list[Numbers](), list[Numbers](), list[list[Numbers]]()
    for counts, (times, amounts) in zip((1, 0), parts, strict=False):
        charged: Numbers = pc.fill_null(amounts, 0).to_numpy().astype(np.int64)
        valid: Column = pc.is_valid(amounts)
        chosen = valid.to_numpy() & (charged > 0 if not counts else True)
        of_row.append(clients.of_row[chosen])
        starts.append(times.to_numpy()[chosen])
        ones = np.full(len(starts[-1]), counts, np.int64)
        values.append(
            [ones, charged[chosen], *(each[chosen] * counts for each in told)]
        )
    groups = Groups(of_row=np.concatenate(of_row), names=clients.names)
    columns = [np.concatenate(column) for column in zip(*values, strict=True)]
    names, begins, sums = groups.sums(np.concatenate(starts), width_ms, columns)
    return _rows(names, pa.repeat(quota_type.label, len(begins)), begins, sums)


def _told(history: pa.Table) -> tuple[Numbers, Numbers]:
    """Return whether each request was held back, and the ms of its wait."""
    waits: Column = history.column("throttle_ms")
    refused: Column = history.column("refused")
    throttle_ms: Numbers = np.maximum(waits.to_numpy(), 0).astype(np.int64)
    return ((throttle_ms > 0) | refused.to_numpy()).astype(np.int64), throttle_ms


def _rows(
    names: pa.Table, quota_types: Column, starts: Numbers, sums: list[Numbers]
) -> pa.Table:
    columns: dict[str, Column] = {name: names.column(name) for name in _NAMES}
    columns |= {"quota_type": quota_types, "start": starts}
    columns |= dict(zip(SUMS, sums, strict=True))
    return pa.table(columns, schema=ROLLUP)


def _us(times_ms: Column) -> Column:
    return pc.round(pc.multiply(times_ms, 1000.0)).cast(pa.int64(), safe=False)
