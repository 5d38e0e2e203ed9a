"""Event logs: as Spark writes them, bit by bit, compacted, damaged, and other files."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from tests.builders.spark_events import (
    FAILED,
    QUOTA,
    application_started,
    ended,
    failures,
    python_failure,
    started,
    written,
)
from tests.spark_listener.recordings import VERSIONS, Remembered, log_of

from quotascope.spark_listener.errors import CodecUnusable, EventLogDamaged, EventLogError, NoEventLog
from quotascope.spark_listener.event_log import EventLog, codecs, log
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job

START = application_started(0.001, app_id=None)


BEGIN = written([START])
FOLDER = "eventlog_v2_app-1"
PARTS = {n: f"{FOLDER}/events_{n}_app-1" for n in range(1, 12)}
STATUS = f"{FOLDER}/appstatus_app-1"


class Found(NamedTuple):
    """Result of a reading of new lines."""

    failures: int
    lines: int
    """Number of new lines."""
    lost: int = 0
    missing: int = 0
    finished: bool = False
    compacted: bool = False


def write(folder: Path, changes: Mapping[str, bytes | str]) -> None:
    """Append bytes to files, or give a file another name."""
    for name, change in changes.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(change, str):
            path.rename(folder / change)
        else:
            with path.open("ab") as file:
                file.write(change)


class Followed:
    """A log in a folder, and the job that its events go to."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        self.log = EventLog(folder / path)
        self.job = Job("a")

    def read(self, changes: Mapping[str, bytes | str] | None = None) -> Found:
        write(self.folder, changes or {})
        lines = self.log.feed(self.job)
        snapshot = self.job.snapshot()
        counts = snapshot.failures[FailureCause.KAFKA_QUOTA], lines, snapshot.lost_events
        return Found(*counts, self.log.missing_files, self.log.finished, self.log.compacted)


Follow = Callable[[str, Mapping[str, bytes]], Followed]


@pytest.fixture(name="follow")
def _follow(tmp_path: Path, request: pytest.FixtureRequest) -> Follow:
    """Follows a path below a folder with these files."""

    def follow(path: str, contents: Mapping[str, bytes]) -> Followed:
        write(tmp_path, contents)
        followed = Followed(tmp_path, path)
        request.addfinalizer(followed.log.close)
        return followed

    return follow


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["plain", "zstd", "rolling"])
def test_recorded_log(version: str, kind: str, follow: Follow) -> None:
    """The recorded log is read, with every codec, and no event is lost."""
    followed = follow(str(log_of(version, kind)), {})
    reading = followed.read()
    snapshot = followed.job.snapshot()
    assert reading == Found(1, snapshot.events, finished=True)
    assert (snapshot.failures[FailureCause.OTHER], snapshot.retries[FailureCause.KAFKA_QUOTA]) == (1, 1)
    assert followed.log.raw_bytes == followed.log.size()
    assert followed.read() == Found(1, 0, finished=True)


def test_log_that_grows(follow: Follow) -> None:
    """Each line of a growing log is read once, an incomplete one when it is whole; the name changes at the end."""
    running = "app-1.inprogress"
    followed = follow("app-1", {running: BEGIN + failures(2)})
    assert not followed.log.finished
    assert followed.read() == Found(2, 3)
    assert followed.read() == Found(2, 0)
    line = failures(1, first_task=2)
    assert followed.read({running: line[:100]}) == Found(2, 0)
    assert followed.read({running: line[100:] + failures(1, first_task=3)}) == Found(4, 2)
    write(followed.folder, {running: failures(1, first_task=4)})
    assert followed.read({running: "app-1"}) == Found(5, 1, finished=True)


def test_folder_of_rolled_files(follow: Follow) -> None:
    """Files are read in the order of their numbers, also those that are begun later."""
    contents = {
        STATUS + ".inprogress": b"",
        PARTS[1]: BEGIN,
        **{PARTS[n]: failures(1, first_task=n) for n in range(2, 11)},
    }
    followed = follow(FOLDER, contents)
    assert followed.read() == Found(9, 10)
    files = {PARTS[10]: failures(1, first_task=20), PARTS[11] + ".zstd": zstandard.compress(failures(1, first_task=30))}
    assert followed.read(files) == Found(11, 2)
    assert followed.read({STATUS + ".inprogress": STATUS}) == Found(11, 0, finished=True)
    assert followed.log.raw_bytes == followed.log.size()


def test_files_that_are_missing(follow: Follow) -> None:
    """Missing files of a copied folder are counted as lost, except for compacted ones."""
    followed = follow(FOLDER, {PARTS[n]: BEGIN + failures(1, first_task=n) for n in (2, 3, 6)})
    assert followed.read() == Found(3, 6, lost=3, missing=3)
    assert followed.read({PARTS[9] + ".compact": failures(1, first_task=9)}) == Found(4, 1, lost=3, missing=3)


