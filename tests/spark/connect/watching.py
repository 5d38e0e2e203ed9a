"""Work of Spark Connect's clients with listeners, in processes of their own."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyarrow import RecordBatch
from pyspark.sql import SparkSession
from tests.integration import web
from tests.integration.eventually import eventually, some
from tests.spark.reporting import Reported, first_attempt

from quotascope.spark_listener import Listener, attach
from quotascope.spark_listener.task import throttle_scope

THROTTLE_MS = 250
ATTEMPTS = 4
"""At the task that fails for good."""


def facts(spark: SparkSession, url: str, folder: str) -> dict[str, Any]:
    """Return the reports and files of listeners on two sessions of one server."""
    first = _attached(spark, folder, 0.1)
    found: dict[str, Any] = {"source": first.source, "shown": _shown(first)}
    _query(spark, first, folder)
    _query(spark, first, folder)
    reported = Reported(Path(folder, "reported"), "etl")
    reported.folder.mkdir()
    _throttled(spark, reported)
    eventually(lambda: some(first.collect().throttles), 60)
    other = SparkSession.builder.remote(url).create()
    second = _attached(other, folder, 3_600)
    found["attached"] = [attach(spark) is first, attach(other) is second]
    found["pages"] = first.url != second.url
    found["entries"] = sorted(path.name for path in Path(folder, "entries").iterdir())
    _refused(other)

    def failed() -> None:
        assert sum(first.collect().failures.values()) == 1 + ATTEMPTS

    eventually(failed, 60)
    found["before"] = _books(second)
    for listener in (first, first, second, second):
        listener.close()
    found["books"] = [_books(listener) for listener in (first, second)]
    found["truth"] = reported.truth()
    found["ended"] = [first.ended, second.ended]
    found["problems"] = [problem.part for problem in (*first.problems, *second.problems)]
    found["left"] = sorted(path.name for path in Path(folder).rglob("*-*-*.json"))
    found["sessions"] = [spark.session_id, other.session_id]  # type: ignore[attr-defined] # of Connect's
    found["app_id"] = spark.conf.get("spark.app.id")
    with suppress(Exception):
        other.stop()
    return found


def _attached(spark: SparkSession, folder: str, seconds: float) -> Listener:
    return attach(
        spark,
        interval_seconds=seconds,
        file_sd_path=f"{folder}/entries/{{app_id}}.json",
        summary_file=f"{folder}/{{app_id}}.json",
    )


def _shown(listener: Listener) -> list[str]:
    assert listener.url is not None
    lines = web.ask(listener.url).text.splitlines()
    return [line for line in lines if line.startswith("spark_listener_source_info{")]


def _books(listener: Listener) -> dict[str, Any]:
    job = listener.snapshot()
    return {
        "queries": [[query.name, query.restarts, query.active] for query in job.queries],
        "failures": {cause: count for cause, count in job.failures.items() if count},
        "retries": {cause: count for cause, count in job.retries.items() if count},
        "throttles": [
            [query, *totals.client, totals.throttled_ms, totals.responses] for query, totals in job.throttles
        ],
        "lost": job.lost_events,
        "problems": list(job.problems),
    }


def _query(spark: SparkSession, listener: Listener, folder: str) -> None:
    """Run a batch of a query; the next one with its checkpoint is a restart."""
    restarts = [query.restarts for query in listener.collect().queries]
    rows = spark.readStream.format("rate").option("numPartitions", 1).load()
    sink = rows.writeStream.format("noop").queryName("clicks").option("checkpointLocation", f"{folder}/checkpoint")
    query = sink.start()

    def begun() -> None:
        queries = listener.collect().queries
        assert any(query.phases for query in queries)
        assert [query.restarts for query in queries] != restarts

    def ended() -> None:
        assert not any(query.active for query in listener.collect().queries)

    eventually(begun, 60)
    query.stop()
    eventually(ended, 60)


def _throttled(spark: SparkSession, reported: Reported) -> None:
    """Run two tasks, each with a throttle; the first attempt at the first one fails."""

    def work(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        with throttle_scope() as account:
            reported.report(account, THROTTLE_MS)
            if first_attempt():
                raise ValueError("no")
            yield from batches

    spark.range(0, 2, 1, 2).mapInArrow(work, "id long").collect()


def _refused(spark: SparkSession) -> None:
    """A task of the JVM that fails in each of its attempts."""
    with suppress(Exception):
        spark.sql("select assert_true(id < 0, 'refused') from range(0, 1, 1, 1)").collect()


def main(url: str) -> None:
    """Attach, report it, wait until the server was killed, and close."""
    spark = SparkSession.builder.remote(url).getOrCreate()
    listener = attach(spark, interval_seconds=0.05)
    print(listener.source, flush=True)  # noqa: T201 - it is read by the test
    sys.stdin.readline()
    listener.collect()
    listener.close()
    problems = [problem.part for problem in listener.problems]
    print(listener.ended, listener.source, problems, flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    main(sys.argv[1])
