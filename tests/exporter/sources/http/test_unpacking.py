import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.errors import SourceUnreachable, SourceUnreadable
from quotascope.exporter.sources.http.fetch import Unpacker


def unpacked(packed: bytes, size: int = 7, most: int = 1_000_000) -> bytes:
    """The body of an answer that came in pieces of this size."""
    unpacker = Unpacker("gzip")
    found = b""
    for start in range(0, len(packed), size):
        found += unpacker.unpacked(packed[start : start + size], most - len(found))
    unpacker.check_complete()
    return found


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=3), st.integers(1, 99))
def test_pieces_are_put_together(bodies: list[bytes], size: int) -> None:
    """Of whatever size; a file may consist of several members."""
    packed = b"".join(map(gzip.compress, bodies))
    assert unpacked(packed, size) == b"".join(bodies)


def test_an_answer_that_is_not_compressed_stays_as_it_is() -> None:
    """An agent need not compress."""
    unpacker = Unpacker("")
    assert unpacker.unpacked(b"abc", 1) == b"abc"
    unpacker.check_complete()


@given(st.integers(1, 28))
def test_half_an_answer_is_not_passed_for_a_whole_one(missing: int) -> None:
    """Also when its length is that which it says."""
    packed = gzip.compress(bytes(range(9)) * 9, mtime=0)
    assert len(packed) > 28
    with pytest.raises(SourceUnreachable, match="middle of what is compressed"):
        unpacked(packed[:-missing])


def test_no_more_is_unpacked_than_is_wanted() -> None:
    """A piece that holds a gigabyte is not unpacked to find that it is too much."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b" " * 50_000_000)
    found = Unpacker("x-gzip").unpacked(packed, 1_000)
    assert len(found) == 1_001


@pytest.mark.parametrize(
    "packed", [b"kafka_x 1\n", gzip.compress(b"a", mtime=0) + b"trailing"]
)
def test_what_is_not_compressed_is_unreadable(packed: bytes) -> None:
    """Something else than it says, or something behind it."""
    with pytest.raises(SourceUnreadable, match="cannot be unpacked"):
        unpacked(packed)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "\x1b[31m"])
def test_what_was_not_asked_for_is_not_unpacked(encoding: str) -> None:
    """Each library that unpacks is one more that can be attacked."""
    with pytest.raises(SourceUnreadable, match="was not asked for") as caught:
        Unpacker(encoding)
    assert str(caught.value).isprintable()
