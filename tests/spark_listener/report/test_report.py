"""The report in a terminal, on its page and in JSON; a figure that a log lacks is unknown in each, and never zero."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text
from tests.builders import spark_events
from tests.builders.spark_events import (
    QUOTA,
    Event,
    ended,
    python_failure,
    query_progressed,
    stage_completed,
    stage_submitted,
    started,
)
from tests.spark_listener.report.throttled import HOSTILE, QUERY, attempt, log, noted, progress, stage

from quotascope.cli.report import show
from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.job import ClientKind, Job, write_summary
from quotascope.spark_listener.report import Application, document, image, page, read_application, report
from quotascope.spark_listener.report.report import headline, throttled_clients
from quotascope.spark_listener.task import note

SPARK = {"/opt/spark/jars/spark-core_2.13-4.2.0.jar": "System Classpath"}
CLIENT = Client("alice", "billing", "write")


def in_a_terminal(application: Application, width: int = 200, *, colors: bool = False) -> str:
    output = io.StringIO()
    show(Console(file=output, width=width, force_terminal=colors), report(application))
    return output.getvalue()


def in_an_image(application: Application) -> str:
    """Return the texts of the report as an image, each of which has a line."""
    return " ".join(ET.fromstring(image(application)).itertext())  # noqa: S314 - of ours


def drawn(path: Path, width: int = 120) -> str:
    return in_a_terminal(read_application(path), width, colors=True)


@pytest.mark.parametrize("width", [40, 120])
def test_names_do_not_move_the_cursor(tmp_path: Path, width: int) -> None:
    """Escape sequences and marks of direction are spelled out, and markup is none."""
    text = drawn(log(tmp_path / "app-1", HOSTILE), width)
    assert [bad for bad in ("\x1b[31m", "\u202e", "\ud800") if bad in text] == []
    if width > 100:
        assert "[red]" in text


def test_figures_are_those_of_the_log(tmp_path: Path) -> None:
    """The report has each attempt's throttle times in seconds, durations, and their sums."""
    text = Text.from_ansi(drawn(log(tmp_path / "app-1"))).plain
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[1] == "app-1, from 2023-11-14 22:13:20 UTC for 1 min"
    assert " ".join(lines[2:4]) == (
        "Throttled at least 5.50 s (4 s on the critical path, 1.50 s in micro-batches), 4 failed attempts, 1 retry, "
        "0 stage retries, 1 lost executor"
    )
    for row in (
        "alice billing write 4 s 4 2 s 1",
        "clicks alice clicks-reader read 1.50 s 4 0.75 s 1",
        "kafka_quota 1 0",
        "kafka_timeout_throttled 2 1",
        "executor_lost 1 0",
        "0.0 foreachPartition 1 kafka_timeout_throttled ≥ 4 s",
        "2.0 start clicks 1 kafka_timeout_throttled 1.50 s",
        "clicks 0 8 s 9,000 2,500",
        "clicks unknown unknown unknown unknown unknown",
        "0.0 0, 0 kafka_timeout_throttled 4 s 7 s",
        "2.0 0, 0 kafka_timeout_throttled clicks 1.50 s 5 s",
    ):
        assert lines.count(row) == 1, row


def test_long_tables_are_cut(tmp_path: Path) -> None:
    """The number of rows that are left out is shown."""
    path = log(tmp_path / "app-1")
    lines = path.read_text().splitlines()
    stage = [line for line in lines if '"Stage ID":0' in line and "Finish" in line]
    more = [
        line.replace('"Stage ID":0', f'"Stage ID":{number}').replace('"Task ID":', f'"Task ID":{number}')
        for number in range(50, 70)
        for line in stage
    ]
    path.write_text("\n".join([*lines, *more]) + "\n")
    assert "and 7 more" in drawn(path)


@pytest.mark.parametrize("width", [70, 80, 120])
def test_causes_are_not_broken(tmp_path: Path, width: int) -> None:
    """Causes, which are words to search for, are never broken over lines; names give way."""
    text = drawn(log(tmp_path / "app-1", "-" + "x" * 60), width)
    assert text.count("kafka_timeout_throttled") == 5


@pytest.mark.parametrize("count", ["throttled_ms", "responses", "quota_retries"])
def test_any_count_makes_a_row(count: str) -> None:
    """A throttle time, a throttled response, or a refused call makes a row; a client without any is left out."""
    rows = [("", ClientTotals(CLIENT)), ("", ClientTotals(CLIENT, **{count: 1}))]
    application: Any = SimpleNamespace(throttles=rows)
    assert [*throttled_clients(application)] == rows[1:]


