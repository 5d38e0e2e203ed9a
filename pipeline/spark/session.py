"""The session of commands that Spark does the work of."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session() -> "SparkSession":
    """The one that is there, as it is; else a new one, of local[*] unless Spark's own settings or spark-submit say otherwise."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as late as can be

    # not by the builder, which gives a session that is there another name
    there = SparkSession.getActiveSession()
    return there or SparkSession.builder.appName("quotascope").getOrCreate()
