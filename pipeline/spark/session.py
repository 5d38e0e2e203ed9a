"""The session of commands that Spark does the work of."""

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_TABLES: Final = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}
"""With Delta's jar in the session: tasks to read a table's log (50 by default) and to list its folders for VACUUM (10,000)."""


def session() -> "SparkSession":
    """
    The one that is there, as it is; else a new one, of local[*] unless Spark's own settings or spark-submit say otherwise.

    A new one runs its workers by this interpreter unless PYSPARK_PYTHON names one, and has `SMALL_TABLES` where nothing else is set.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - as late as can be
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - PySpark asks so itself
        return SparkSession.builder.getOrCreate()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = SparkSession.builder.appName("quotascope").getOrCreate()
    given = made.sparkContext.getConf()
    for name, value in SMALL_TABLES.items():
        if not given.contains(name):
            made.conf.set(name, value)
    return made
