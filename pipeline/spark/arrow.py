"""
`DataFrame.mapInArrow` without pandas.

PySpark asks for pandas before it makes such a plan, and then has no use for it: what goes to the workers and comes back is Arrow. Where
pandas is not installed the same plan is made here, by the calls that PySpark's own method makes (`PandasMapOpsMixin`); its names changed
between 3.5 and 4.0. Spark Connect needs pandas for everything, so that its frames always have it.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: "DataFrame", work: Work, schema: str) -> "DataFrame":
    """What the work makes of each partition's batches; `schema` is DDL."""
    if find_spec("pandas"):
        return frame.mapInArrow(work, schema)
    return _without_pandas(frame, work, schema)


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
