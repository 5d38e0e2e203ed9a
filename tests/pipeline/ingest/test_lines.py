"""Lines of files, a block at a time, and runs of ingest that meet another, or are killed."""

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from quotascope.pipeline.errors import UnreadableLog
from quotascope.pipeline.ingest import local
from quotascope.pipeline.ingest.local import lines_of


def read(path: Path) -> list[bytes]:
    return [text for block, _ in lines_of(str(path)) for text in block]


@given(st.lists(st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"")), max_size=30), st.integers(1, 50))
def test_any_lines_in_any_blocks(tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], block: int) -> None:
    """
    Lines are read unchanged, wherever blocks end.

    Carriage returns belong to them, and the last one needs no line feed.
    """
    folder = tmp_path_factory.mktemp("lines")
    content = b"\n".join(texts)
    expected = content.split(b"\n")
    expected = expected if expected[-1] else expected[:-1]
    (folder / "a").write_bytes(b"x" + content)
    (folder / "b.gz").write_bytes(gzip.compress(b"x" + content))
    (folder / "c.zst").write_bytes(zstandard.compress(b"x" + content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "BLOCK", block)
        patch.setattr(local, "COMPRESSED_BLOCK", block)
        for name in ("a", "b.gz", "c.zst"):
            lines_found = read(folder / name)
            assert b"\n".join(lines_found) == (b"x" + content).removesuffix(b"\n")
            assert not any(b"\n" in text for text in lines_found)


def test_gigantic_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of any length is cut just over the longest that is read, and its neighbors are whole."""
    monkeypatch.setattr(local, "BLOCK", 7)
    monkeypatch.setattr(local, "LONGEST", 20)
    path = tmp_path / "a"
    path.write_bytes(b"first\n" + b"x" * 1_000 + b"\nlast\n" + b"y" * 21)
    assert read(path) == [b"first", b"x" * 21, b"last", b"y" * 21]


def test_unreadable(tmp_path: Path) -> None:
    """A file that cannot be opened is reported with its path, once."""
    with pytest.raises(UnreadableLog) as raised:
        read(tmp_path)
    assert str(raised.value) == f"{tmp_path}: Is a directory"


LOG = b"".join(b"%d %s\n" % (n, sha256(b"%d" % n).hexdigest().encode()) for n in range(5_000))
"""Lines that compress to a half, several blocks of them."""


def broken(path: Path) -> bytes:
    lines_found: list[bytes] = []
    blocks = lines_of(str(path))
    with pytest.raises(UnreadableLog, match="damaged or ends too early"):
        lines_found.extend(text for block, _ in blocks for text in block)
    return b"\n".join(lines_found)


WHOLE = gzip.compress(LOG)
TWO = gzip.compress(b"one\ntwo\nth")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        *((WHOLE + TWO + junk, LOG + b"one\ntwo") for junk in (b"no gzip", b"x", b"\x1f\x8b", WHOLE[:-1])),
        *((WHOLE[:length], b"") for length in (30, 20_000, len(WHOLE) // 2, len(WHOLE) - 1)),
        (WHOLE[:-8] + bytes(8), b""),
        (TWO + WHOLE[:100_000] + b"\xff" * 2_000 + WHOLE[102_000:], b"one\ntwo"),
    ],
    ids=[
        "no gzip",
        "a byte",
        "no member",
        "a cut one",
        "30 bytes",
        "20 kB",
        "a half",
        "all but a byte",
        "a wrong checksum",
        "other bytes",
    ],
)
@pytest.mark.parametrize("held", [1_000, 1 << 20])
def test_broken_gzip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, expected: bytes, held: int
) -> None:
    """Every complete line before a damaged member is read. A part of a line is not, as it may be altered."""
    monkeypatch.setattr(local, "HELD", held)
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    assert broken(path) == expected


@pytest.mark.parametrize("held", [1_000, 1 << 20])
def test_broken_zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    """All lines of a zstd file are read, or none if its checksum is wrong."""
    monkeypatch.setattr(local, "HELD", held)
    whole = zstandard.ZstdCompressor(write_checksum=True).compress(LOG)
    path = tmp_path / "a"
    path.write_bytes(whole)
    assert b"\n".join(read(path)) + b"\n" == LOG
    for content in (whole + b"no zstd", whole[:-1], whole[:-2] + bytes(2), whole[:50_000]):
        path.write_bytes(content)
        assert broken(path) == b""


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_compressed_pipe(tmp_path: Path, compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Large members of a pipe, which cannot be read twice, are verified before they are used."""
    monkeypatch.setattr(local, "HELD", 1_000)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(fifo.write_bytes, compress(LOG))
        assert b"\n".join(read(fifo)) + b"\n" == LOG
        written.result()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (LOG[:999].decode().encode("utf-16"), "UTF-16"),
        (LOG[:999].decode().encode("utf-16-be"), "UTF-16"),
        (LOG[:999].decode().encode("utf-32-le"), "UTF-16 or UTF-32"),
        (gzip.compress(LOG[:999].decode().encode("utf-16-le")), "UTF-16"),
        (gzip.compress(gzip.compress(LOG)), "compressed twice"),
        (bz2.compress(LOG), "bzip2"),
        (lzma.compress(LOG), "xz"),
        (pa.compress(LOG, codec="lz4", asbytes=True), "lz4"),
        (b"PK\x03\x04" + LOG, "zip"),
        (b"b1/kafka-request.log".ljust(257, b"\0") + b"ustar" + LOG, "tar archive"),
        (gzip.compress(b"b1/kafka-request.log".ljust(257, b"\0") + b"ustar" + LOG), "tar archive"),
        (b"PAR1" + LOG, "Parquet"),
        (b"ORC\n\x0e\n\x04\x08\x01P\0" + LOG, "ORC"),
    ],
)
def test_files_that_hold_no_lines(tmp_path: Path, content: bytes, why: str) -> None:
    """A file that holds no lines is refused as the kind of file that it is."""
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(UnreadableLog, match=why):
        read(path)


def test_a_host_whose_name_begins_as_a_format_does(tmp_path: Path) -> None:
    """Text is text, whatever program or host wrote its name in front."""
    path = tmp_path / "a"
    path.write_bytes(b"ORC-7 kafka[1]: one\ntwo\n")
    assert read(path) == [b"ORC-7 kafka[1]: one", b"two"]


def test_zeros_of_a_file_that_was_cut_while_it_was_written(tmp_path: Path) -> None:
    """Zeros at the beginning, as of logrotate's copytruncate, are read as part of the first line."""
    path = tmp_path / "a"
    path.write_bytes(bytes(5_000) + b"one\ntwo\n")
    assert read(path) == [bytes(5_000) + b"one", b"two"]


def test_padded_gzip(tmp_path: Path) -> None:
    """Zeros after and between members are no damage."""
    path, zeros = tmp_path / "a.gz", bytes(200_000)
    path.write_bytes(gzip.compress(b"one\n") + zeros + gzip.compress(b"two\n") + zeros)
    assert read(path) == [b"one", b"two"]
