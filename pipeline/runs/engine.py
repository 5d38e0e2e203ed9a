"""Whether this process does the work, or Spark, and in which parts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from importlib.util import find_spec
from typing import Final

from ..errors import PipelineError
from ..table import File, Table
from ..table.table import Run, run_here

MOST_LOCAL_ROWS: Final = 50_000_000
"""Rows of history above which Spark is worth its start, where it is installed."""
MOST_LOCAL_BYTES: Final = 50_000_000_000
"""The same in bytes of request logs."""
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
