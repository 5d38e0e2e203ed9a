"""Event logs: as Spark writes them, bit by bit, compacted, damaged, and other files."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.spark_listener.recordings import QUOTA, VERSIONS, ended, log_of, python_failure, started

from quotascope.spark_listener.event_log import CodecUnusable, EventLog, EventLogDamaged, NoEventLog, files
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job

START = {"Event": "SparkListenerApplicationStart", "App Name": "a", "Timestamp": 1}
FAILED = python_failure(QUOTA)


def written(events: Iterable[Any]) -> bytes:
    lines = (json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    return "".join(lines).encode()


def failures(count: int, first: int = 0) -> bytes:
    return written(ended(FAILED, task=task) for task in range(first, first + count))


def add(path: Path, data: bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(data)
    return path


Open = Callable[[Path], EventLog]


class Followed:
    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.job = Job("a")

    def finished(self) -> bool:
        return self.log.finished

    def read(self) -> tuple[int, int]:
        """How many failures are known after what is new was read, and how many lines that was."""
        lines = self.log.feed(self.job)
        return self.job.snapshot().failures[FailureCause.KAFKA_QUOTA], lines


@pytest.fixture(name="open_log")
def _open_log() -> Iterator[Open]:
    with ExitStack() as logs:
        yield lambda path: logs.enter_context(EventLog(path))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["plain", "zstd", "rolling"])
def test_recorded_log(version: str, kind: str, open_log: Open) -> None:
    """What Spark writes is read, whatever it is compressed with, and lost is nothing."""
    followed = Followed(open_log(log_of(version, kind)))
    log = followed.log
    failures, lines = followed.read()
    snapshot = followed.job.snapshot()
    assert (failures, snapshot.failures[FailureCause.OTHER], snapshot.retries[FailureCause.KAFKA_QUOTA]) == (1, 1, 1)
    assert (snapshot.events, snapshot.lost_events) == (lines, 0)
    assert (log.finished, log.compacted, log.raw_bytes) == (True, False, log.size())
    assert followed.read() == (1, 0)


def test_log_that_grows(tmp_path: Path, open_log: Open) -> None:
    """Each line is read once, and one that is not complete waits for its rest; the name changes at the end."""
    path = add(tmp_path / "app-1.inprogress", written([START]) + failures(2))
    followed = Followed(open_log(tmp_path / "app-1"))
    assert not followed.finished()
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


def test_files_that_are_missing(tmp_path: Path, open_log: Open) -> None:
    """A folder that was copied in part: each is counted as lost, but for those that were compacted."""
    folder = tmp_path / "eventlog_v2_app-1"
    for index in (2, 3, 6):
        add(folder / f"events_{index}_app-1", written([START]) + failures(1, first=index))
    followed = Followed(open_log(folder))
    assert followed.read() == (3, 6)
    assert followed.log.missing_files == followed.job.snapshot().lost_events == 3
    add(folder / "events_9_app-1.compact", failures(1, first=9))
    assert followed.read() == (4, 1)
    assert followed.log.missing_files == 3


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
    """What the History server has made of the first files takes their place, and is said; what it still writes is left out, and nothing is read twice."""
    folder = tmp_path / "eventlog_v2_app-1"
    add(folder / "appstatus_app-1", b"")
    add(folder / "events_1_app-1", failures(5))
    add(folder / "events_1_app-1.compact", failures(5))
    add(folder / "events_2_app-1.compact", written([START]) + failures(1, first=2))
    add(folder / "events_2_app-1", failures(5))
    add(folder / "events_3_app-1", failures(1, first=3))
    add(folder / "events_3_app-1.compact.inprogress", failures(5))
    followed = Followed(open_log(folder))
    assert followed.read() == (2, 3)
    assert followed.log.compacted
    assert followed.log.raw_bytes == followed.log.size()
    (folder / "events_3_app-1").rename(folder / "events_3_app-1.compact")
    add(folder / "events_4_app-1", failures(1, first=5))
    assert followed.read() == (3, 1)


def test_log_that_a_path_names(tmp_path: Path, open_log: Open) -> None:
    """The only log of a folder, or one by its name before its application ended; else what there is is said."""
    with pytest.raises(NoEventLog, match="does not exist"):
        open_log(tmp_path / "app-00")
    with pytest.raises(NoEventLog, match="holds no event log"):
        open_log(tmp_path)
    add(tmp_path / "app-00", written([START]))
    add(tmp_path / ".app-00.crc", b"x")
    for named in (tmp_path, tmp_path / "app-00.inprogress"):
        assert open_log(named).path == tmp_path / "app-00"
    for number in range(1, 12):
        add(tmp_path / f"app-{number:02}", b"")
    with pytest.raises(NoEventLog, match=r"12 event logs, name one: app-00, .*, …"):
        open_log(tmp_path)


def test_log_that_an_id_names(tmp_path: Path, open_log: Open) -> None:
    """In whatever form Spark writes it, by default in rolled files that are compressed; not what else has that name, nor one of several attempts."""
    for name in ("eventlog_v2_app-1/events_1_app-1", "app-2.zstd.inprogress", "app_3_1", "app_3_2"):
        add(tmp_path / name, written([START]))
    for name in ("app-1.json", "app-10", "app-2.zstd.inprogress.crc"):
        add(tmp_path / name, b"{}")
    assert open_log(tmp_path / "app-1").path == tmp_path / "eventlog_v2_app-1"
    assert open_log(tmp_path / "app-2").path == tmp_path / "app-2.zstd.inprogress"
    with pytest.raises(NoEventLog, match="2 event logs, name one: app_3_1, app_3_2"):
        open_log(tmp_path / "app_3")


def test_progress_is_reported(tmp_path: Path, open_log: Open) -> None:
    """A long log shows how far its reading is."""
    path = add(tmp_path / "a", written([START]) + failures(1) * 9_999)
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
def test_first_attempts_are_not_parsed(tmp_path: Path, read: list[int], *, successes: bool) -> None:
    """Starts of first attempts are left out, and counted, as are their ends if they succeeded, unless these are wanted."""
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


@pytest.mark.parametrize(
    ("suffix", "advice"),
    [
        (".lz4", "codec=zstd"),
        (".snappy", "codec=zstd"),
        (".lzf", "codec=zstd"),
        (".gz", "gunzip"),
        (".zstd", "pip install zstandard"),
    ],
)
def test_codec_that_cannot_be_read(
    tmp_path: Path, suffix: str, advice: str, open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said what to do instead, or for zstd, without its library, what to install."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = add(tmp_path / f"app-1{suffix}.inprogress", b"x")
    with pytest.raises(CodecUnusable, match=advice):
        open_log(path)


def test_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_log: Open) -> None:
    """One bit in the middle is enough; what was read before it stays known."""
    monkeypatch.setattr(files, "_ZSTD_AT_ONCE", 64)
    damaged = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(failures(2_000)))
    damaged[len(damaged) // 2] ^= 0x01
    path = add(tmp_path / "app-1.zstd", zstandard.compress(failures(3)) + damaged)
    followed = Followed(open_log(path))
    with pytest.raises(EventLogDamaged, match=r"app-1\.zstd"):
        followed.read()
    assert followed.job.snapshot().failures[FailureCause.KAFKA_QUOTA] >= 3


@pytest.mark.parametrize("suffix", [".zstd", ""])
def test_zstd_is_decompressed_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """A few bytes may stand for more than the memory holds; a file that was renamed is known by how it begins."""
    monkeypatch.setattr(files, "_ZSTD_AT_ONCE", 64)
    data = zstandard.compress(bytes(20_000_000))
    pieces = list(files.decoder(add(tmp_path / "a", data), suffix)(data))
    assert sum(map(len, pieces)) == 20_000_000
    assert max(map(len, pieces)) < 4_000_000


def test_lines_that_are_no_events(tmp_path: Path, open_log: Open) -> None:
    """They are counted as lost; halves of characters, which JSON may hold, and NaN, which Spark writes, are none of them."""
    odd = [
        b"{",
        b"",
        b"null",
        b"[" * 100_000,
        b"{}",
        b"[1]",
        b'{"Event":"SparkListenerTaskEnd"}',
        b"\xff",
        b"{" * 5_000,
    ]
    half = ended(python_failure(QUOTA, "\ud800"))
    path = add(tmp_path / "a", written([START, half, {**START, "Load": math.nan}]) + b"\n".join(odd) + b"\n")
    followed = Followed(open_log(path))
    assert followed.read() == (1, 12)
    snapshot = followed.job.snapshot()
    assert (snapshot.events, snapshot.lost_events) == (3, 9)


@pytest.mark.parametrize(
    "line", ["{}", '{"a":1}', '{"Event":1}', '{"Event":"login"}', "[1]", '"x"', "{", "", "from pathlib import Path"]
)
def test_file_of_something_else(tmp_path: Path, line: str, open_log: Open) -> None:
    """A file that is no event log, JSON lines that are no events of Spark's among them, is not searched for events."""
    path = add(tmp_path / "a", f"{line}\n".encode() * 3)
    with pytest.raises(NoEventLog, match="is not an event log"):
        Followed(open_log(path)).read()


