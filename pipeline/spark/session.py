"""The session of commands that Spark does the work of."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session() -> "SparkSession":
    """The one that is there, as it is; else a new one, of local[*] unless Spark's own settings or spark-submit say otherwise."""
    from pyspark import SparkContext  # noqa: PLC0415 - as late as can be
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    builder = SparkSession.builder
    if SparkContext._active_spark_context is None:  # noqa: SLF001 - PySpark asks so itself
        builder = builder.appName("quotascope")  # would rename a session that is there
    return builder.getOrCreate()
