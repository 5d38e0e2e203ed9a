"""The session of commands that Spark does the work of."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session() -> "SparkSession":
    """The one that is there, as under spark-submit; else a new one, of local[*] unless Spark's own settings say otherwise."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as late as can be

    return SparkSession.builder.appName("quotascope").getOrCreate()
