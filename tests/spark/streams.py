"""A streaming query that meets a quota, and starts again."""

from pathlib import Path
from tempfile import mkdtemp

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery
from tests.integration.eventually import eventually, some
from tests.spark.failures import _confluent_quota

NAME = "clicks"


def restarted(spark: SparkSession) -> None:
    """A query makes progress, is stopped, starts again, fails by confluent-kafka's error 89, and starts a last time."""
    folder = Path(mkdtemp(prefix="query-"))
    refusing = folder / "refusing"
    _progress(_start(spark, folder), 1)
    failing = _start(spark, folder)
    _progress(failing, 1, stop=False)
    refusing.touch()
    try:
        failing.awaitTermination(120)
    except StreamingQueryException:
        refusing.unlink()
    else:
        raise AssertionError("the query did not fail")
    _progress(_start(spark, folder), 1)


def _start(spark: SparkSession, folder: Path) -> StreamingQuery:
    rows = spark.readStream.format("rate").options(rowsPerSecond=10, numPartitions=1).load()
    return (
        _through_python(rows, str(folder / "refusing"))
        .writeStream.queryName(NAME)
        .format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )


def _through_python(rows: DataFrame, refusing: str) -> DataFrame:
    def passed(value: int) -> int:
        if Path(refusing).exists():
            _confluent_quota()
        return value

    # without Arrow, for which pandas would have to be there
    return rows.select(udf(passed, "long", useArrow=False)("value"))


def _progress(query: StreamingQuery, batches: int, *, stop: bool = True) -> None:
    eventually(lambda: some(query.recentProgress[batches - 1 :]), 120)
    if stop:
        query.stop()
