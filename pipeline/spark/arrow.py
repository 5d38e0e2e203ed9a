"""
`DataFrame.mapInArrow` and `GroupedData.applyInArrow` without pandas, and with a worker's errors in the driver.

PySpark asks for pandas before it makes such a plan, and then has no use for it: what goes to the workers and comes back
is Arrow. Where pandas is not installed, the same plan is made by the JVM's methods that PySpark's own call (`_column`).
Spark Connect needs pandas for everything, so that its frames always have it.
"""

import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from ..errors import PipelineError, SparkFailed, is_of_spark, restored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]

ANSWER: Final = "answer binary"
"""Schema of answers that are no rows (`answer_of`)."""
_RAISED: Final = "quotascope error: "
"""
Text in front of an error of ours, as JSON, in the text of a worker's error.

Spark passes on no other part of an exception.
"""
_SECRET: Final = re.compile(r"(?i)(password\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s;,]+)")
_TRACEBACK: Final = "Traceback (most recent call last):"
_BETWEEN: Final = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
"""Lines between the tracebacks of a chain."""
_HAS_PANDAS: Final = find_spec("pandas") is not None
_MOST: Final = 500
"""Greatest number of characters of a reason of Spark's."""


def ddl(schema: pa.Schema) -> str:
    """Return a schema of Arrow as Spark's DDL."""
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - workers do without

    kinds = [(column.name, from_arrow_type(column.type)) for column in schema]
    return ", ".join(f"`{name}` {kind.simpleString()}" for name, kind in kinds)


