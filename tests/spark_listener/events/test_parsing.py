from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.spark_events import (
    Event,
    ended,
    environment,
    executor_removed,
    query_idle,
    query_progressed,
    stage_submitted,
    started,
)
from tests.spark_listener import recordings as spark
from tests.spark_listener.recordings import VERSIONS, recorded

from quotascope.spark_listener import events
from quotascope.spark_listener.events import OffsetsBehind


def parsed(event: Event) -> Any:
    """Return the record of an event, of any kind."""
    return events.parse(event)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_event_is_read(version: str) -> None:
    """No event of the three versions lacks what is needed, and those that matter become records."""
    kinds = set()
    for path in (spark.RECORDED / version).glob("*.jsonl"):
        for event in recorded(version, path.stem):
            kind = event["Event"].rpartition(".")[2]
            assert (events.parse(event) is not None) == (kind in events.LOGGED)
            kinds.add(kind)
    assert len(kinds & events.LOGGED) >= 10


@pytest.mark.parametrize("version", VERSIONS)
def test_streaming_query_as_recorded(version: str) -> None:
    """
    Events of the query, and the stages that work for it, have the same id.

    Each of its three runs begins and ends.
    """
    records = [events.parse(event) for event in recorded(version, "restarted")]
    starts = [record for record in records if isinstance(record, events.QueryStarted)]
    ends = [record.run for record in records if isinstance(record, events.QueryTerminated)]
    assert ends == [start.run for start in starts]
    assert len(set(ends)) == 3
    (query,) = {start.query for start in starts}
    assert query
    assert {record.query for record in records if isinstance(record, events.StageSubmitted)} == {query}
    for batch in (record for record in records if isinstance(record, events.QueryProgressed)):
        assert batch.name == "clicks"
        assert 0 < batch.phases["triggerExecution"] < 60
        assert batch.ended
        assert batch.ended > (batch.began or 0)


SPARK = {"/opt/spark/jars/spark-core_2.13-4.2.0.jar": "System Classpath"}
CONNECTOR = "spark-sql-kafka-0-10_2.13-4.2.0.jar"
TASK_FILES = "spark://driver:7077/files/quotascope_tasks.zip"


