"""
The codecs of event logs: Spark's own, and gzip, in which Databricks and people store them.

A few bytes never fill the memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from ..errors import CodecUnusable, EventLogDamaged

Decode = Callable[[bytes], Iterable[bytes]]
"""
Function from the next bytes of a file to the bytes that they decode to, piece by piece, as far as those are complete.

No bytes at all are the end of the file. Raises `EventLogDamaged`.
"""

ZSTD_AT_ONCE: Final = 2_048
"""Compressed bytes that are decompressed together: each 4 of them may stand for 128 kB."""
PIECE: Final = 1024 * 1024
"""Most decompressed bytes that are given back together."""
_LARGEST_BLOCK: Final = 64 * 1024 * 1024
"""Largest block of lz4-java or snappy-java, in bytes; Spark's blocks are 32 kB."""
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP: Final = b"\x1f\x8b"
_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
"""Argument of zlib for data with the header of gzip."""
_LZ4_BLOCK: Final = b"LZ4Block"
_SNAPPY: Final = b"\x82SNAPPY\x00"
_LZF: Final = b"ZV"
_LZ4_HEADER: Final = len(_LZ4_BLOCK) + 1 + 4 + 4 + 4
_SNAPPY_HEADER: Final = len(_SNAPPY) + 4 + 4
_LZ4_RAW: Final = 0x10
"""LZ4BlockOutputStream.COMPRESSION_METHOD_RAW; 0x20 is LZ4."""
SUFFIXES: Final = (".zstd", ".zst", ".lz4", ".snappy", ".lzf", ".gz")
"""CompressionCodec's short names, by which Spark names its files, and those of the command-line tools."""
_OTHERS: Final = (
    (b"PK\x03\x04", "a zip in a zip: unpack the outer one first"),
    (b"BZh", "compressed with bzip2, which Spark does not write: unpack it first (bunzip2)"),
    (b"\xfd7zXZ\x00", "compressed with xz, which Spark does not write: unpack it first (unxz)"),
)


def decoder(name: str, suffix: str, head: bytes) -> Decode:
    """
    Return the decoder of a file, by its first bytes, or by its suffix where it has none yet.

    Args:
        name: names the file in messages.
        suffix: one of `SUFFIXES`, or empty.
        head: its first bytes.

    Raises:
        CodecUnusable: nothing here can read it.

    """
    for magic, problem in _OTHERS:
        if head.startswith(magic):
            raise CodecUnusable(f"{name} is {problem}")
    if head.startswith(_GZIP) or (suffix == ".gz" and not head):
        return _gzip(name)
    if head.startswith(_ZSTD) or (suffix in (".zstd", ".zst") and not _is_text(head)):
        return _zstd(name)
    if head.startswith(_LZ4_BLOCK) or (suffix == ".lz4" and not head):
        return _Blocks(name, "lz4", _LZ4_HEADER, _lz4_block).decode
    if head.startswith(_SNAPPY) or (suffix == ".snappy" and not head):
        return _Blocks(name, "snappy", 4, _snappy_block, skip=_SNAPPY_HEADER).decode
    if head.startswith(_LZF) or (suffix == ".lzf" and not _is_text(head)):
        raise CodecUnusable(
            f"{name} is compressed with LZF, which quotascope cannot read. "
            "Let Spark write it with spark.eventLog.compression.codec=zstd, or uncompressed."
        )
    if suffix and head and not _is_text(head):
        raise CodecUnusable(f"{name} is named {suffix}, but is not compressed as Spark does it")
    return lambda data: (data,)