def stream(rates: tuple[int, int] | None) -> Iterator[Event]:
    """
    Yield twenty micro-batches of 5 s, each with a stage of two tasks at the same time, and a stage of no query.

    Each reads and meets so many offsets; None if its source does not report any.
    """
    yield from stage(0, 0, 0, 5, "count")
    yield attempt("Success", 0, 5, stage=0, task=40)
    for number in range(20):
        began = 5 * number
        submitted, completed = stage(number + 1, 0, began, began + 5, "start", QUERY)
        yield submitted
        for task in range(2):
            yield attempt("Success", began, began + 5, stage=number + 1, task=2 * number + task, partition=task)
        yield completed
        batch = progress(number, began, "clicks", durationMs={"triggerExecution": 5_000})
        (source,) = batch["progress"]["sources"]
        if rates is not None:
            read, added = rates
            source["description"] = "KafkaV2[Subscribe[clicks]]"
            source["endOffset"] = {"clicks": {"0": read * (number + 1)}}
            source["latestOffset"] = {"clicks": {"0": 20_000 + added * number}}
        yield batch


UNKNOWN, NOT_LIMITED = "unknown", "not limited"


@pytest.mark.parametrize(
    ("given", "limited", "cells", "headline"),
    [
        pytest.param(
            ((500, 0), 160_000, 0),
            True,
            ("80%", "10,000", "100", "0", "1 min 40 s", "500 at 5 s"),
            "(1 min 20 s in micro-batches)",
            id="a quota limits it",
        ),
        pytest.param(
            ((500, 0), 160_000, 0),
            True,
            ("80%", "10,000", "100", "0", "1 min 40 s", "500 at 5 s"),
            ", clicks catches up in 1 min 40 s",
            id="and it catches up",
        ),
        pytest.param(
            ((500, 600), 160_000, 0),
            True,
            ("80%", "22,000", "100", "120", "cannot catch up", "500 at 5 s"),
            ", clicks cannot catch up",
            id="more is added",
        ),
        pytest.param(
            ((500, 0), 0, 0),
            False,
            ("0%", "10,000", "100", "0", "1 min 40 s", NOT_LIMITED),
            "Throttle times: measured, none,",
            id="slow without a quota",
        ),
        pytest.param(
            ((500, 600), 4_000, 0),
            False,
            ("2%", "22,000", "100", "120", "cannot catch up", NOT_LIMITED),
            "(2 s in micro-batches)",
            id="slow, hardly throttled",
        ),
        pytest.param(
            ((500, 600), 4_000, 1),
            None,
            (UNKNOWN, "22,000", "100", "120", "cannot catch up", UNKNOWN),
            "Throttled at least 4 s",
            id="hardly throttled, as far as known",
        ),
        pytest.param(
            ((500, 600), None, 0),
            None,
            (UNKNOWN, "22,000", "100", "120", "cannot catch up", UNKNOWN),
            "Throttle times: not measured",
            id="throttle time unknown",
        ),
        pytest.param(
            (None, 160_000, 0),
            True,
            ("80%", *[UNKNOWN] * 5),
            "(1 min 20 s in micro-batches)",
            id="offsets unknown",
        ),
    ]
)  # fmt: skip
def test_query_at_its_limit(
    given: tuple[tuple[int, int] | None, int | None, int],
    limited: bool | None,  # noqa: FBT001 - the value of a table
    cells: tuple[str, ...],
    headline: str,
    tmp_path: Path,
) -> None:
    """
    How long it needs for its backlog.

    A quota is blamed only if it throttled the query for a good part of its time.
    """
    rates, throttled_ms, unknown = given
    path = quiet(tmp_path, environment({}), *stream(rates))
    totals = None if throttled_ms is None else {"throttled_ms": throttled_ms}
    left = totals and summary(tmp_path, totals, unknown, query="clicks")
    application = read_application(path, left or None)
    (values,) = json.loads(json.dumps(document(application)))["queries"]
    assert values["limited_by_quota"] is limited
    assert (values["max_offsets_per_trigger_second"] is None) == (limited is not True or rates is None)
    assert values["max_offsets_per_trigger"] == (None if limited is not True or rates is None else 500)
    assert values["trigger_period_seconds"] == 5
    finite = "cannot" not in cells[4] and cells[4] != UNKNOWN
    assert values["can_catch_up"] == (None if rates is None else finite)
    assert (values["catch_up_seconds"] is not None) == finite
    text = page(application)
    for cell in cells:
        assert f">{cell}</td>" in text
    assert headline in text
    lines = [" ".join(line.split()) for line in in_a_terminal(application).splitlines()]
    assert " ".join(["clicks", *cells[:3], *cells[4:]]) in lines
    blamed = text[: text.index("<h2")].count("clicks")
    assert blamed == (limited is True and rates is not None)


