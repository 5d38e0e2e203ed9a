"""Small applications that write an event log."""

from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark import failures, sessions


def apart(spark: SparkSession, folder: str, conf: dict[str, str]) -> None:
    """Stop the session, and run another application, whose event log goes into that folder."""
    spark.stop()
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{folder}"}
    other = sessions.start(Path(folder).parent, conf={**log, **conf})
    failures.confluent_quota(other)
    failures.python_exception(other)
    other.stop()
