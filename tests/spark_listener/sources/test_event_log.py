import gc
import shutil
from pathlib import Path

import pytest
from tests.builders.spark_events import STREAMING, job_ended, query_started, written
from tests.spark_listener.recordings import NEWEST, Remembered, log_of

from quotascope.spark_listener.errors import SourceUnusable
from quotascope.spark_listener.event_log import EventLogDamaged, NoEventLog
from quotascope.spark_listener.sources.event_log import EventLogSource, LogPlace, log_place


def _clock() -> float:
    return 4_000_000_000.0


def test_finished_log_is_read_to_its_end() -> None:
    """A source reads a finished log to its end, stops, and reports its oldest event's age."""
    books = Remembered()
    source = EventLogSource(LogPlace(path=log_of(NEWEST, "plain")), books, clock=_clock)
    assert source.collect() > 1_000_000_000
    assert source.ended
    assert books.kinds[-1] == "SparkListenerApplicationEnd"
    assert source.collect() == 0.0
    source.close()


def test_log_is_waited_for(tmp_path: Path) -> None:
    """A source waits for the log, which Spark creates some time after the session."""
    books = Remembered()
    source = EventLogSource(LogPlace(path=tmp_path, app_id="local-1"), books)
    assert (source.collect(), source.ended) == (0.0, False)
    shutil.copy(log_of(NEWEST, "plain"), tmp_path / "local-1")
    source.collect()
    assert source.ended
    assert books.lost_events == 0
    source.close()


OTHERS = ["application_17_12345", "eventlog_v2_application_17_12345"]
ATTEMPTS = ["app_9.zstd", "eventlog_v2_app_10", "app_2", "app_1.inprogress"]


@pytest.mark.parametrize(
    ("names", "app_id", "attempt", "expected"),
    [
        pytest.param(OTHERS, "application_17_1234", None, None, id="a longer id, as YARN's numbers grow by a digit"),
        pytest.param(
            [*OTHERS, "application_17_1234_1.inprogress"],
            "application_17_1234", None, "application_17_1234_1.inprogress", id="what may follow an id"),
        pytest.param(ATTEMPTS, "app", None, "eventlog_v2_app_10", id="the last attempt"),
        pytest.param(ATTEMPTS, "app", "2", "app_2", id="the attempt that runs"),
        pytest.param(ATTEMPTS, "app", "3", None, id="another attempt"),
    ]
)  # fmt: skip
def test_folder_is_searched_for_the_application(
    tmp_path: Path, names: list[str], app_id: str, attempt: str | None, expected: str | None
) -> None:
    """
    The log of the application is found among many others.

    YARN starts an application again under its id, with a log for each attempt.
    """
    for name in names:
        (tmp_path / name).mkdir() if name.startswith("eventlog") else (tmp_path / name).touch()
    place = LogPlace(path=tmp_path, app_id=app_id, attempt=attempt)
    if expected is None:
        with pytest.raises(NoEventLog, match=f"no event log of {app_id}"):
            place.find()
    else:
        assert place.find().name == expected


def test_log_that_cannot_be_read(tmp_path: Path) -> None:
    """A codec that nothing reads is reported at once; the file of a damaged log is not left open."""
    log = tmp_path / "local-1.lzf"
    log.write_bytes(b"ZV\x01")
    with pytest.raises(SourceUnusable, match=r"event_log: .*LZF"):
        EventLogSource(LogPlace(path=log), Remembered())
    log = tmp_path / "local-1.zstd"
    log.write_bytes(b"\x28\xb5\x2f\xfd" + b"\xff" * 40)
    source = EventLogSource(LogPlace(path=log), Remembered())
    with pytest.raises(EventLogDamaged):
        source.close()
    gc.collect()  # a file that was left open is a warning, which is an error here


@pytest.mark.parametrize("queries", [True, False])
def test_queries_can_be_left_to_another_source(tmp_path: Path, *, queries: bool) -> None:
    """Queries of the streaming listener are not reported twice."""
    log = tmp_path / "local-1.inprogress"
    log.write_bytes(written([query_started(), job_ended()]))
    books = Remembered()
    EventLogSource(LogPlace(path=log), books, queries=queries).close()
    assert books.kinds == [f"{STREAMING}QueryStartedEvent", "SparkListenerJobEnd"][not queries :]


@pytest.mark.parametrize(
    ("setting", "properties", "place"),
    [
        ("/logs/app", {}, LogPlace(path=Path("/logs/app"))),
        ("file:///my%20logs/app", {}, LogPlace(path=Path("/my logs/app"))),
        ("hdfs://nn/logs", {}, None),
        ("s3a://[logs/app", {}, None),
        (
            None,
            {"eventLog.enabled": "true", "eventLog.dir": "file:/logs"},
            LogPlace(path=Path("/logs"), app_id="app-1"),
        ),
        (
            None,
            {"eventLog.enabled": "true", "eventLog.dir": "/logs", "app.attempt.id": "2"},
            LogPlace(path=Path("/logs"), app_id="app-1", attempt="2"),
        ),
        (None, {"eventLog.enabled": "true", "eventLog.dir": "s3a://b"}, None),
        (None, {"eventLog.enabled": "true"}, None),
        (None, {"eventLog.dir": "/logs"}, None),
    ],
)
def test_place_is_set_or_found(setting: str | None, properties: dict[str, str], place: LogPlace | None) -> None:
    """The log's place is set or found where Python can read it: neither in HDFS nor in an object store."""
    log = log_place(setting, {f"spark.{name}": value for name, value in properties.items()}, "app-1")
    assert log == place