def batch() -> Iterator[Event]:
    """Yield a stage of 100 s with one task and no streaming query."""
    submitted, completed = stage(0, 0, 0, 100, "count")
    yield from (submitted, attempt("Success", 0, 100, task=0), completed)


def test_critical_path_of_what_is_known(tmp_path: Path) -> None:
    """The critical path shortens a batch job, but not a job whose driver waits for a streaming query."""
    application = read_application(
        quiet(tmp_path, environment({}), *batch()), summary(tmp_path, {"throttled_ms": 20_000})
    )
    reported = json.loads(json.dumps(document(application)))
    assert reported["critical_path_throttled_seconds"] == pytest.approx(20)
    assert reported["least_seconds_without_quota"] == pytest.approx(80)
    sentence = "Without the quota the application would have taken 1 min 20 s or more, not 1 min 40 s."
    assert sentence in reported["notes"]
    partly = read_application(tmp_path / "app-1", summary(tmp_path, {"throttled_ms": 20_000}, 1))
    assert json.loads(json.dumps(document(partly)))["least_seconds_without_quota"] is None
    assert "Without the quota" not in page(partly)
    refused = attempt(python_failure(QUOTA), 3, 5, partition=9, task=1)
    failed = read_application(
        quiet(tmp_path, environment({}), *batch(), refused), summary(tmp_path, {"throttled_ms": 20_000})
    )
    assert failed.throttles_complete
    assert failed.least_seconds is None  # nor would the attempt have failed
    no_task = read_application(quiet(tmp_path, environment({})), summary(tmp_path, SOME))
    assert json.loads(json.dumps(document(no_task)))["critical_path_throttled_seconds"] is None
    assert "critical path" not in page(no_task)


def test_critical_path_of_a_streaming_query(tmp_path: Path) -> None:
    """A query has a critical path of its own attempts; throttles without a query count over all attempts."""
    path = quiet(tmp_path, environment({}), *stream((500, 0)))
    application = read_application(path, summary(tmp_path, {"throttled_ms": 41_000}))
    reported = json.loads(json.dumps(document(application)))
    # of 205 s of tasks, so a fifth of everything: stage 0, which belongs to no query, took 5 s
    assert reported["critical_path_throttled_seconds"] == pytest.approx(1)
    assert reported["micro_batches_throttled_seconds"] == pytest.approx(20)
    assert reported["least_seconds_without_quota"] is None
    assert "Without the quota" not in page(application)
    (query,) = reported["queries"]
    assert query["critical_path_throttled_seconds"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("reason", "is_canceled"),
    [
        ("[SPARK_JOB_CANCELLED] Job 33 cancelled part of cancelled job group cancelled SQLSTATE: XXKDA", True),
        ("Job 33 cancelled part of cancelled job group x", True),
        ("Job 79 cancelled because SparkContext was shut down", True),
        ("Stage cancelled because SparkContext was shut down", True),
        ("Job aborted due to stage failure: Task 0 failed 4 times: order cancelled", False),
    ],
)
def test_stage_that_was_canceled(reason: str, *, is_canceled: bool, tmp_path: Path) -> None:
    """A canceled stage is called canceled and not failed."""
    completed = stage_completed(7, failed=reason, info={"Number of Tasks": 0})
    application = read_application(quiet(tmp_path, stage_submitted(7), completed))
    assert (["the stage itself" in form(application) for form in (in_a_terminal, page)]) == [not is_canceled] * 2
    assert (", canceled<" in page(application) or ", canceled" in page(application)) == is_canceled
    assert [row["stage"] for row in json.loads(json.dumps(document(application)))["stages_hit"]] == [7] * (
        not is_canceled
    )


@pytest.mark.parametrize("with_summary", [False, True])
def test_clients_that_the_plugin_watched(tmp_path: Path, *, with_summary: bool) -> None:
    """Without the summary, the report says where the throttle times of the plugin's clients are."""
    jar = {"spark.plugins": "io.quotascope.spark.ThrottlePlugin", "spark.jars": "etl-all.jar"}
    path = quiet(tmp_path, environment(jar))
    application = read_application(path, summary(tmp_path, {}, 0, ["jvm"]) if with_summary else None)
    for form in (in_a_terminal, page):
        text = " ".join(form(application).split())
        assert "were not watched" not in text
        assert ("which the plugin watched, are in the listener's summary (--summary)" in text) == (not with_summary)


