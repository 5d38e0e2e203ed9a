"""What event logs are compressed with (spark.eventLog.compression.codec)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from ..errors import CodecUnusable, EventLogDamaged

Decode = Callable[[bytes], Iterable[bytes]]
"""Takes in the next bytes of a file and gives back what they make, piece by piece, as far as that is complete."""

_ZSTD_AT_ONCE: Final = 2_048
"""Compressed bytes that are decompressed together: each 4 of them may stand for 128 kB."""
_ZSTD_BEGINS: Final = b"\x28\xb5\x2f\xfd"
_REFUSED: Final = {
    ".lz4": "is compressed with lz4, in a format of Java's library lz4-java that nothing here reads",
    ".snappy": "is compressed with snappy, in a format of Java's library snappy-java that nothing here reads",
    ".lzf": "is compressed with LZF, which nothing here reads",
    ".gz": "is compressed with gzip, which Spark does not write: unpack it first (gunzip)",
}
_ADVICE: Final = (
    "Let Spark write it with spark.eventLog.compression.codec=zstd, or uncompressed."
)


def decoder(path: Path, suffix: str) -> Decode:
    """
    What reads this file, by the suffix that Spark gives to it, or by its first bytes.

    Raises `CodecUnusable` and `OSError`.
    """
    if suffix in _REFUSED:
        advice = "" if suffix == ".gz" else f" {_ADVICE}"
        raise CodecUnusable(f"{path} {_REFUSED[suffix]}.{advice}")
    if suffix == ".zstd" or _begins_as_zstd(path):
        return _zstd(path)
    return _plain


def _begins_as_zstd(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ZSTD_BEGINS)) == _ZSTD_BEGINS


def _plain(data: bytes) -> Iterable[bytes]:
    return (data,)


def _zstd(path: Path) -> Decode:
    try:
        import zstandard  # noqa: PLC0415 - the extra zstd
    except ImportError as error:
        raise CodecUnusable(
            f"{path} is compressed with zstd: pip install 'quotascope[zstd]'"
        ) from error
    decompress = (
        zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress
    )

    def decode(data: bytes) -> Iterator[bytes]:
        try:
            for begin in range(0, len(data), _ZSTD_AT_ONCE):
                yield decompress(data[begin : begin + _ZSTD_AT_ONCE])
        except zstandard.ZstdError as error:
            raise EventLogDamaged(f"{path} is damaged: {error}") from error

    return decode
