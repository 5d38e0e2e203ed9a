from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.spark_listener.event_log.logs import FAILED, START, Followed, Open, add, failures, written
from tests.spark_listener.recordings import VERSIONS, ended, log_of, started

from quotascope.spark_listener.event_log import EventLog, NoEventLog
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["plain", "zstd", "rolling"])
def test_recorded_log(version: str, kind: str, open_log: Open) -> None:
    """What Spark writes is read, whatever it is compressed with, and lost is nothing."""
    log = open_log(log_of(version, kind))
    job = Job("a")
    lines = log.feed(job)
    snapshot = job.snapshot()
    assert snapshot.failures[FailureCause.KAFKA_QUOTA] == 1
    assert snapshot.failures[FailureCause.OTHER] == 1
    assert snapshot.retries[FailureCause.KAFKA_QUOTA] == 1
    assert (snapshot.events, snapshot.lost_events) == (lines, 0)
    assert log.finished
    assert not log.compacted
    assert log.raw_bytes == log.size()
    assert log.feed(job) == 0


def test_log_that_grows(tmp_path: Path, open_log: Open) -> None:
    """Each line is read once, and one that is not complete waits for its rest; the name changes at the end."""
    path = add(tmp_path / "app-1.inprogress", written([START]) + failures(2))
    followed = Followed(open_log(tmp_path / "app-1"))
    assert followed.read() == (2, 3)
    assert followed.read() == (2, 0)
    line = failures(1, first=2)
    add(path, line[:100])
    assert followed.read() == (2, 0)
    add(path, line[100:] + failures(1, first=3))
    assert followed.read() == (4, 2)
    assert not followed.finished()
    add(path, failures(1, first=4)).rename(tmp_path / "app-1")
    assert followed.read() == (5, 1)
    assert followed.finished()


def test_folder_of_rolled_files(tmp_path: Path, open_log: Open) -> None:
    """Files are read in the order of their numbers, also those that are begun later."""
    folder = tmp_path / "eventlog_v2_app-1"
    add(folder / "appstatus_app-1.inprogress", b"")
    for index in (1, 2, 10):
        add(folder / f"events_{index}_app-1", (written([START]) if index == 1 else b"") + failures(1, first=index))
    followed = Followed(open_log(folder))
    assert followed.read() == (3, 4)
    add(folder / "events_10_app-1", failures(1, first=20))
    add(folder / "events_11_app-1.zstd", zstandard.compress(failures(1, first=30)))
    assert followed.read() == (5, 2)
    assert not followed.finished()
    (folder / "appstatus_app-1.inprogress").rename(folder / "appstatus_app-1")
    assert followed.read() == (5, 0)
    assert followed.finished()
    assert followed.log.raw_bytes == followed.log.size()


def test_line_that_is_cut_at_the_end_of_a_file(tmp_path: Path, open_log: Open) -> None:
    """Nothing follows when the next file is there: it is lost, and counted."""
    folder = tmp_path / "eventlog_v2_app-1"
    add(folder / "events_1_app-1", written([START]) + failures(1)[:50])
    add(folder / "events_2_app-1", failures(1))
    followed = Followed(open_log(folder))
    assert followed.read() == (1, 2)
    assert followed.read() == (1, 0)
    assert followed.job.snapshot().lost_events == 1


def test_compacted_log(tmp_path: Path, open_log: Open) -> None:
    """What the History server has made of the first files takes their place, and it is said."""
    folder = tmp_path / "eventlog_v2_app-1"
    add(folder / "appstatus_app-1", b"")
    add(folder / "events_1_app-1", failures(5))
    add(folder / "events_1_app-1.compact", failures(5))
    add(folder / "events_2_app-1.compact", written([START]) + failures(1, first=2))
    add(folder / "events_2_app-1", failures(5))
    add(folder / "events_3_app-1", failures(1, first=3))
    followed = Followed(open_log(folder))
    assert followed.read() == (2, 3)
    assert followed.log.compacted


def test_reading_goes_on_after_a_compaction(tmp_path: Path, open_log: Open) -> None:
    """What was read is not read again from the file that took its place."""
    folder = tmp_path / "eventlog_v2_app-1"
    add(folder / "events_1_a", written([START]) + failures(2))
    followed = Followed(open_log(folder))
    assert followed.read() == (2, 3)
    (folder / "events_1_a").rename(folder / "events_1_a.compact")
    add(folder / "events_2_a", failures(1, first=5))
    assert followed.read() == (3, 1)


def test_folder_with_one_log(tmp_path: Path, open_log: Open) -> None:
    """It need not be named."""
    add(tmp_path / "app-1", written([START]))
    add(tmp_path / ".app-1.crc", b"x")
    assert open_log(tmp_path).path == tmp_path / "app-1"


def test_folder_with_many_logs(tmp_path: Path, open_log: Open) -> None:
    """It is said which there are."""
    for number in range(12):
        add(tmp_path / f"app-{number:02}", b"")
    with pytest.raises(NoEventLog, match=r"12 event logs, name one: app-00, .*, …"):
        open_log(tmp_path)


def test_nothing_there(tmp_path: Path, open_log: Open) -> None:
    """It is said what is missing."""
    with pytest.raises(NoEventLog, match="does not exist"):
        open_log(tmp_path / "app-1")
    with pytest.raises(NoEventLog, match="holds no event log"):
        open_log(tmp_path)


def test_log_of_an_application_that_has_ended(tmp_path: Path, open_log: Open) -> None:
    """The name that it had before leads there, too."""
    add(tmp_path / "app-1", written([START]))
    assert open_log(tmp_path / "app-1.inprogress").path == tmp_path / "app-1"


def test_progress_is_reported(tmp_path: Path, open_log: Open) -> None:
    """A long log shows how far its reading is."""
    path = add(tmp_path / "a", written([START]) + failures(12_000))
    reported: list[int] = []
    log = open_log(path)
    log.feed(Job("a"), reported.append)
    assert len(reported) == 2
    assert 0 < reported[0] <= reported[1] <= log.size()


def test_log_moves_while_it_is_read(tmp_path: Path, open_log: Open) -> None:
    """A folder that is gone is an error that names it."""
    shutil.copytree(log_of(VERSIONS[0], "rolling"), tmp_path / "eventlog_v2_a")
    log = open_log(tmp_path / "eventlog_v2_a")
    shutil.rmtree(tmp_path / "eventlog_v2_a")
    with pytest.raises(NoEventLog, match="does not exist"):
        log.feed(Job("a"))


@pytest.mark.parametrize(("successes", "read"), [(False, [2, 3, 4, 5]), (True, [1, 2, 3, 4, 5])])
def test_first_attempts_are_not_parsed(
    tmp_path: Path,
    successes: bool,  # noqa: FBT001 - a case
    read: list[int],
) -> None:
    """Starts of first attempts are left out, and counted, and so are their ends if they succeeded, unless these are asked for."""
    events = [
        started(task=1),
        ended(task=1),
        ended("Success", number=1, task=2),
        ended("Success", stage_attempt=1, task=3),
        started(stage_attempt=1, task=4),
        ended(FAILED, task=5),
    ]
    path = add(tmp_path / "a", written(events))
    seen: list[int] = []

    class Seen(Job):
        def handle(self, event: Any) -> None:
            seen.append(event["Task Info"]["Task ID"])

    job = Seen("a")
    with EventLog(path, successes=successes) as log:
        log.feed(job)
    assert seen == read
    assert job.snapshot().events == len(events) - len(read)