@pytest.mark.parametrize("file", ["events_2_app-1", "events_2_app-1.compact"])
def test_critical_path_of_a_log_that_lacks_attempts(tmp_path: Path, file: str) -> None:
    """
    The critical path of a log that lacks attempts is unknown, since the summary counts those as well.

    It blames no quota for them.
    """
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    quiet(tmp_path, environment({}), *stream((500, 0))).rename(folder / file)
    application = read_application(folder, summary(tmp_path, {"throttled_ms": 160_000}, query="clicks"))
    assert headline(application).startswith("Throttled 2 min 40 s, ")
    assert (application.critical_seconds(), application.least_seconds, application.limited_share("clicks")) == (
        None,
        None,
        None,
    )


FORMS = pytest.mark.parametrize("form", [in_a_terminal, page])


def quiet(folder: Path, *events: Event) -> Path:
    """Write the log of an application in which no attempt left a note."""
    path = log(folder / "app-1")
    first, *_, last = path.read_text().splitlines()
    path.write_text("\n".join([first, *map(json.dumps, events), last]) + "\n")
    return path


def summary(
    folder: Path,
    totals: Mapping[str, int] | None,
    unknown: int = 0,
    kinds: Sequence[ClientKind] = ("python", "jvm"),
    query: str = "",
) -> Path:
    """Write the listener's summary of one client or none, and of the kinds of clients that it knows completely."""
    job = Job("nightly")
    job.source("pull")
    if totals is not None:
        counted = ClientTotals(CLIENT, **totals)
        job.add_throttles(lambda: [(query, counted)])
        for kind in kinds:
            job.add_throttles(lambda: [("", ClientTotals(CLIENT))], kind)
    job.add_scoped_stages(lambda: [3])
    for _ in range(unknown):
        job.handle(ended({"Reason": "ExecutorLostFailure"}, stage=3))
    write_summary(job.snapshot(), folder / "summary.json")
    return folder / "summary.json"


SOME = {"throttled_ms": 2_000, "responses": 4, "longest_ms": 500}


@FORMS
@pytest.mark.parametrize(
    ("given", "headline", "seconds"),
    [
        pytest.param(None, "Throttle times: not measured: no failed attempt noted any, ", None, id="a log alone"),
        pytest.param(
            (None, 0),
            "Throttle times: not measured: no Kafka client of the job reported",
            None,
            id="no client reported",
        ),
        pytest.param(({}, 0), "Throttle times: measured, none,", 0, id="a client reported zeros"),
        pytest.param(
            ({}, 2),
            "Throttle times: measured in part: the clients that reported were not throttled, but 2 attempts ended",
            None,
            id="and attempts are missing",
        ),
        pytest.param((SOME, 0), "Throttled 2 s,", 2, id="a client waited"),
        pytest.param((SOME, 1), "Throttled at least 2 s,", 2, id="at least"),
        pytest.param(
            ({}, 0, ["python"]),
            "were not throttled, but Kafka clients of the JVM, such as Spark's connector, were not watched",
            None,
            id="no plugin",
        ),
        pytest.param((SOME, 0, ["python"]), "Throttled at least 2 s,", 2, id="a client waited, and no plugin"),
        pytest.param(({}, 0, []), "were not throttled, but Kafka clients of the JVM", None, id="notes alone"),
    ]
)  # fmt: skip
def test_throttle_time_of_a_job(
    form: Callable[[Application], str], given: Any, headline: str, seconds: float | None, tmp_path: Path
) -> None:  # fmt: skip
    """The headline has the known throttle time, and why the rest is unknown; zero means that clients reported it."""
    application = read_application(quiet(tmp_path), summary(tmp_path, *given) if given else None)
    assert headline in form(application)
    reported = json.loads(json.dumps(document(application)))
    assert reported["throttled_seconds"] == seconds
    assert reported["throttled_complete"] == (headline.endswith((" s,", "none,")) and "least" not in headline)
    assert ("Throttle times: measured, none." in form(application)) == (seconds == 0)
    assert (re.search("Throttle times: (not measured|measured in part):", form(application)) is not None) == (
        seconds is None
    )


environment = partial(spark_events.environment, class_path=SPARK)

PYTHON: Event = stage_submitted(3, info={"RDD Info": [{"Name": "PythonRDD"}], "Submission Time": None})
SOURCE: Event = stage_completed(3, info={"Accumulables": [{"Name": "data sent to Python workers"}]})
SINK: Event = query_progressed(sink={"description": "ForeachWriterTable(a.b.PythonForeachWriter@1,c)"})
REMEDY = (
    "Python code in tasks did not report, or the listener missed events (documentation: Python Kafka clients in Spark "
    "tasks)"
)


