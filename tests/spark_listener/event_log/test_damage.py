"""What cannot be read of an event log, or not as it should be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import zstandard
from tests.spark_listener.event_log.logs import START, Followed, Open, add, failures, written
from tests.spark_listener.recordings import QUOTA, ended, python_failure

from quotascope.spark_listener.event_log import CodecUnusable, EventLogDamaged, NoEventLog, files
from quotascope.spark_listener.events import FailureCause


@pytest.mark.parametrize("suffix", [".lz4", ".snappy", ".lzf", ".gz"])
def test_codec_that_nothing_reads(tmp_path: Path, suffix: str, open_log: Open) -> None:
    """It is said what to do instead."""
    path = add(tmp_path / f"app-1{suffix}.inprogress", b"x")
    with pytest.raises(CodecUnusable, match=r"codec=zstd|gunzip"):
        open_log(path)


def test_zstd_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_log: Open) -> None:
    """It is said what to install."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = add(tmp_path / "app-1.zstd", b"")
    with pytest.raises(CodecUnusable, match=r"pip install zstandard"):
        open_log(path)


def test_damaged_header(tmp_path: Path, open_log: Open) -> None:
    """What only begins like zstd is reported as damaged, not taken for the end."""
    data = zstandard.compress(failures(1))
    path = add(tmp_path / "app-1.zstd", data[:4] + b"\xff" * 40)
    with pytest.raises(EventLogDamaged, match=r"app-1\.zstd"):
        Followed(open_log(path)).read()


def test_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_log: Open) -> None:
    """One bit in the middle is enough; what was read before it stays known."""
    monkeypatch.setattr(files, "_ZSTD_AT_ONCE", 64)
    damaged = bytearray(_checked(failures(2_000)))
    damaged[len(damaged) // 2] ^= 0x01
    path = add(tmp_path / "app-1.zstd", zstandard.compress(failures(3)) + damaged)
    followed = Followed(open_log(path))
    with pytest.raises(EventLogDamaged, match=r"app-1\.zstd"):
        followed.read()
    assert followed.job.snapshot().failures[FailureCause.KAFKA_QUOTA] >= 3


def _checked(data: bytes) -> bytes:
    """With a checksum at the end."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def test_zstd_is_decompressed_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes may stand for more than the memory holds."""
    monkeypatch.setattr(files, "_ZSTD_AT_ONCE", 64)
    data = zstandard.compress(bytes(20_000_000))
    pieces = list(files.decoder(add(tmp_path / "a", data), ".zstd")(data))
    assert sum(map(len, pieces)) == 20_000_000
    assert max(map(len, pieces)) < 4_000_000


def test_other_file(open_log: Open) -> None:
    """A file that is no event log is not searched for events."""
    with pytest.raises(NoEventLog, match="is not an event log"):
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
    assert snapshot.lost_events == 6


@pytest.mark.parametrize("line", ["{}", '{"a":1}', '{"Event":1}', '{"Event":"login"}', "[1]", '"x"', "{", ""])
def test_file_of_something_else(tmp_path: Path, line: str, open_log: Open) -> None:
    """JSON lines that are no events of Spark's are no event log either."""
    path = add(tmp_path / "a", f"{line}\n".encode() * 3)
    with pytest.raises(NoEventLog, match="is not an event log"):
        Followed(open_log(path)).read()


def test_event_of_an_extension_may_come_first(tmp_path: Path, open_log: Open) -> None:
    """Its name is that of its class; in a rolled file it may be the first."""
    path = add(tmp_path / "a", written([{"Event": "com.example.Event"}]) + failures(1))
    assert Followed(open_log(path)).read() == (1, 2)


@pytest.fixture(name="endless")
def _endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log with a line that is too long to be read, and a good one on either side."""
    monkeypatch.setattr("quotascope.spark_listener.event_log.log._LONGEST_LINE", 1_000_000)
    path = add(tmp_path / "a", written([START]) + b"{" + b" " * 3_000_000 + b"\n")
    return add(path, failures(1))


def test_endless_line(endless: Path, open_log: Open) -> None:
    """A file without line ends does not fill the memory; the line is one line that is lost."""
    followed = Followed(open_log(endless))
    assert followed.read() == (1, 2)
    assert followed.job.snapshot().lost_events == 1
    assert followed.log.raw_bytes == endless.stat().st_size


@pytest.mark.parametrize(("cut", "lost"), [(None, [1, 1]), (2_000_000, [0, 1])], ids=["after", "within"])
def test_endless_line_is_lost_once(endless: Path, open_log: Open, cut: int | None, lost: list[int]) -> None:
    """Whether reading goes on later after the line, or within it."""
    whole = endless.read_bytes()
    endless.write_bytes(whole[:cut])
    followed = Followed(open_log(endless))
    found = []
    for _ in range(2):
        failures, _lines = followed.read()
        found.append(followed.job.snapshot().lost_events)
        endless.write_bytes(whole)
    assert found == lost
    assert failures == 1
