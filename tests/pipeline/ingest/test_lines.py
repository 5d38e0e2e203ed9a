"""Lines of files, a block at a time, and runs of ingest that meet another, or are killed."""

import gzip
import zlib
from hashlib import sha256
from pathlib import Path

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
    """Lines come out as they went in, wherever blocks end; carriage returns belong to them, and the last one needs no line feed."""
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
            found = read(folder / name)
            assert b"\n".join(found) == (b"x" + content).removesuffix(b"\n")
            assert not any(b"\n" in text for text in found)


def test_gigantic_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of any length is cut just over the longest that is read, and its neighbors are whole."""
    monkeypatch.setattr(local, "BLOCK", 7)
    monkeypatch.setattr(local, "LONGEST", 20)
    path = tmp_path / "a"
    path.write_bytes(b"first\n" + b"x" * 1_000 + b"\nlast\n" + b"y" * 21)
    assert read(path) == [b"first", b"x" * 21, b"last", b"y" * 21]


def test_unreadable(tmp_path: Path) -> None:
    """What cannot be opened is reported with its path, once."""
    with pytest.raises(UnreadableLog) as raised:
        read(tmp_path)
    assert str(raised.value) == f"{tmp_path}: Is a directory"


LOG = b"".join(b"%d %s\n" % (n, sha256(b"%d" % n).hexdigest().encode()) for n in range(5_000))
"""Lines that compress to a half, several blocks of them."""


def broken(path: Path) -> bytes:
    found: list[bytes] = []
    blocks = lines_of(str(path))
    with pytest.raises(UnreadableLog, match="damaged or ends too early"):
        found.extend(text for block, _ in blocks for text in block)
    return b"\n".join(found)


WHOLE = gzip.compress(LOG)


def decodable(data: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(data).removesuffix(b"\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        *((WHOLE + gzip.compress(b"one\ntwo\n") + junk, LOG + b"one\ntwo") for junk in (b"no gzip", b"x", b"\x1f\x8b")),
        *((WHOLE[:length], decodable(WHOLE[:length])) for length in (30, 20_000, len(WHOLE) // 2, len(WHOLE) - 1)),
        (WHOLE[:-8] + bytes(8), LOG.removesuffix(b"\n")),
    ],
    ids=["no gzip", "a byte", "no member", "30 bytes", "20 kB", "a half", "all but a byte", "a wrong checksum"],
)
def test_broken_gzip(tmp_path: Path, content: bytes, expected: bytes) -> None:
    """Every line of the members before what is no gzip, and all that zlib can decode of a file that ends too early, comes first."""
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    assert broken(path) == expected


def test_where_a_break_is_found_late(tmp_path: Path) -> None:
    """Less than 8 KiB before a damaged byte are lost."""
    path = tmp_path / "a"
    for content, whole in (
        (WHOLE[:100_000] + b"\xff" * 2_000, decodable(WHOLE[:100_000])),
        (zstandard.compress(LOG) + b"no zstd", LOG),
    ):
        path.write_bytes(content)
        found = broken(path)
        assert LOG.startswith(found[: len(whole)])
        assert len(found) > len(whole) - 8_200


def test_padded_gzip(tmp_path: Path) -> None:
    """Zeros after and between members are no damage."""
    path, zeros = tmp_path / "a.gz", bytes(200_000)
    path.write_bytes(gzip.compress(b"one\n") + zeros + gzip.compress(b"two\n") + zeros)
    assert read(path) == [b"one", b"two"]