@pytest.mark.parametrize(
    ("events", "kinds", "unseen", "seconds"),
    [
        pytest.param([environment({})], ["python"], [], 0, id="no client in the JVM"),
        pytest.param([environment({}), PYTHON], ["python"], [], 0, id="Python in scopes"),
        pytest.param([PYTHON], ["jvm"], ["python"], None, id="Python without a scope"),
        pytest.param([SOURCE], ["jvm"], ["python"], None, id="a data source in Python"),
        pytest.param([SINK], ["jvm"], ["python"], None, id="a function that a streaming query calls for each row"),
        pytest.param([environment({}), PYTHON], [], ["python"], None, id="no accumulator"),
        pytest.param([PYTHON], [], ["jvm", "python"], None, id="neither"),
        pytest.param([], ["jvm"], [], 0, id="the plugin, and no Python"),
    ]
)  # fmt: skip
def test_clients_that_are_not_seen(
    events: list[Event], kinds: Sequence[ClientKind], unseen: list[str], seconds: float | None, tmp_path: Path
) -> None:  # fmt: skip
    """Zero is zero only of clients that report; others are named everywhere, unless the log rules them out."""
    application = read_application(quiet(tmp_path, *events), summary(tmp_path, {}, 0, kinds))
    said = json.loads(json.dumps(document(application)))
    assert said["seen_clients"] == kinds
    assert said["unseen_clients"] == unseen
    assert said["throttled_seconds"] == seconds
    assert said["throttled_complete"] == (seconds == 0)
    for form in (in_a_terminal, page, in_an_image):
        text = " ".join(form(application).split())
        assert ("Throttle times: measured, none" in text) == (seconds == 0)
        assert (REMEDY in text) == ("python" in unseen)


@pytest.mark.parametrize(
    ("properties", "advice"),
    [
        ({}, "it does not show that the listener was attached: see the documentation (Spark)"),
        ({"spark.quotascope.enabled": "true"}, "(give --summary)"),
        ({"spark.quotascope.summaryFile": "/s/{app_id}.json"}, "(give --summary /s/app-1.json)"),
    ]
)  # fmt: skip
def test_log_without_throttle_times(properties: dict[str, str], advice: str, tmp_path: Path) -> None:
    """Why they are unknown, and where they are."""
    application = read_application(quiet(tmp_path, environment(properties)))
    for form in (in_a_terminal, page, in_an_image):
        assert advice in " ".join(form(application).split())
    assert json.loads(json.dumps(document(application)))["throttled_seconds"] is None


@FORMS
@pytest.mark.parametrize(
    ("is_noted", "is_lost", "seconds"), [(True, True, None), (False, True, None), (True, False, 0)]
)
def test_stage_of_attempts_with_and_without_a_note(
    form: Callable[[Application], str], seconds: int | None, tmp_path: Path, *, is_noted: bool, is_lost: bool
) -> None:
    """The waiting time of attempts of a lost executor is unknown; another attempt's zero does not make it zero."""
    ids = note.AttemptKey(7, 0, 1)
    noted_none = attempt(noted("ValueError", CLIENT, 0, ids), 1, 2, stage=7, task=1)
    lost = attempt({"Reason": "ExecutorLostFailure"}, 1, 2, stage=7, task=2)
    application = read_application(quiet(tmp_path, *[noted_none] * is_noted, *[lost] * is_lost))
    (stage,) = json.loads(json.dumps(document(application)))["stages_hit"]
    assert stage["throttled_seconds"] == seconds
    text = form(application)
    row = text[text.index("7.0") :][:300]
    assert ("unknown" in row, "0 s" in row) == (seconds is None, seconds == 0)


@FORMS
def test_retry_of_a_failure_that_the_log_lacks(form: Callable[[Application], str], tmp_path: Path) -> None:
    """The cause has its row, without a failed attempt of that cause."""
    application = read_application(quiet(tmp_path, started(number=1, task=2)))
    assert "unknown" in form(application)
    (cause,) = json.loads(json.dumps(document(application)))["causes"]
    assert cause == {"cause": "unknown", "failed_attempts": 0, "retries": 1}


@FORMS
def test_query_whose_source_does_not_say(form: Callable[[Application], str], tmp_path: Path) -> None:
    """The time of the query's last batch and its backlog are unknown."""
    batch = progress(0, 1, "clicks", durationMs={}, sources=[])
    text = form(read_application(quiet(tmp_path, batch)))
    _, first, second = text[text.index("Streaming queries") :].split("clicks")
    assert first.count("unknown") == 3
    assert second.count("unknown") == (6 if form is page else 5)