def test_event_of_an_extension_may_come_first(tmp_path: Path, open_log: Open) -> None:
    """Its name is that of its class; in a rolled file it may be the first."""
    path = add(tmp_path / "a", written([{"Event": "com.example.Event"}]) + failures(1))
    assert Followed(open_log(path)).read() == (1, 2)


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param((b"{", 1), id="of any kind"),
        pytest.param((b'{"Event":"SparkListenerStageSubmitted","Stage Info":', 1), id="a stage"),
        pytest.param((b'{"Event":"SparkListenerTaskEnd","Stage ID":0,', 1), id="a failure"),
        pytest.param((b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",', 0), id="a plan"),
    ],
)
@pytest.mark.parametrize(
    ("cut", "found"),
    [
        pytest.param(None, [(1, 3), (1, 0)], id="after"),
        pytest.param(2_000_000, [(0, 1), (1, 2)], id="within"),
    ],
)
def test_endless_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_log: Open,
    cut: int | None,
    found: list[tuple[int, int]],
    endless: tuple[bytes, int],
) -> None:
    """A line that is too long does not fill the memory, and is lost once if it may matter, whether reading goes on after or within it."""
    monkeypatch.setattr("quotascope.spark_listener.event_log.log._LONGEST_LINE", 1_000_000)
    begins, lost = endless
    whole = written([START]) + begins + b" " * 3_000_000 + b"\n" + failures(1)
    path = add(tmp_path / "a", whole[:cut])
    followed = Followed(open_log(path))
    for each in found:
        assert followed.read() == each
        path.write_bytes(whole)
    assert followed.job.snapshot().lost_events == lost
    assert followed.log.raw_bytes == len(whole)
