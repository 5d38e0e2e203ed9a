"""Whether this process does the work, or Spark, and in which parts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import Enum
from importlib.util import find_spec
from typing import Final

import pyarrow as pa

from ..errors import PipelineError
from ..table import File, Table
from ..table.storage import buckets_of
from ..table.table import Run, run_here

MOST_LOCAL_ROWS: Final = 50_000_000
"""Rows of history above which Spark is worth its start, where it is installed."""
MOST_LOCAL_BYTES: Final = 50_000_000_000
"""The same in bytes of request logs."""
SHARE: Final = 1 << 23
"""Rows of a bucket that a worker holds at once, if no user has more."""
_ENCODED: Final = pa.dictionary(pa.int32(), pa.string())
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit."""


class Engine(Enum):
    """What does the work. The results are the same."""

    AUTO = "auto"
    """Spark under spark-submit, and for large input where it is installed; else this process."""
    LOCAL = "local"
    SPARK = "spark"


def chosen(engine: Engine, size: int, most: int) -> Engine:
    """LOCAL or SPARK for input of that size, of which `most` is for this process."""
    if engine is not Engine.AUTO:
        return engine
    if _SUBMITTED in os.environ:
        return Engine.SPARK
    large = size > most and find_spec("pyspark") is not None
    return Engine.SPARK if large else Engine.LOCAL


class NoSpark(PipelineError):
    """Spark was requested and is not installed."""


def run_of(engine: Engine, doing: str = "parts of tables") -> Run:
    """
    What gives work to this process, or to the workers of the Spark session, which is begun if need be.

    Args:
        engine: LOCAL or SPARK.
        doing: what Spark's UI calls the parts of the work.

    Raises:
        NoSpark: it is not installed.

    """
    if engine is not Engine.SPARK:
        return run_here
    if find_spec("pyspark") is None:
        raise NoSpark("PySpark is not installed: pip install pyspark, or run this with spark-submit")
    from ..spark.run import SparkRun, session  # noqa: PLC0415 - brings Spark in

    return SparkRun(session(), doing)


def run_for(engine: Engine, history: Table, doing: str) -> Run:
    """As `run_of`, by the size of a history."""
    rows = sum(file.rows for file in history.files())
    return run_of(chosen(engine, rows, MOST_LOCAL_ROWS), doing)


def parts_of(history: Table, *, across_users: bool) -> Sequence[Sequence[File]]:
    """The files of each bucket of users; all of them together where users share limits."""
    buckets = list(history.buckets().values())
    if across_users and buckets:
        return [[file for bucket in buckets for file in bucket]]
    return buckets


def whole_users(
    history: Table, files: Sequence[File], columns: Sequence[str], *, across_users: bool
) -> Iterator[pa.Table]:
    """
    Yield the rows of the files of a part in tables that hold all rows of some users each, in no particular order.

    Names are dictionaries of 32 bits, so that a row has about 100 bytes however long they are. A table has about `SHARE` rows at most,
    or those of one user; of more rows the files are read once for each table.

    Args:
        history: the table.
        files: of a part, as `parts_of` has them.
        columns: in their order.
        across_users: one table of all rows.

    """
    fields = [history.schema.field(name) for name in columns]
    wanted = pa.schema([each.with_type(_ENCODED) if each.type == pa.string() else each for each in fields])
    key, buckets = history.layout.bucket_of, history.layout.buckets
    whole = across_users or key is None
    shares = 1 if whole else max(1, -(-sum(file.rows for file in files) // SHARE))
    for share in range(shares):
        parts = [wanted.empty_table()]  # other programs may leave files without rows
        for file in files:
            for batch in history.storage.batches(file, wanted):
                rows = pa.Table.from_batches([batch])
                if shares > 1 and key is not None:
                    numbers = buckets_of(rows.column(key), buckets * shares)
                    rows = rows.filter(pa.array(numbers // buckets == share))
                parts.append(rows)
        yield pa.concat_tables(parts)
