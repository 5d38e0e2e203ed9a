"""Event logs of Spark, as `spark report` reads them."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.builders.spark_events import (
    application_ended,
    application_started,
    failures,
    log_started,
    query_progressed,
    query_started,
    query_terminated,
    stage_completed,
    stage_submitted,
    started,
    written,
)
from tests.fuzz.target import Target

from quotascope.spark_listener.errors import EventLogError, ReportError
from quotascope.spark_listener.report import document, page, read_application


def _read(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.write_bytes(data)
        application = read_application(log)
    json.dumps(document(application), allow_nan=False)
    page(application)


def _seeds() -> Iterator[bytes]:
    begin = written([log_started(), application_started()])
    end = written([application_ended()])
    query = [query_started(), query_progressed(batchId=1), query_progressed(batchId=2, began=120), query_terminated()]
    stage = [stage_submitted(0), started(), stage_completed(0)]
    yield begin + failures(2) + end
    yield begin + written([*stage, *query]) + end
    yield begin + written([*reversed(query), *reversed(stage)]) + end


TARGET = Target(
    name="event_log",
    read=_read,
    refuses=(EventLogError, ReportError),
    seeds=_seeds,
    words=(
        b"\n", b"null", b"-1", b"0" * 310, b"1e999", b'"\\ud800"', b"{}", b"[]",
        b'"Event":"SparkListener', b'"timestamp":"', b'"durationMs":{"triggerExecution":', b'"Timestamp":',
        b'"Submission Time":', b'"Completion Time":', b'"Launch Time":', b'"Finish Time":', b'"Stage ID":',
        b'"Task ID":', b'"batchId":', b'"runId":"',
    ),
)  # fmt: skip
