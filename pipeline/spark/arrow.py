"""
`DataFrame.mapInArrow` without pandas, and with errors that arrive in the driver as they were raised.

PySpark asks for pandas before it makes such a plan, and then has no use for it: what goes to the workers and comes back is Arrow. Where
pandas is not installed the same plan is made here, by the calls that PySpark's own method makes (`PandasMapOpsMixin`); its names changed
between 3.5 and 4.0. Spark Connect needs pandas for everything, so that its frames always have it.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from ..errors import PipelineError, SparkFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_RAISED: Final = "quotascope error: "
"""In front of an error of ours, as JSON, in the text of what a worker raises: Spark brings home nothing else of an exception."""
_SECRET: Final = re.compile(r"(?i)(password\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s;,]+)")
_MOST: Final = 500
"""Characters of a reason of Spark's."""


_KINDS: Final = {
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.int16(): "smallint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
}


def ddl(schema: pa.Schema) -> str:
    """A schema of Arrow as Spark's DDL."""
    return ", ".join(f"`{column.name}` {_kind(column.type)}" for column in schema)


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_kind(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{part.name}:{_kind(part.type)}' for part in kind)}>"
    return _KINDS[kind]


def map_in_arrow(frame: "DataFrame", work: Work, schema: str) -> "DataFrame":
    """What the work makes of each partition's batches; `schema` is DDL. `collected` raises again what the work raises."""
    marked = partial(_marked, work)
    if find_spec("pandas"):
        return frame.mapInArrow(marked, schema)
    return _without_pandas(frame, marked, schema)


def collected(frame: "DataFrame") -> "list[Row]":
    """
    All rows of a frame.

    Raises:
        PipelineError: the one that a worker raised.
        SparkFailed: Spark gave up for another reason.

    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as late as can be

    try:
        return frame.collect()
    except (PySparkException, Py4JError) as error:
        raise error_of(str(error)) from error


def error_of(text: str) -> PipelineError:
    """The error of ours in what Spark says, else a `SparkFailed` with its reason."""
    _, marked, rest = text.partition(_RAISED)
    if marked:
        kind, message, state = json.JSONDecoder().raw_decode(rest)[0]
        known = {each.__name__: each for each in _kinds(PipelineError)}
        found = known.get(kind, PipelineError)
        error = found.__new__(found, message)
        error.__dict__.update(state)
        return error
    return SparkFailed(
        f"Spark gave up: {_reason(text)}; what it logged before says more"
    )


def _marked(work: Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from work(batches)
    except PipelineError as error:
        state = {key: each for key, each in vars(error).items() if isinstance(each, str)}  # fmt: skip
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
    found = next((line for line in lines if not line.startswith("An error occurred while calling")), "no reason")  # fmt: skip
    return _SECRET.sub(r"\1[hidden]", found)[:_MOST]


def _without_pandas(frame: Any, work: Work, schema: str) -> "DataFrame":  # noqa: ANN401 - parts of it are PySpark's own
    import pyspark  # noqa: PLC0415 - as late as can be
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415
    from pyspark.util import PythonEvalType  # noqa: PLC0415

    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    function = UserDefinedFunction(work, returnType=schema, evalType=kind)
    column: Any = function(*[frame[name] for name in frame.columns])
    plan, expression = frame._jdf, column._jc  # noqa: SLF001 - as PySpark's own method does
    if pyspark.__version__.startswith("3."):
        mapped = plan.pythonMapInArrow(expression.expr(), False)  # noqa: FBT003
    else:
        mapped = plan.mapInArrow(expression, False, None)  # noqa: FBT003
    return pyspark.sql.DataFrame(mapped, frame.sparkSession)