def test_line_that_is_cut_at_the_end_of_a_file(follow: Follow) -> None:
    """The cut line is lost, and counted, once the next file is there."""
    followed = follow(FOLDER, {PARTS[1]: BEGIN + failures(1)[:50], PARTS[2]: failures(1)})
    assert followed.read() == Found(1, 2, lost=1)
    assert followed.read() == Found(1, 0, lost=1)


def test_compacted_log(follow: Follow) -> None:
    """
    The History server's compacted file replaces the first files, and is reported.

    What it still writes is left out, and nothing is read twice.
    """
    again = dict.fromkeys((PARTS[1], PARTS[1] + ".compact", PARTS[2]), failures(5))
    compacted = {PARTS[2] + ".compact": BEGIN + failures(1, first_task=2), PARTS[3]: failures(1, first_task=3)}
    unfinished = {PARTS[3] + ".compact.inprogress": failures(5)}
    followed = follow(FOLDER, {STATUS: b"", **again, **compacted, **unfinished})
    assert followed.read() == Found(2, 3, finished=True, compacted=True)
    assert followed.log.raw_bytes == followed.log.size()
    later: dict[str, bytes | str] = {PARTS[3]: PARTS[3] + ".compact", PARTS[4]: failures(1, first_task=5)}
    assert followed.read(later) == Found(3, 1, finished=True, compacted=True)


def test_event_of_an_extension_may_come_first(follow: Follow) -> None:
    """An event of an extension, named by its class, may be the first of a rolled file."""
    followed = follow("a", {"a": written([{"Event": "com.example.Event"}]) + failures(1)})
    assert followed.read() == Found(1, 2, finished=True)