def map_in_arrow(frame: "DataFrame", work: Work, schema: str) -> "DataFrame":
    """
    Return the result of the work on each partition's batches; `schema` is DDL.

    `collected` raises errors of the work again.
    """

    def marked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with errors_marked():
            yield from work(batches)

    if _HAS_PANDAS:
        return frame.mapInArrow(marked, schema)
    from pyspark.util import PythonEvalType  # noqa: PLC0415 - workers do without

    column = _column(frame, marked, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    # no barrier and, since Spark 4.0, no resource profile
    arguments = (column.expr(), False) if _is_spark_3(frame) else (column, False, None)
    return _frame(frame, frame._jdf.mapInArrow(*arguments))  # noqa: SLF001 - what PySpark's own method calls


def apply_in_arrow(frame: "DataFrame", key: str, work: Callable[[pa.Table], pa.Table], schema: str) -> "DataFrame":
    """
    Return the result of the work on all rows with one value of a column; rows are shuffled, and come in any order.

    A worker holds the rows of one value in memory. `schema` is DDL; `collected` raises errors of the work again.

    Raises:
        SparkFailed: Spark is older than 4.0, which has no `applyInArrow`.

    """
    if _is_spark_3(frame):
        raise SparkFailed(
            f"this takes Spark 4.0 or newer, and Spark here is {frame.sparkSession.version}; commands do it in one "
            "process as well (--engine local)"
        )

    # without annotations, from which PySpark would guess the kind of function
    def marked(table):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        with errors_marked():
            return work(table)

    groups = frame.groupBy(key)
    if _HAS_PANDAS:
        return groups.applyInArrow(marked, schema)
    from pyspark.util import PythonEvalType  # noqa: PLC0415 - workers do without

    column = _column(frame, marked, schema, PythonEvalType.SQL_GROUPED_MAP_ARROW_UDF)
    return _frame(frame, groups._jgd.flatMapGroupsInArrow(column))  # noqa: SLF001 - what PySpark's own method calls


def _is_spark_3(frame: "DataFrame") -> bool:
    """Return whether a frame is of Spark 3."""
    return frame.sparkSession.version.startswith("3.")


def _column(frame: "DataFrame", work: Callable[..., Any], schema: str, kind: int) -> Any:  # noqa: ANN401 - of the JVM
    """Return the call of a Python function with all columns of a frame, as a `Column` of the JVM."""
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415 - workers do without

    function = UserDefinedFunction(work, returnType=schema, evalType=kind)
    return function(*(frame[f"`{name.replace('`', '``')}`"] for name in frame.columns))._jc  # noqa: SLF001 - as above


def _frame(frame: "DataFrame", plan: Any) -> "DataFrame":  # noqa: ANN401 - of the JVM
    """Return a plan of the JVM as a frame of the session of another one."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - workers do without

    return DataFrame(plan, frame.sparkSession)


def collected(frame: "DataFrame") -> "list[Row]":
    """Return all rows of a frame; raises what `errors_restored` raises."""
    with errors_restored():
        return frame.collect()


def answer_of(value: object) -> pa.RecordBatch:
    """Return a worker's answer as a row, which `answers_in` reads."""
    return pa.RecordBatch.from_pydict({"answer": [pickle.dumps(value)]})


def answers_in(rows: "Iterable[Row]") -> list[Any]:
    """Return the answers of workers, in the order of the rows."""
    return [pickle.loads(row.answer) for row in rows]  # noqa: S301 - of our own workers


def error_of(text: str) -> PipelineError:
    """Return the `PipelineError` in a message of Spark (`errors_marked`), or a `SparkFailed` with Spark's reason."""
    _, marked, state_text = text.partition(_RAISED)
    if marked:
        kind, message, state = json.JSONDecoder().raw_decode(state_text)[0]
        types = {error_type.__name__: error_type for error_type in _kinds(PipelineError)}
        return restored(types.get(kind, PipelineError), message, state)
    return SparkFailed(f"Spark gave up: {_reason(text)}; what it logged before says more")


@contextmanager
def errors_restored() -> Iterator[None]:
    """
    Raise errors of Spark in the block as `PipelineError`.

    Raises:
        PipelineError: an error that a worker, or a function that Spark called in the driver, raised under
            `errors_marked`.
        SparkFailed: Spark gave up for another reason.

    """
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        if not is_of_spark(error):
            raise
        if isinstance(error, (OSError, EOFError)) or type(error).__name__ == "Py4JNetworkError":
            raise SparkFailed(
                f"Spark gave up: its JVM is gone ({_reason(str(error))}); what it logged before says more"
            ) from error
        raise error_of(str(error)) from error


@contextmanager
def errors_marked() -> Iterator[None]:
    """Raise a `PipelineError` of the block with a mark, by which it is recognized in a message of Spark."""
    try:
        yield
    except PipelineError as error:
        state = {key: value for key, value in vars(error).items() if isinstance(value, str)}
        text = json.dumps([type(error).__name__, str(error), state])
        raise RuntimeError(f"{_RAISED}{text}") from None


def _kinds(kind: type[PipelineError]) -> Iterator[type[PipelineError]]:
    """Yield a type of error, and all direct and indirect subclasses of it."""
    yield kind
    for subclass in kind.__subclasses__():
        yield from _kinds(subclass)


def _reason(text: str) -> str:
    """Return the reason in a message of Spark on one line: a Python worker's exception, or the JVM's first line."""
    lines = [line.strip(" :\t") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "... "))]
    jvm_lines = (line for line in lines if not line.startswith("An error occurred while calling"))
    reason = _raised_in(text) or next(jvm_lines, "no reason")
    return _SECRET.sub(r"\1[hidden]", reason)[:_MOST]


def _raised_in(text: str) -> str:
    """
    Return the exception of a Python traceback, the last one of a chain; empty without a traceback.

    A traceback that the message of an exception quotes is ignored.
    """
    exception, is_inside = "", False
    counts_next = True  # the first traceback counts, and each that continues its chain; any other one is quoted
    for line in text.splitlines():
        if is_inside and line[:1].strip():
            exception, is_inside, counts_next = line.strip(), False, False
        elif line.rstrip().endswith(_TRACEBACK):
            is_inside, counts_next = counts_next, False
        elif line.rstrip() in _BETWEEN:
            counts_next = True
    return exception
