"""
History on disk: a folder of four committed tables.

`history` holds one row a request; `seconds`, `minutes` and `hours` its sums. Each follows the one before it, the first the table of
requests: whatever is appended there is taken over exactly once, late requests included.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, Self

import pyarrow as pa

from ..table import Follower, Layout, Make, Run, Table, retried, run_here
from .charges import COLUMNS, history_of
from .rollup import KEY, SUMS, WIDTHS, add_up, rollup
from .schema import HISTORY, ORDER, ROLLUP

BUCKETS: Final = 16
"""How many buckets a history has unless told otherwise: as many workers can replay it at once."""


@dataclass(frozen=True, kw_only=True)
class History:
    """The tables of a usage history."""

    detail: Table
    """One row a request (`HISTORY`)."""
    rollups: Mapping[str, Table]
    """Sums (`ROLLUP`) by `seconds`, `minutes` and `hours`; a key may have several rows, which add up."""

    @classmethod
    def create(
        cls,
        folder: str,
        buckets: int = BUCKETS,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """
        Make the tables of a history, or open those that are there.

        Args:
            folder: a path or URI; each table is a folder in it.
            buckets: into how many parts users are spread; cannot be changed later.
            options: as in `Table.create`.

        Raises:
            TableError: they cannot be made, or are of another release.

        """
        sums = _layout(KEY, "start", buckets, SUMS)
        return cls(
            detail=Table.create(f"{folder}/history", HISTORY, _layout(ORDER, "timestamp", buckets), options),
            rollups={name: Table.create(f"{folder}/{name}", ROLLUP, sums, options) for name in WIDTHS},
        )  # fmt: skip

    @classmethod
    def open(cls, folder: str, options: Mapping[str, str] | None = None) -> Self:
        """
        Open the tables of a history.

        Raises:
            NoTable: there is none.

        """
        return cls(
            detail=Table.open(f"{folder}/history", options),
            rollups={name: Table.open(f"{folder}/{name}", options) for name in WIDTHS},
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """All four."""
        return (self.detail, *self.rollups.values())

    def followers(self, requests: Table) -> Iterator[Follower]:
        """Yield what makes each table of the one before it, in the order in which they follow."""
        detail, sums = self.detail, self.rollups
        yield Follower(source=requests, target=detail, make=history_of, columns=COLUMNS)
        make: Make = partial(rollup, width_ms=WIDTHS["seconds"])
        yield Follower(source=detail, target=sums["seconds"], make=make)
        for shorter, longer in pairwise(WIDTHS):
            make = partial(add_up, width_ms=WIDTHS[longer])
            yield Follower(source=sums[shorter], target=sums[longer], make=make)

    def update(self, requests: Table, run: Run = run_here) -> int:
        """
        Take over what was appended to the table of requests since last time; return how many requests were new.

        Args:
            requests: a table of `quotascope.pipeline.request_log.schema.REQUESTS`.
            run: where the work is done.

        Raises:
            TableError: see `Follower.follow`; what was taken over before that stays, and the next update goes on from there. An update
                that another process does at the same time is waited for by trying again (`retried`).

        """
        new, *_ = [
            retried(partial(follower.follow, run))
            for follower in self.followers(requests)
        ]
        return new

    def compact(self, run: Run = run_here) -> int:
        """Merge the files of each bucket and day in all tables; return how many were replaced."""
        return sum(table.compact(run=run) for table in self.tables)

    def drop_before(self, day: dt.date) -> int:
        """Take the requests before a day (UTC) out of the detail, and their seconds; return how many requests went. The longer sums stay."""
        gone = self.detail.drop_before(day)
        self.rollups["seconds"].drop_before(day)
        return gone


def totals(sums: pa.Table) -> pa.Table:
    """Return one row for each key of a roll-up, sorted by `KEY`."""
    return add_up(sums, 1).sort_by([(name, "ascending") for name in KEY])


def _layout(
    order: tuple[str, ...], day_of: str, buckets: int, sums: tuple[str, ...] = ()
) -> Layout:
    return Layout(
        order=order, bucket_of="user", buckets=buckets, day_of=day_of, sums=sums
    )
