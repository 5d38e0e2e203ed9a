"""
Work of quotascope, on Spark and in one process.

The jobs of Spark take its session first. Each run makes new tables, in place of the last run's.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.pipeline.ingest.accounts import balanced

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.pipeline.engine import Local
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions, IngestReport, ingest
from quotascope.pipeline.replay import Mode
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.runs.whatif import replayed
from quotascope.pipeline.table import Table
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST: Final = 100.0
MOST: Final = 100_000.0
"""Bytes/s of the candidates: from what most of the entities pass to what only the busiest does."""
BYTES_FOR_A_PERCENT: Final = 100_000.0
HISTORY: Final = ("history", "seconds", "topics", "episodes")
"""Folders of the tables that are made of requests."""
_OPTIONS: Final = IngestOptions(broker_pattern="/broker-([0-9]+)/")


def limits(number: int) -> list[float]:
    """Return a number of limits in bytes/s, evenly apart on a scale of logarithms; one is in their middle."""
    step = (MOST / LEAST) ** (1 / (number + 1))
    return [float(round(LEAST * step**power)) for power in range(1, number + 1)]


def candidates(number: int) -> list[Candidate]:
    """Return a number of candidates, each of which limits bytes and request time of every user and client id."""
    return [_candidate(limit) for limit in limits(number)]


def _candidate(limit: float) -> Candidate:
    values = {
        "producer_byte_rate": limit,
        "consumer_byte_rate": limit,
        "request_percentage": limit / BYTES_FOR_A_PERCENT,
        "controller_mutation_rate": 5.0,
    }
    quotas = QuotaSet({QuotaEntity(DEFAULT, DEFAULT): values})
    return Candidate(name=f"{limit:.0f}", quotas=quotas)


def ingest_on_spark(spark: "SparkSession", files: Sequence[str], folder: str, lines: int) -> None:
    """Read so many lines into tables."""
    from quotascope.pipeline.spark.ingest import ingest as on_spark  # noqa: PLC0415 - a worker without Spark has none

    shutil.rmtree(folder, ignore_errors=True)
    _check(on_spark(spark, files, folder, _OPTIONS), lines)


def ingest_alone(files: Sequence[str], folder: str, lines: int) -> None:
    """Ingest the same in this process."""
    shutil.rmtree(folder, ignore_errors=True)
    _check(ingest(files, folder, _OPTIONS), lines)


def ingest_all_alone(files: Sequence[str], folder: str, lines: int) -> None:
    """Ingest the same, and make the history and its sums."""
    shutil.rmtree(folder, ignore_errors=True)
    _check(ingest_logs(files, folder, _OPTIONS, engine=EngineChoice.LOCAL), lines)


def _check(report: IngestReport, lines: int) -> None:
    assert report.read == lines
    assert balanced(report)
    assert report.duplicates == 0


def history_on_spark(spark: "SparkSession", folder: str) -> None:
    """Make a history, with its sums, of the requests that were read."""
    from quotascope.pipeline.spark.engine import Spark  # noqa: PLC0415 - as above

    for name in HISTORY:
        shutil.rmtree(Path(folder) / name, ignore_errors=True)
    history, map_items = History.create(folder), Spark(spark).map
    assert history.update(Table.open(f"{folder}/requests"), map_items) > 0
    for table in (history.detail, history.seconds, history.topics, history.episodes):
        table.compact(map_items=map_items)
        table.clean(0)


def replay_on_spark(spark: "SparkSession", folder: str, number: int) -> None:
    """Replay a history for so many candidates."""
    from quotascope.pipeline.spark.engine import Spark  # noqa: PLC0415 - as above

    history = History.open(folder).detail
    results = replayed(history, candidates(number), Mode.OPEN_LOOP, Spark(spark))
    assert len(results) > number


def replay_frame_on_spark(spark: "SparkSession", files: Sequence[str], number: int) -> None:
    """Replay the same of a frame, whose rows Spark reads and shuffles."""
    from quotascope.pipeline.spark import replay_frame  # noqa: PLC0415 - as above

    frame = spark.read.parquet(*files)
    assert replay_frame(frame, candidates(number)).count() > number


def replay_alone(folder: str, number: int) -> None:
    """Replay the same in this process."""
    history = History.open(folder).detail
    results = replayed(history, candidates(number), Mode.OPEN_LOOP, Local())
    assert len(results) > number
