from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.spark_listener.recordings import (
    QUOTA,
    VERSIONS,
    ended,
    log_of,
    python_failure,
    started,
)

from quotascope.spark_listener.event_log import (
    CodecUnusable,
    EventLog,
    EventLogDamaged,
    NoEventLog,
    Position,
    codec,
)
from quotascope.spark_listener.events import Cause
from quotascope.spark_listener.job import Job

START = {"Event": "SparkListenerApplicationStart", "App Name": "a", "Timestamp": 1}
FAILED = python_failure(QUOTA)


def written(events: Iterable[Any]) -> bytes:
    """Lines as Spark writes them."""
    lines = (json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    return "".join(lines).encode()


def failures(count: int, first: int = 0) -> bytes:
    """Failed attempts."""
    return written(ended(FAILED, task=task) for task in range(first, first + count))


def add(path: Path, data: bytes) -> Path:
    """Append to a file."""
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(data)
    return path


Open = Callable[..., EventLog]


@pytest.fixture(name="open_log")
def _open_log() -> Iterator[Open]:
    """Opens logs and closes them at the end."""
    with ExitStack() as logs:

        def open_log(path: Path, after: Position | None = None) -> EventLog:
            return logs.enter_context(EventLog(path, after))

        yield open_log


class Followed:
    """A log and the books that it feeds."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.job = Job("a")

    def finished(self) -> bool:
        """Whether nothing more can come."""
        return self.log.finished

    def read(self) -> tuple[int, int]:
        """How many failures are known after what is new was read, and how many lines that was."""
        lines = self.log.feed(self.job)
        return self.job.snapshot().failures[Cause.KAFKA_QUOTA], lines


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["plain", "zstd", "rolling"])
def test_recorded_log(version: str, kind: str, open_log: Open) -> None:
    """What Spark writes is read, whatever it is compressed with, and lost is nothing."""
    log = open_log(log_of(version, kind))
    job = Job("a")
    lines = log.feed(job)
    snapshot = job.snapshot()
    assert snapshot.failures[Cause.KAFKA_QUOTA] == 1
    assert snapshot.failures[Cause.OTHER] == 1
    assert snapshot.retries[Cause.KAFKA_QUOTA] == 1
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


def test_compressed_log_that_grows(tmp_path: Path, open_log: Open) -> None:
    """A frame that is not complete waits for its rest; the next one follows it."""
    path = tmp_path / "app-1.zstd.inprogress"
    frames = [
        zstandard.compress(written([START]) + failures(3)),
        zstandard.compress(failures(2, first=3)),
    ]
    add(path, frames[0][:-20])
    followed = Followed(open_log(path))
    assert followed.read()[0] <= 3
    add(path, frames[0][-20:] + frames[1][:5])
    assert followed.read()[0] == 3
    add(path, frames[1][5:])
    assert followed.read()[0] == 5
    assert followed.job.snapshot().lost_events == 0


def test_folder_of_rolled_files(tmp_path: Path, open_log: Open) -> None:
    """Files are read in the order of their numbers, also those that are begun later."""
    folder = tmp_path / "eventlog_v2_app-1"
    add(folder / "appstatus_app-1.inprogress", b"")
    for index in (1, 2, 10):
        add(
            folder / f"events_{index}_app-1",
            (written([START]) if index == 1 else b"") + failures(1, first=index),
        )
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
    add(folder / "events_2_app-1.compact", written([START]) + failures(1, first=2))
    add(folder / "events_2_app-1", failures(5))
    add(folder / "events_3_app-1", failures(1, first=3))
    followed = Followed(open_log(folder))
    assert followed.read() == (2, 3)
    assert followed.log.compacted


def test_reading_goes_on_later(tmp_path: Path, open_log: Open) -> None:
    """Where it was left is known in plain values, compressed or not."""
    for suffix, compress in (("", bytes), (".zstd", zstandard.compress)):
        folder = tmp_path / f"eventlog_v2_app{suffix}"
        add(folder / f"events_1_a{suffix}", compress(written([START]) + failures(2)))
        first = Followed(open_log(folder))
        assert first.read() == (2, 3)
        position = first.log.position
        add(folder / f"events_1_a{suffix}", compress(failures(1, first=2)))
        add(folder / f"events_2_a{suffix}", compress(failures(1, first=3)))
        second = Followed(open_log(folder, after=position))
        assert second.read() == (2, 2)
        third = Followed(open_log(folder, after=second.log.position))
        assert third.read() == (0, 0)
        assert third.log.position == second.log.position


def test_reading_goes_on_after_a_compaction(tmp_path: Path, open_log: Open) -> None:
    """What was read is not read again from the file that took its place."""
    folder = tmp_path / "eventlog_v2_app-1"
    add(folder / "events_1_a", written([START]) + failures(2))
    first = Followed(open_log(folder))
    first.read()
    (folder / "events_1_a").rename(folder / "events_1_a.compact")
    add(folder / "events_2_a", failures(1, first=5))
    assert Followed(open_log(folder, after=first.log.position)).read() == (1, 1)


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


@pytest.mark.parametrize("suffix", [".lz4", ".snappy", ".lzf", ".gz"])
def test_codec_that_nothing_reads(tmp_path: Path, suffix: str, open_log: Open) -> None:
    """It is said what to do instead."""
    path = add(tmp_path / f"app-1{suffix}.inprogress", b"x")
    with pytest.raises(CodecUnusable, match=r"codec=zstd|gunzip"):
        open_log(path)


def test_zstd_without_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_log: Open
) -> None:
    """It is said what to install."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = add(tmp_path / "app-1.zstd", b"")
    with pytest.raises(CodecUnusable, match=r"quotascope\[zstd\]"):
        open_log(path)


def test_damaged_file(tmp_path: Path, open_log: Open) -> None:
    """It is said so, not taken for the end."""
    data = bytearray(zstandard.compress(failures(2_000)))
    data[len(data) // 2] ^= 0xFF
    path = add(tmp_path / "app-1.zstd", bytes(data[:4]) + b"\xff" * 40)
    with pytest.raises(EventLogDamaged, match=r"app-1\.zstd"):
        Followed(open_log(path)).read()


def test_zstd_is_decompressed_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes may stand for more than the memory holds."""
    monkeypatch.setattr(codec, "_ZSTD_AT_ONCE", 64)
    data = zstandard.compress(bytes(20_000_000))
    pieces = list(codec.decoder(add(tmp_path / "a", data), ".zstd")(data))
    assert sum(map(len, pieces)) == 20_000_000
    assert max(map(len, pieces)) < 4_000_000


def test_zstd_without_its_suffix(tmp_path: Path, open_log: Open) -> None:
    """A log that somebody has renamed is known by its first bytes."""
    path = add(tmp_path / "log", zstandard.compress(failures(1)))
    assert Followed(open_log(path)).read() == (1, 1)


def test_other_file(open_log: Open) -> None:
    """A file that is no event log is not searched for events."""
    with pytest.raises(NoEventLog, match="is no event log"):
        Followed(open_log(Path(__file__))).read()


def test_lines_that_are_no_events(tmp_path: Path, open_log: Open) -> None:
    """They are counted as lost; halves of characters, which JSON may hold, are none of them."""
    odd = [
        b"{",
        b"{}",
        b"[1]",
        b'{"Event":"SparkListenerTaskEnd"}',
        b"\xff",
        b"{" * 5_000,
    ]
    half = ended(python_failure(QUOTA, "\ud800"))
    path = add(tmp_path / "a", written([START, half]) + b"\n".join(odd) + b"\n")
    followed = Followed(open_log(path))
    assert followed.read() == (1, 8)
    snapshot = followed.job.snapshot()
    assert snapshot.events + snapshot.lost_events == 8
    assert (
        snapshot.lost_events == 5
    )  # {} has no kind, so it is one that does not matter


def test_endless_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_log: Open
) -> None:
    """A file without line ends does not fill the memory."""
    monkeypatch.setattr(
        "quotascope.spark_listener.event_log.reading._LONGEST_LINE", 1_000_000
    )
    path = add(tmp_path / "a", written([START]) + b"{" + b" " * 3_000_000 + b"\n")
    add(path, failures(1))
    followed = Followed(open_log(path))
    assert followed.read()[0] == 1
    assert followed.job.snapshot().lost_events >= 1


def test_progress_is_told(tmp_path: Path, open_log: Open) -> None:
    """A long log shows how far its reading is."""
    path = add(tmp_path / "a", written([START]) + failures(12_000))
    told: list[int] = []
    log = open_log(path)
    log.feed(Job("a"), told.append)
    assert len(told) == 2
    assert 0 < told[0] <= told[1] <= log.size()


def test_log_moves_while_it_is_read(tmp_path: Path, open_log: Open) -> None:
    """A folder that is gone is an error that names it."""
    shutil.copytree(log_of(VERSIONS[0], "rolling"), tmp_path / "eventlog_v2_a")
    log = open_log(tmp_path / "eventlog_v2_a")
    shutil.rmtree(tmp_path / "eventlog_v2_a")
    with pytest.raises(NoEventLog, match="does not exist"):
        log.feed(Job("a"))


def test_first_attempts_are_not_parsed(tmp_path: Path, open_log: Open) -> None:
    """Successful first attempts and their starts are left out, and counted; all others are read."""
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
    open_log(path).feed(job)
    assert seen == [2, 3, 4, 5]
    assert job.snapshot().events == 2