def _is_text(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a log that is not compressed."""
    return head.lstrip(b"\xef\xbb\xbf\r\n\t ").startswith(b"{")


def _gzip(name: str) -> Decode:
    """Return the decoder of a gzip file, whose members are decompressed one after the other."""
    state = zlib.decompressobj(_GZIP_WBITS)
    begun = False

    def decode(data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes of the file, as `Decode` describes."""
        nonlocal state, begun
        try:
            if not data:
                if begun and not state.eof:
                    raise EventLogDamaged(f"{name} is damaged: its last gzip member has no end")
                return
            while data:
                if state.eof:  # members may follow each other, and zeros fill up a tape
                    data = data.lstrip(b"\0")
                    if not data:
                        return
                    state = zlib.decompressobj(_GZIP_WBITS)
                begun = True
                yield state.decompress(data, PIECE)
                data = state.unused_data if state.eof else state.unconsumed_tail
        except zlib.error as error:
            raise EventLogDamaged(f"{name} is damaged: {error}") from error

    return decode


def _zstd(name: str) -> Decode:
    """Return the decoder of a zstd file, whose frames are decompressed one after the other."""
    try:
        import zstandard  # noqa: PLC0415 - the extra spark
    except ImportError as error:
        raise CodecUnusable(f"{name} is compressed with zstd: pip install zstandard") from error
    begin = zstandard.ZstdDecompressor().decompressobj
    frame, is_begun = begin(), False

    def decode(data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes of the file, as `Decode` describes."""
        nonlocal frame, is_begun
        try:
            if not data and is_begun and not frame.eof:
                raise EventLogDamaged(f"{name} is damaged: its last zstd frame has no end")
            for start in range(0, len(data), ZSTD_AT_ONCE):
                part = data[start : start + ZSTD_AT_ONCE]
                while part:
                    if frame.eof:  # each flush of Spark ends a frame
                        frame = begin()
                    is_begun = True
                    yield frame.decompress(part)
                    part = frame.unused_data if frame.eof else b""
        except zstandard.ZstdError as error:
            raise EventLogDamaged(f"{name} is damaged: {error}") from error

    return decode


_Block = Callable[[bytes], tuple[int, int, bool]]
"""
Function from the header of a block to its size, its decompressed size, and whether it is compressed.

The decompressed size is below 0 if the header does not have it. Raises `ValueError`.
"""


def _lz4_block(header: bytes) -> tuple[int, int, bool]:
    """Read a header of lz4-java's LZ4BlockOutputStream: magic, token, both lengths and a checksum."""
    if not header.startswith(_LZ4_BLOCK):
        raise ValueError("a block does not begin as it must")
    start = len(_LZ4_BLOCK) + 1
    return (
        int.from_bytes(header[start : start + 4], "little"),
        int.from_bytes(header[start + 4 : start + 8], "little"),
        header[start - 1] & 0xF0 != _LZ4_RAW,
    )


def _snappy_block(header: bytes) -> tuple[int, int, bool]:
    """
    Read a header of snappy-java's SnappyOutputStream.

    The decompressed size is read from the block itself: raw snappy starts with it.
    """
    return int.from_bytes(header, "big"), -1, True


def _check(size: int) -> None:
    """Raise `ValueError` for a block that would fill the memory."""
    if size > _LARGEST_BLOCK:
        raise ValueError("a block is larger than any that Spark writes")


class _Blocks:
    """
    Decompresses a file that is a sequence of blocks, each with a header.

    Args:
        name: name of the file, for messages.
        codec: codec of the blocks.
        header: size of a block's header, bytes.
        block: reader of a block's header.
        skip: size of the header that precedes the first block, bytes.

    """

    def __init__(self, name: str, codec: Literal["lz4", "snappy"], header: int, block: _Block, skip: int = 0) -> None:
        try:
            import pyarrow as pa  # noqa: PLC0415 - the extra pipeline
        except ImportError as error:
            raise CodecUnusable(f"{name} is compressed with {codec}: pip install pyarrow") from error
        self._name = name
        self._decompress = pa.Codec("lz4_raw" if codec == "lz4" else "snappy").decompress
        self._header, self._block = header, block
        self._stream_header = skip
        self._skip = skip
        """Number of bytes to skip before the next block."""
        self._data = bytearray()
        """Bytes that were not decompressed yet."""
        self._has_no_mark = codec == "snappy"
        """True if nothing in the format marks the end of a file, which may end after any block."""
        self._is_closed = True
        """True if the file may end here: LZ4BlockOutputStream closes with a block of no bytes (`finish`)."""

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes of a file, as `Decode` describes."""
        self._data += data
        if not data and (self._data or not self._is_closed):
            raise EventLogDamaged(f"{self._name} is damaged: its last block has no end")
        while True:
            if self._skip:
                if len(self._data) < self._skip:
                    return
                del self._data[: self._skip]
                self._skip = 0
            if len(self._data) < self._header:
                return
            if self._stream_header and self._data[:4] == _SNAPPY[:4]:  # another stream was appended
                self._skip = self._stream_header
                continue
            try:
                size, inflated_size, is_compressed = self._block(bytes(self._data[: self._header]))
                _check(max(size, inflated_size))
                if len(self._data) < self._header + size:
                    return
                block = bytes(self._data[self._header : self._header + size])
                del self._data[: self._header + size]
                self._is_closed = self._has_no_mark or not size
                yield self._inflated(block, inflated_size) if is_compressed and size else block
            except (ValueError, OSError) as error:
                raise EventLogDamaged(f"{self._name} is damaged: {error}") from error

    def _inflated(self, block: bytes, inflated_size: int) -> bytes:
        """Return the decompressed block; of raw snappy, the size is a varint at its beginning."""
        if inflated_size < 0:
            inflated_size, shift = 0, 0
            for byte in block[:5]:
                inflated_size |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:  # noqa: PLR2004 - the last byte of a varint
                    break
            _check(inflated_size)
        return bytes(self._decompress(block, decompressed_size=inflated_size, asbytes=True))
