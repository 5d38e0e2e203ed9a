"""The choice of the engine: this process or Spark."""

from __future__ import annotations

import os
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ..engine import Engine, Local
from ..errors import PipelineError
from ..table import Table

if TYPE_CHECKING:
    from ..spark.engine import Spark

MOST_LOCAL_ROWS: Final = 50_000_000
"""Number of rows of history above which Spark is worth its start, if it is installed."""
MOST_LOCAL_BYTES: Final = 50_000_000_000
"""Number of bytes of request logs above which Spark is worth its start, likewise."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Variable that spark-submit sets."""


class EngineChoice(Enum):
    """Choice of the engine that does the work. The results are the same."""

    AUTO = "auto"
    """Spark under spark-submit, and for large input if it is installed; else this process."""
    LOCAL = "local"
    SPARK = "spark"


class NoSpark(PipelineError):
    """Spark was requested and is not installed."""


def chosen(choice: EngineChoice, size: int, limit: int) -> EngineChoice:
    """Return LOCAL or SPARK for input of a size; up to `limit` this process does the work."""
    if choice is not EngineChoice.AUTO:
        return choice
    if _SUBMITTED in os.environ:
        return EngineChoice.SPARK
    large = size > limit and find_spec("pyspark") is not None
    return EngineChoice.SPARK if large else EngineChoice.LOCAL


def engine_of(choice: EngineChoice, doing: str = "parts of tables") -> Engine:
    """
    Return the engine.

    Args:
        choice: LOCAL or SPARK.
        doing: name of the items of `Engine.map` in Spark's UI.

    Raises:
        NoSpark: Spark is chosen, and not installed.

    """
    return on_spark(doing) if choice is EngineChoice.SPARK else Local()


def engine_for(choice: EngineChoice, history: Table, doing: str) -> Engine:
    """Return `engine_of` for the size of a history."""
    rows = sum(file.rows for file in history.files())
    return engine_of(chosen(choice, rows, MOST_LOCAL_ROWS), doing)


def on_spark(doing: str = "parts of tables") -> Spark:
    """
    Return the engine on the Spark session, which is begun if need be.

    Raises:
        NoSpark: Spark is not installed.

    """
    if find_spec("pyspark") is None:
        raise NoSpark("PySpark is not installed: pip install pyspark, or run this with spark-submit")
    from ..spark.engine import Spark  # noqa: PLC0415 - brings Spark in
    from ..spark.session import session  # noqa: PLC0415 - as above

    return Spark(session(), doing)
