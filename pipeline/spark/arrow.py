"""
`DataFrame.mapInArrow` and `GroupedData.applyInArrow` without pandas, and with errors that arrive in the driver as they were raised.

PySpark asks for pandas before it makes such a plan, and then has no use for it: what goes to the workers and comes back is Arrow. Where
pandas is not installed it is not asked for (`_without_pandas`). Spark Connect needs pandas for everything, so that its frames always have it.
"""

import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from ..errors import PipelineError, SparkFailed, restored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]

ANSWER: Final = "answer binary"
"""The schema of answers that are no rows (`answer_of`)."""
_RAISED: Final = "quotascope error: "
"""In front of an error of ours, as JSON, in the text of what a worker raises: Spark brings home nothing else of an exception."""
_SECRET: Final = re.compile(r"(?i)(password\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s;,]+)")
_MOST: Final = 500
"""Characters of a reason of Spark's."""


def ddl(schema: pa.Schema) -> str:
    """A schema of Arrow as Spark's DDL."""
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - workers do without

    kinds = [(column.name, from_arrow_type(column.type)) for column in schema]
    return ", ".join(f"`{name}` {kind.simpleString()}" for name, kind in kinds)


def map_in_arrow(frame: "DataFrame", work: Work, schema: str) -> "DataFrame":
    """What the work makes of each partition's batches; `schema` is DDL. `collected` raises again what the work raises."""

    def marked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with errors_marked():
            yield from work(batches)

    with _without_pandas():
        return frame.mapInArrow(marked, schema)


def apply_in_arrow(frame: "DataFrame", key: str, work: Callable[[pa.Table], pa.Table], schema: str) -> "DataFrame":
    """
    What the work makes of all rows that have a value of one column; they are shuffled, and come in any order.

    A worker holds the rows of one value in memory. `schema` is DDL; `collected` raises again what the work raises.

    Raises:
        SparkFailed: Spark is older than 4.0, which has no `applyInArrow`.

    """
    if frame.sparkSession.version.startswith("3."):
        raise SparkFailed(
            f"this takes Spark 4.0 or newer, and Spark here is {frame.sparkSession.version}; commands do it in one process as well (--engine local)"
        )

    def marked(table):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - from annotations PySpark would guess what it is
        with errors_marked():
            return work(table)

    with _without_pandas():
        return frame.groupBy(key).applyInArrow(marked, schema)


def collected(frame: "DataFrame") -> "list[Row]":
    """All rows of a frame; raises what `errors_restored` raises."""
    with errors_restored():
        return frame.collect()


def answer_of(value: object) -> pa.RecordBatch:
    """A worker's answer as a row, from which `answers_in` takes it again."""
    return pa.RecordBatch.from_pydict({"answer": [pickle.dumps(value)]})


def answers_in(rows: "Iterable[Row]") -> list[Any]:
    """The answers of workers, in the order of the rows."""
    return [pickle.loads(row.answer) for row in rows]  # noqa: S301 - of our own workers


def error_of(text: str) -> PipelineError:
    """The error of ours in what Spark says, else a `SparkFailed` with its reason."""
    _, marked, rest = text.partition(_RAISED)
    if marked:
        kind, message, state = json.JSONDecoder().raw_decode(rest)[0]
        known = {each.__name__: each for each in _kinds(PipelineError)}
        return restored(known.get(kind, PipelineError), message, state)
    return SparkFailed(f"Spark gave up: {_reason(text)}; what it logged before says more")


@contextmanager
def errors_restored() -> Iterator[None]:
    """
    Raise what Spark raises as an error of ours.

    Raises:
        PipelineError: the one that a worker, or what Spark called in the driver, raised under `errors_marked`.
        SparkFailed: Spark gave up for another reason.

    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as late as can be

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise error_of(str(error)) from error


@contextmanager
def errors_marked() -> Iterator[None]:
    """Raise errors of ours in a way that they can be found in what Spark says."""
    try:
        yield
    except PipelineError as error:
        state = {key: each for key, each in vars(error).items() if isinstance(each, str)}
        text = json.dumps([type(error).__name__, str(error), state])
        raise RuntimeError(f"{_RAISED}{text}") from None


def _kinds(kind: type[PipelineError]) -> Iterator[type[PipelineError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


def _reason(text: str) -> str:
    """The exception of a worker's traceback, else what the JVM says first, on one line."""
    lines = [line.strip(" :\t") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "... "))]
    if any(line.startswith("Traceback (most recent") for line in lines):
        lines.reverse()
    found = next((line for line in lines if not line.startswith("An error occurred while calling")), "no reason")
    return _SECRET.sub(r"\1[hidden]", found)[:_MOST]


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Let PySpark make plans without pandas, where it is not installed."""
    from pyspark.sql.pandas import functions  # noqa: PLC0415 - as late as can be

    plans: Any = functions  # which has it from another module
    asked = plans.require_minimum_pandas_version
    if not find_spec("pandas"):
        plans.require_minimum_pandas_version = lambda: None
    try:
        yield
    finally:
        plans.require_minimum_pandas_version = asked