@pytest.mark.parametrize(
    ("properties", "entries", "expected"),
    [
        pytest.param({}, {}, (False, "", False), id="no class path"),
        pytest.param({}, SPARK, (False, "", True), id="Spark alone"),
        pytest.param(
            {},
            {**SPARK, f"/opt/spark/jars/{CONNECTOR}": "System Classpath"},
            (False, "", False),
            id="connector in Spark's folder",
        ),
        pytest.param(
            {},
            {**SPARK, "spark://driver:7077/jars/etl-all.jar": "Added By User"},
            (False, "", False),
            id="jar of unknown content",
        ),
        pytest.param({}, {**SPARK, TASK_FILES: "Added By User"}, (True, "", True), id="files for tasks"),
        pytest.param({"spark.jars": "file:///opt/quotascope.jar"}, SPARK, (False, "", True), id="our jar"),
        pytest.param({"spark.jars": "/opt/quotascope/etl-all.jar"}, SPARK, (False, "", False), id="jar beside ours"),
        pytest.param(
            {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"},
            SPARK,
            (False, "", False),
            id="package",
        ),
        pytest.param(
            {"spark.executor.extraClassPath": "/opt/a:/opt/b"},
            SPARK,
            (False, "", False),
            id="more class path",
        ),
        pytest.param(
            {"spark.quotascope.enabled": "TRUE", "spark.quotascope.summaryFile": "/s/{app_id}.json"},
            SPARK,
            (True, "/s/{app_id}.json", True),
            id="listener",
        ),
        pytest.param([], "x", (False, "", False), id="other shapes"),
    ]
)  # fmt: skip
def test_clients_that_an_environment_shows(
    properties: object, entries: object, expected: tuple[bool, str, bool]
) -> None:
    """The listener shows by its property or files; no Java client of Kafka only where each jar is known."""
    record = parsed(environment(properties, entries))
    assert (record.listener, record.summary_file, record.without_java_clients) == expected


@pytest.mark.parametrize(
    ("rdds", "expected"),
    [
        ([{"Name": "PythonRDD"}, {"Name": "ParallelCollectionRDD"}], True),
        ([{"Name": "MapPartitionsRDD", "Scope": '{"id":"3","name":"MapInPandas"}'}], True),
        ([{"Name": "StateStoreRDD", "Scope": '{"id":"3","name":"TransformWithStateInPySpark"}'}], True),
        ([{"Name": "MapPartitionsRDD", "Scope": '{"id":"3","name":"BatchScan KafkaTable"}'}], False),
        ([], False),
        ("x", False),
    ]
)  # fmt: skip
def test_stages_that_run_python(rdds: object, *, expected: bool) -> None:
    """A stage runs Python by the names of its RDDs, or of the nodes of the plan that made these."""
    assert parsed(stage_submitted(1, info={"RDD Info": rdds})).runs_python == expected


def test_name_of_any_length() -> None:
    """The beginning of a long name is kept."""
    assert parsed(stage_submitted(1, info={"Stage Name": "x" * 1_000_000})).name == "x" * 1_000


@pytest.mark.parametrize(("partition", "index", "expected"), [(5, 0, 5), (0, 3, 0), (None, 4, 4), (-1, 4, 4)])
def test_attempt_of_a_task(partition: int | None, index: int, expected: int) -> None:
    """
    Both events of an attempt report its numbers.

    The partition stays the same in a new attempt of the stage. The index, which has to do before Spark 3.3, does not.
    """
    numbers: dict[str, Any] = {"stage": 3, "stage_attempt": 1, "number": 2, "task": 77}
    attempt = events.TaskAttempt(**numbers, partition=expected, speculative=False, executor="1", began=1.0)
    begin, end = started(**numbers), ended(**numbers)
    for event in (begin, end):
        event["Task Info"] |= {"Partition ID": partition, "Index": index}
    assert parsed(begin) == events.TaskStarted(attempt=attempt)
    assert parsed(end) == events.TaskEnded(attempt=attempt, reason="Success", failure=None, text="", time=3.0)


GIVEN_BACK, LOST, UNCLEAR = events.Removal.GIVEN_BACK, events.Removal.LOST, events.Removal.UNCLEAR


@pytest.mark.parametrize(
    ("reason", "removal"),
    [
        ("Executor killed by driver.", GIVEN_BACK),
        ("Executor decommission.", GIVEN_BACK),
        ("Executor decommission: worker decommissioned because of kill request from HTTP endpoint", GIVEN_BACK),
        ("Finished decommissioning", GIVEN_BACK),
        ("Container container_e87_1_7_01_000002 exited from explicit termination request.", GIVEN_BACK),
        ("Container in pod etl-exec-3 exited from explicit termination request.", GIVEN_BACK),
        (
            (
                "Container marked as failed: container_1_1_01_2 on host: h. Exit status: -105. Diagnostics: Container "
                "killed by the ApplicationMaster."
            ),
            GIVEN_BACK,
        ),
        (
            (
                "Container marked as failed: container_1_1_01_2 on host: h. Exit status: -100. Diagnostics: Container "
                "released by application"
            ),
            GIVEN_BACK,
        ),
        (
            (
                "Container marked as failed: container_1_1_01_2 on host: h. Exit status: -107. Diagnostics: Container "
                "killed after application finished."
            ),
            GIVEN_BACK,
        ),
        ("Command exited with code 0", GIVEN_BACK),
        ("\nThe executor with id 12 exited with exit code 0(success).\nThe API gave …", GIVEN_BACK),
        ("Executor finished with state KILLED", GIVEN_BACK),
        (
            (
                "Container marked as failed: container_1_1_01_2 on host: h. Exit status: -100. Diagnostics: Container "
                "released on a *lost* node"
            ),
            LOST,
        ),
        (
            (
                "Container marked as failed: container_1_1_01_2 on host: h. Exit status: -106. Diagnostics: killed by "
                "the ResourceManager"
            ),
            LOST,
        ),
        ("Container container_1_1_01_2 on host: h was preempted.", LOST),
        (
            (
                "Executor for container container_1_1_01_2 exited because of a YARN event (e.g., pre-emption) and not "
                "because of an error in the running job."
            ),
            LOST,
        ),
        ("Container killed by YARN for exceeding physical memory limits. 9.1 GB of 9 GB physical memory used.", LOST),
        (
            (
                "Container from a bad node: container_1_1_01_2 on host: h. Exit status: 143. Diagnostics: killed on "
                "request"
            ),
            LOST,
        ),
        ("Command exited with code 137", LOST),
        ("Command exited with code 01", LOST),
        ("\nThe executor with id 12 exited with exit code 137(SIGKILL, possible container OOM).\n", LOST),
        ("Executor heartbeat timed out after 154321 ms", LOST),
        ("Executor Process Lost", LOST),
        ("worker lost: 10.0.0.7:46767 got disassociated", LOST),
        ("Slave lost", LOST),
        ("Stale executor after cluster manager re-registered.", LOST),
        ("Executor finished with state LOST", LOST),
        ("the driver: Executor killed by driver.", LOST),
        ("Remote RPC client disassociated. Likely due to containers exceeding thresholds, or network issues.", UNCLEAR),
        ("remote Akka client disassociated", UNCLEAR),
        ("Command exited with code 143", UNCLEAR),
        ("The executor with id 12 was deleted by a user or the framework.", UNCLEAR),
        (None, UNCLEAR),
    ]
)  # fmt: skip
def test_executor_that_is_removed(reason: str | None, removal: events.Removal) -> None:
    """
    The reason of each version and cluster manager shows if the driver gave an executor back.

    Other words are not guessed at.
    """
    assert parsed(executor_removed("2", 5, reason)) == events.ExecutorRemoved(executor="2", removal=removal, time=5.0)


def source(maximum: object, average: object) -> Event:
    behind = {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": maximum, "avgOffsetsBehindLatest": average}
    return {"numInputRows": 4, "metrics": behind}


@pytest.mark.parametrize(
    ("sources", "rows", "behind"),
    [
        ([], 0, None),
        ([{"metrics": {}}], 0, None),
        ([{"metrics": None}], 0, None),
        ([source("12", "3.5")], 4, OffsetsBehind(maximum=12.0, average=3.5)),
        ([source("12", "3.5"), source("40", "1"), {}], 8, OffsetsBehind(maximum=40.0, average=1.0)),
        ([source("NaN", "1"), source("x", "1"), source(None, None)], 12, None),
    ],
)
def test_offsets_behind(sources: list[Any], rows: int, behind: OffsetsBehind | None) -> None:
    """The Kafka source that is farthest behind is reported; rows are those of all sources."""
    record = parsed(query_progressed(*sources))
    assert (record.rows, record.offsets_behind) == (rows, behind)


def kafka(end: object, newest: object, name: str = "KafkaV2[Subscribe[a]]") -> Event:
    return {"description": name, "endOffset": end, "latestOffset": newest}


A = kafka('{"a":{"0":1}}', '{"a":{"0":2}}')
RATE = kafka("9", "9", "RateStreamV2[")


@pytest.mark.parametrize(
    ("sources", "offsets"),
    [
        ([kafka('{"a":{"0":3,"1":4}}', '{"a":{"1":40,"0":30}}')], (7, 70)),
        ([kafka({"a": {"0": 3}}, {"a": {"0": 3}})], (3, 3)),
        ([A, kafka('{"b":{"0":1}}', '{"b":{"0":2}}')], (2, 4)),
        ([A, RATE], (1, 2)),
        ([RATE], None),
        ([A, kafka('{"b":{"0":1}}', None)], None),
        ([kafka('{"a":{"0":1}}', '{"a":{"0":2,"1":9}}')], None),
        ([kafka('{"a":{"0":"1"}}', '{"a":{"0":2}}')], None),
        ([kafka('{"a":7}', '{"a":7}')], None),
        ([kafka("{}", "{}")], None),
        ([kafka("{", "[" * 100_000)], None),
        ([kafka(None, None)], None),
        ([], None),
    ],
)
def test_offsets_of_kafka_sources(sources: list[Event], offsets: tuple[int, int] | None) -> None:
    """
    Offsets are summed over partitions, from JSON in a text or as it is.

    They are unknown as soon as a source lacks a part.
    """
    record_offsets = parsed(query_progressed(*sources)).offsets
    assert (record_offsets and (record_offsets.end, record_offsets.newest)) == offsets


@pytest.mark.parametrize(
    ("reported", "phases"),
    [
        ({"x" * 200: 1_500, "addBatch": 250}, {"x" * 100: 1.5, "addBatch": 0.25}),
        ({"planning": None, "late": float("inf")}, {}),
        ({str(number): 1_000 for number in range(60)}, {str(number): 1.0 for number in range(50)}),
    ],
)
def test_phases_are_seconds_by_name(reported: Event, phases: dict[str, float]) -> None:
    """
    Phases are converted from ms to seconds.

    A name is kept up to 100 characters, of at most 50 phases; invalid numbers are left out.
    """
    assert parsed(query_progressed(durationMs=reported)).phases == phases


@pytest.mark.parametrize("key", ["Stage ID", "Task Info"])
def test_event_without_what_every_version_writes(key: str) -> None:
    """An event that lacks a field of every version is reported as unreadable."""
    event = ended()
    del event[key]
    with pytest.raises(events.UnreadableEvent):
        parsed(event)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_odd_event(data: st.DataObject) -> None:
    """An event with anything in the place of anything is read or said to be unreadable."""
    failed, behind = ended({"Reason": "ExceptionFailure"}), query_progressed(source("1", "1"))
    event = data.draw(st.sampled_from([started(), failed, stage_submitted(1), behind, query_idle(1)]))
    event = json.loads(json.dumps(event))
    where: Any = event
    for _ in range(data.draw(st.integers(0, 2))):
        inner = [mapping for mapping in where.values() if isinstance(mapping, dict) and mapping]
        where = data.draw(st.sampled_from(inner)) if inner else where
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(JSON)
    try:
        parsed(event)
    except events.UnreadableEvent:
        return


@pytest.mark.parametrize(
    ("line", "may"),
    [
        (b'{"Event":"SparkListenerTaskEnd","Stage', True),
        (b'{"Event":"SparkListenerStageSubmitted"', False),
        (b"", True),
        (b"{", True),
    ],
)
def test_what_cannot_be_read_may_be_the_end_of_an_attempt(line: bytes, *, may: bool) -> None:
    """The event may be an end unless its beginning names another kind."""
    assert events.may_end_attempt(line) is may