@pytest.mark.parametrize(
    ("begins", "lost"),
    [
        pytest.param(b"{", 1, id="of any kind"),
        pytest.param(b'{"Event":"SparkListenerStageSubmitted","Stage Info":', 1, id="a stage"),
        pytest.param(b'{"Event":"SparkListenerTaskEnd","Stage ID":0,', 1, id="a failure"),
        pytest.param(b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",', 0, id="a plan"),
    ],
)
def test_endless_line(begins: bytes, lost: int, monkeypatch: pytest.MonkeyPatch, follow: Follow) -> None:
    """
    A line that is too long does not fill the memory.

    It is lost once if it may matter, whether reading goes on after or within it.
    """
    monkeypatch.setattr(log, "_LONGEST_LINE", 1_000_000)
    whole = BEGIN + begins + b" " * 3_000_000 + b"\n" + failures(1)
    beyond, within = follow("a", {"a": whole}), follow("b", {"b": whole[:2_000_000]})
    assert beyond.read() == Found(1, 3, lost, finished=True)
    assert beyond.read() == Found(1, 0, lost, finished=True)
    assert within.read() == Found(0, 1, finished=True)
    assert within.read({"b": whole[2_000_000:]}) == Found(1, 2, lost, finished=True)
    assert follow("c", {"c": whole[len(BEGIN) :]}).read() == Found(1, 2, lost, finished=True)
    assert beyond.log.raw_bytes == within.log.raw_bytes == len(whole)


LOGS = [f"{FOLDER}/events_1_app-1", "app-2.zstd.inprogress", "app_3_1", "app_3_2"]
OTHERS = ["app-1.json", "app-10", "app-2.zstd.inprogress.crc"]
"""Files beside these logs, with names like theirs."""


@pytest.mark.parametrize(
    ("names", "path", "expected"),
    [
        (["app-00", ".app-00.crc"], ".", "app-00"),
        (["app-00", ".app-00.crc"], "app-00.inprogress", "app-00"),
        (LOGS + OTHERS, "app-1", FOLDER),
        (LOGS + OTHERS, "app-2", "app-2.zstd.inprogress"),
        (["app-4.zstd", "app-4_1.zstd"], "app-4", "app-4.zstd"),
    ],
)
def test_log_that_a_path_names(names: list[str], path: str, expected: str, follow: Follow) -> None:
    """A path names the only log of a folder, or one by its id, in any form, also of a running application."""
    followed = follow(path, dict.fromkeys(names, BEGIN))
    assert followed.log.path == followed.folder / expected


CODECS = {
    ".lz4": "named .lz4, but is not compressed as Spark does it",
    ".snappy": "named .snappy, but",
    ".lzf": "codec=zstd",
    ".gz": "named .gz, but",
    ".zstd": "pip install zstandard",
}


@pytest.mark.parametrize(
    ("contents", "path", "error", "message"),
    [
        ({}, "app-00", NoEventLog, "app-00 does not exist"),
        ({}, ".", NoEventLog, "holds no event log"),
        ({f"app-{n:02}": b"" for n in range(12)}, ".", NoEventLog, "12 event logs, name one: app-00, .*, …"),
        ({"a.log": b"", "b.py": b"x", "c": BEGIN, "d": BEGIN}, ".", NoEventLog, "2 event logs, name one: c, d"),
        ({"a.log": b"", "b.py": b"x"}, ".", NoEventLog, "a folder of 2 files, and none of them is an event log"),
        (dict.fromkeys(LOGS, BEGIN), "app_3", NoEventLog, "2 event logs, name one: app_3_1, app_3_2"),
        *(({f"a{codec}.inprogress": b"x"}, "a", CodecUnusable, advice) for codec, advice in CODECS.items()),
    ],
)
def test_log_that_cannot_be_opened(
    contents: dict[str, bytes],
    path: str,
    error: type[EventLogError],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    follow: Follow,
) -> None:
    """The error names the existing logs, or the remedy for a codec. Zstd lacks its library here."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(error, match=message):
        follow(path, contents)


@pytest.mark.parametrize(
    "line", ["{}", '{"a":1}', '{"Event":1}', '{"Event":"login"}', "[1]", '"x"', "{", "from pathlib import Path"]
)
def test_file_of_something_else(line: str, follow: Follow) -> None:
    """A file that is no event log, JSON lines that are no events of Spark's among them, is not searched for events."""
    with pytest.raises(NoEventLog, match="a is not an event log"):
        follow("a", {"a": f"{line}\n".encode() * 3}).read()


def test_log_moves_while_it_is_read(follow: Follow) -> None:
    """A folder that is gone is an error that names it."""
    followed = follow(FOLDER, {PARTS[1]: BEGIN})
    shutil.rmtree(followed.folder / FOLDER)
    with pytest.raises(NoEventLog, match=f"{FOLDER} does not exist"):
        followed.read()


def test_progress_is_reported(follow: Follow) -> None:
    """A long log shows how far its reading is, over all its files."""
    followed = follow(".", {PARTS[1]: BEGIN + failures(1) * 5_999, PARTS[2]: failures(1) * 4_000})
    reported: list[int] = []
    followed.log.feed(Remembered(), reported.append)
    first_size = (followed.folder / PARTS[1]).stat().st_size
    assert len(reported) == 2
    assert 0 < reported[0] <= first_size < reported[1] <= followed.log.size()


@pytest.mark.parametrize(("whole", "expected_ids"), [(False, [2, 3, 4, 5]), (True, [1, 2, 3, 4, 5])])
def test_first_attempts_are_not_parsed(tmp_path: Path, expected_ids: list[int], *, whole: bool) -> None:
    """Starts of first attempts are left out and counted, as are their ends if they succeeded. Both come on request."""
    events = [
        started(task=1),
        ended(task=1),
        ended("Success", number=1, task=2),
        ended("Success", stage_attempt=1, task=3),
        started(stage_attempt=1, task=4),
        ended(FAILED, task=5),
    ]
    write(tmp_path, {"a": written(events)})
    sink = Remembered()
    with EventLog(tmp_path / "a", whole=whole) as followed:
        followed.feed(sink)
    assert [event["Task Info"]["Task ID"] for event in sink.events] == expected_ids
    assert sink.passed_events == len(events) - len(expected_ids)


def test_damaged_file(monkeypatch: pytest.MonkeyPatch, follow: Follow) -> None:
    """One damaged bit ends the reading of a file, and events before it count."""
    monkeypatch.setattr(codecs, "ZSTD_AT_ONCE", 64)
    damaged = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(failures(2_000)))
    damaged[len(damaged) // 2] ^= 0x01
    followed = follow("app-1.zstd", {"app-1.zstd": zstandard.compress(failures(3)) + damaged})
    with pytest.raises(EventLogDamaged, match=r"app-1\.zstd"):
        followed.read()
    assert followed.job.snapshot().failures[FailureCause.KAFKA_QUOTA] >= 3


@pytest.mark.parametrize("suffix", [".zstd", ""])
def test_zstd_is_decompressed_piece_by_piece(monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """A few bytes may stand for more than the memory holds; a file that was renamed is known by how it begins."""
    monkeypatch.setattr(codecs, "ZSTD_AT_ONCE", 64)
    data = zstandard.compress(bytes(20_000_000))
    pieces = list(codecs.decoder("a", suffix, data[:64])(data))
    assert sum(map(len, pieces)) == 20_000_000
    assert max(map(len, pieces)) < 4_000_000


def test_lines_that_are_no_events(follow: Follow) -> None:
    """
    Such lines are counted as lost.

    Halves of characters, which JSON may hold, and NaN, which Spark writes, are none of them.
    """
    deep = b"[" * 100_000, b"{" * 5_000
    odd = [b"{", b"", b"null", b"{}", b"[1]", b'{"Event":"SparkListenerTaskEnd"}', b"\xff", *deep]
    half = ended(python_failure(QUOTA, "\ud800"))
    followed = follow("a", {"a": written([START, half, {**START, "Load": math.nan}]) + b"\n".join(odd) + b"\n"})
    assert followed.read() == Found(1, 11, lost=8, finished=True)
    assert followed.job.snapshot().events == 3
