"""A replay of a frame by a client of Spark Connect, in a process of its own."""

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.pipeline.replay.histories import CROWD, SHARED

from quotascope.pipeline.errors import PipelineError
from quotascope.pipeline.spark import replay_frame
from quotascope.pipeline.spark.session import shown


def facts(spark: SparkSession, files: list[str]) -> dict[str, Any]:
    """Return the results of two replays of a history's files, and the error about a column with nulls."""
    history = spark.read.format("parquet").load(files)
    refused = history.selectExpr("* EXCEPT (user)", "nullif(user, 'user 1') AS user")
    reports: list[Any] = []
    with shown(spark, "one, and another", lambda *tasks: reports.append(tasks)):
        tags = sorted(spark.getTags())
        shared = _rows(replay_frame(history, [SHARED]))
    return {
        "crowd": _rows(replay_frame(history, CROWD)),
        "shared": shared,
        "tags": [tags, sorted(spark.getTags())],
        "reports": reports,
        "null": _error(lambda: replay_frame(refused, CROWD).collect()),
        "missing": _error(lambda: replay_frame(history.drop("user"), CROWD)),
    }


def _rows(frame: Any) -> list[Any]:
    return [row.asDict() for row in frame.collect()]


def _error(work: Any) -> str:
    try:
        work()
    except (PySparkException, PipelineError) as error:
        return str(error)
    return "no error"
