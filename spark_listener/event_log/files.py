"""The files of an event log: one file, or a folder of rolled files (eventlog_v2_…); where they are, and how they are compressed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import CodecUnusable, EventLogDamaged, NoEventLog

_RUNNING = ".inprogress"
_COMPACTED = ".compact"
_CODECS = (".zstd", ".lz4", ".snappy", ".lzf", ".gz")
_EVENTS = re.compile(r"events_(\d{1,18})_")
_FOLDER = "eventlog_v2_"
_STATUS = "appstatus_"
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file of a log."""

    path: Path
    index: int
    """They are read in this order."""
    compacted: bool = False
    """Whether the History server has rewritten this file and all before it, without the jobs that it considers ended."""

    @property
    def suffix(self) -> str:
        """That of the codec; empty where there is none."""
        name = self.path.name.removesuffix(_RUNNING).removesuffix(_COMPACTED)
        return next((codec for codec in _CODECS if name.endswith(codec)), "")


def locate(path: Path) -> Path:
    """
    The log that a user means: its path, a folder with the id of its application, or the only log of a folder.

    Raises `NoEventLog` and `OSError`.
    """
    if path.is_file() or is_rolled(path):
        return path
    folder = path
    if path.exists():
        shown = (each for each in path.iterdir() if not each.name.startswith("."))
        logs = sorted(each for each in shown if each.is_file() or each.name.startswith(_FOLDER))
    else:  # the name changes when the application ends, too
        folder, app_id = path.parent, path.name.removesuffix(_RUNNING).removeprefix(_FOLDER)
        found = logs_of(folder, app_id) if folder.is_dir() else []
        logs = sorted([log for attempt, log in found if not attempt] or [log for _, log in found])
        if not logs:
            raise NoEventLog(f"{path} does not exist")
    if not logs:
        raise NoEventLog(f"{folder} holds no event log")
    if len(logs) > 1:
        names = ", ".join(each.name for each in logs[:_MOST_NAMED])
        more = ", …" if len(logs) > _MOST_NAMED else ""
        raise NoEventLog(f"{folder} holds {len(logs)} event logs, name one: {names}{more}")
    return logs[0]


def logs_of(folder: Path, app_id: str) -> Sequence[tuple[str, Path]]:
    """The logs of an application in a folder, each with the attempt at the application in its name; empty if there is none. Raises `OSError`."""
    codec = "|".join(map(re.escape, _CODECS))
    # more digits would be those of another application
    name = re.compile(rf"(?:{_FOLDER})?{re.escape(app_id)}(?:_([^.]+))?(?:{codec})?(?:{re.escape(_RUNNING)})?")
    return [(match[1] or "", each) for each in folder.iterdir() if (match := name.fullmatch(each.name))]


def is_rolled(path: Path) -> bool:
    """Whether this is a folder of files that were rolled over."""
    return path.is_dir() and any(_EVENTS.match(each.name) for each in path.iterdir())


def files(log: Path) -> Sequence[LogFile]:
    """
    The files of a log, in their order; after a compaction those that are left, during one those that were there before.

    Raises `OSError`.
    """
    if not log.is_dir():
        return (LogFile(path=log, index=0),)
    found = [
        LogFile(path=each, index=int(match[1]), compacted=each.name.endswith(_COMPACTED))
        for each in log.iterdir()
        if (match := _EVENTS.match(each.name)) and not each.name.endswith(_COMPACTED + _RUNNING)
    ]
    found.sort(key=lambda each: (each.index, each.compacted))
    begins = max((n for n, each in enumerate(found) if each.compacted), default=0)
    return found[begins:]


def is_running(log: Path) -> bool:
    """Whether the application has not closed this log; it may also have been killed."""
    if log.is_dir():
        return not any(each.name.startswith(_STATUS) and not each.name.endswith(_RUNNING) for each in log.iterdir())
    return log.name.endswith(_RUNNING) and log.exists()


Decode = Callable[[bytes], Iterable[bytes]]
"""Takes in the next bytes of a file and gives back what they make, piece by piece, as far as that is complete."""

_ZSTD_AT_ONCE: Final = 2_048
"""Compressed bytes that are decompressed together: each 4 of them may stand for 128 kB."""
_ZSTD_BEGINS: Final = b"\x28\xb5\x2f\xfd"
_REFUSED: Final = {
    ".lz4": "is compressed with lz4, in a format of the Java library lz4-java, which quotascope cannot read",
    ".snappy": "is compressed with snappy, in a format of the Java library snappy-java, which quotascope cannot read",
    ".lzf": "is compressed with LZF, which quotascope cannot read",
    ".gz": "is compressed with gzip, which Spark does not write: unpack it first (gunzip)",
}
_ADVICE: Final = "Let Spark write it with spark.eventLog.compression.codec=zstd, or uncompressed."


def decoder(path: Path, suffix: str) -> Decode:
    """
    What reads this file, by the suffix that Spark gives to it, or by its first bytes.

    Raises `CodecUnusable` and `OSError`.
    """
    if suffix in _REFUSED:
        advice = "" if suffix == ".gz" else f" {_ADVICE}"
        raise CodecUnusable(f"{path} {_REFUSED[suffix]}.{advice}")
    with path.open("rb") as file:
        is_zstd = file.read(len(_ZSTD_BEGINS)) == _ZSTD_BEGINS
    return _zstd(path) if suffix == ".zstd" or is_zstd else lambda data: (data,)


def _zstd(path: Path) -> Decode:
    try:
        import zstandard  # noqa: PLC0415 - the extra spark
    except ImportError as error:
        raise CodecUnusable(f"{path} is compressed with zstd: pip install zstandard") from error
    decompress = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress

    def decode(data: bytes) -> Iterator[bytes]:
        try:
            for begin in range(0, len(data), _ZSTD_AT_ONCE):
                yield decompress(data[begin : begin + _ZSTD_AT_ONCE])
        except zstandard.ZstdError as error:
            raise EventLogDamaged(f"{path} is damaged: {error}") from error

    return decode
