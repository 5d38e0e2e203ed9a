"""The engine that does all work in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from ..columns import GroupKey
from ..ingest import IngestOptions, IngestReport, ingest
from ..ingest.files import path_here
from ..table import Progress, Table
from ..table.users import encoded
from .base import Answer, Engine, Item

if TYPE_CHECKING:
    from ..blame.intervals import Intervals
    from ..blame.summing import Plan, Requests, Sums


class Local(Engine):
    """Does the work in this process, one item after the other."""

    def map(
        self, work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
    ) -> Iterator[Answer]:
        """Yield the answers; progress is in items."""
        for done, item in enumerate(items, start=1):
            yield work(item)
            if progress is not None:
                progress(done, len(items))

    def grouped(
        self,
        table: Table,
        columns: Sequence[str],
        key: GroupKey,  # noqa: ARG002 - all groups are together
        work: Callable[[pa.Table], Answer],
        doing: str,  # noqa: ARG002 - shown nowhere
        progress: Progress | None = None,
    ) -> Iterable[Answer]:
        """Return the answer of the work on all rows at once, none for a table without files."""
        files = [file for shard in table.shards().values() for file in shard]
        return self.map(lambda files: work(encoded(table, files, columns)), [files] if files else [], progress)

    def waits(self, requests: Requests, threads: int | None, progress: Progress | None = None) -> tuple[Plan, Sums]:
        """Read all requests into memory, and attribute the waits of one pool after the other."""
        from ..blame.intervals import merged, read  # noqa: PLC0415 - brings Numba in, which ingest does not need
        from ..blame.summing import Sums, Survey  # noqa: PLC0415 - likewise

        files = chain.from_iterable(requests.shards)
        intervals = merged([*read(requests.table, files, requests.names, requests.span_us)])
        plan = requests.plan([Survey.of(intervals)], threads)
        sums = self.map(partial(_of_pool, intervals, plan), range(len(plan.threads)), progress)
        return plan, Sums.of(pa.concat_tables(sums))

    def ingest(
        self, paths: Sequence[str], into: str, options: IngestOptions, *, shards: int, progress: Progress
    ) -> IngestReport:
        """Commit one chunk of lines after the other; progress is in bytes of the logs."""
        return ingest([path_here(path) for path in paths], into, options, progress, shards=shards)


def _of_pool(intervals: Intervals, plan: Plan, pool: int) -> pa.Table:
    """Return the sums of all requests of a pool as one piece."""
    from ..blame.summing import sums_of  # noqa: PLC0415 - as above

    return sums_of(intervals.of_pool(plan.head.pools[0][pool]), plan, pool, plan.begin_us, plan.end_us)
