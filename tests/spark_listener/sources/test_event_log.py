import gc
import shutil
from pathlib import Path

import pytest
from tests.spark_listener.books import Remembered
from tests.spark_listener.recordings import STREAMING, log_of

from quotascope.spark_listener.errors import SourceUnusable
from quotascope.spark_listener.event_log import EventLogDamaged, NoEventLog
from quotascope.spark_listener.sources.event_log import EventLogSource, LogPlace, log_place

VERSION = "4.3.0"


def _clock() -> float:
    return 4_000_000_000.0


def test_finished_log_is_read_to_its_end() -> None:
    """The source ends with it, and says how old the oldest of it was."""
    books = Remembered()
    source = EventLogSource(LogPlace(path=log_of(VERSION, "plain")), books, clock=_clock)
    assert source.collect() > 1_000_000_000
    assert source.ended
    assert books.kinds[-1] == "SparkListenerApplicationEnd"
    assert source.collect() == 0.0
    source.close()


def test_log_is_waited_for(tmp_path: Path) -> None:
    """Spark makes it some time after the session; until then there is nothing."""
    books = Remembered()
    source = EventLogSource(LogPlace(path=tmp_path, app_id="local-1"), books)
    assert (source.collect(), source.ended) == (0.0, False)
    shutil.copy(log_of(VERSION, "plain"), tmp_path / "local-1")
    source.collect()
    assert source.ended
    assert books.lost_events == 0
    source.close()


def test_folder_is_searched_for_the_application(tmp_path: Path) -> None:
    """Among many applications' logs, in one file or rolled."""
    (tmp_path / "local-2.zstd").touch()
    (tmp_path / "eventlog_v2_local-1").mkdir()
    one = LogPlace(path=tmp_path, app_id="local-1")
    assert one.find().name == "eventlog_v2_local-1"
    assert LogPlace(path=tmp_path, app_id="local-2").find().name == "local-2.zstd"
    with pytest.raises(NoEventLog, match="no event log of local-3"):
        LogPlace(path=tmp_path, app_id="local-3").find()


def test_longer_id_is_that_of_another_application(tmp_path: Path) -> None:
    """YARN's numbers grow by a digit; what may follow an id is an attempt's number or a suffix."""
    place = LogPlace(path=tmp_path, app_id="application_17_1234")
    (tmp_path / "application_17_12345").touch()
    (tmp_path / "eventlog_v2_application_17_12345").mkdir()
    with pytest.raises(NoEventLog):
        place.find()
    (tmp_path / "application_17_1234_1.inprogress").touch()
    assert place.find().name == "application_17_1234_1.inprogress"


def test_attempt_has_a_log_of_its_own(tmp_path: Path) -> None:
    """YARN starts an application again under its id: the log is that of the attempt that runs, else of the last one."""
    for name in ("app_9.zstd", "eventlog_v2_app_10", "app_2", "app_1.inprogress"):
        (tmp_path / name).touch()
    assert LogPlace(path=tmp_path, app_id="app").find().name == "eventlog_v2_app_10"
    second = LogPlace(path=tmp_path, app_id="app", attempt="2")
    assert second.find().name == "app_2"
    third = LogPlace(path=tmp_path, app_id="app", attempt="3")
    with pytest.raises(NoEventLog, match="no event log of app"):
        third.find()


def test_damaged_log_is_closed(tmp_path: Path) -> None:
    """Its file is not left open, whatever is in it."""
    log = tmp_path / "local-1.zstd"
    log.write_bytes(b"\x28\xb5\x2f\xfd" + b"\xff" * 40)
    source = EventLogSource(LogPlace(path=log), Remembered())
    with pytest.raises(EventLogDamaged):
        source.close()
    gc.collect()  # a file that was left open is a warning, which is an error here


@pytest.mark.parametrize("queries", [True, False])
def test_queries_can_be_left_to_another_source(tmp_path: Path, *, queries: bool) -> None:
    """What the streaming listener reports is not reported twice."""
    lines = [
        f'{{"Event":"{STREAMING}QueryStartedEvent","id":"1","runId":"1","name":null}}',
        '{"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":1}',
    ]
    log = tmp_path / "local-1.inprogress"
    log.write_text("\n".join(lines) + "\n")
    books = Remembered()
    EventLogSource(LogPlace(path=log), books, queries=queries).close()
    reported = [f"{STREAMING}QueryStartedEvent"] if queries else []
    assert books.kinds == [*reported, "SparkListenerJobEnd"]


def test_what_is_no_log_cannot_be_used(tmp_path: Path) -> None:
    """A codec that cannot be read is reported at once."""
    log = tmp_path / "local-1.lz4"
    log.write_bytes(b"LZ4Block")
    with pytest.raises(SourceUnusable, match=r"event_log: .*lz4"):
        EventLogSource(LogPlace(path=log), Remembered())


@pytest.mark.parametrize(
    ("setting", "properties", "place"),
    [
        ("/logs/app", {}, LogPlace(path=Path("/logs/app"))),
        ("file:///my%20logs/app", {}, LogPlace(path=Path("/my logs/app"))),
        ("hdfs://nn/logs", {}, None),
        ("s3a://[logs/app", {}, None),
        (
            None,
            {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:/logs"},
            LogPlace(path=Path("/logs"), app_id="app-1"),
        ),
        (
            None,
            {
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": "/logs",
                "spark.app.attempt.id": "2",
            },
            LogPlace(path=Path("/logs"), app_id="app-1", attempt="2"),
        ),
        (
            None,
            {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "s3a://b"},
            None,
        ),
        (None, {"spark.eventLog.enabled": "true"}, None),
        (None, {"spark.eventLog.dir": "/logs"}, None),
    ],
)
def test_place_is_set_or_found(setting: str | None, properties: dict[str, str], place: LogPlace | None) -> None:
    """Only where Python can read: neither in HDFS nor in an object store."""
    assert log_place(setting, properties, "app-1") == place
