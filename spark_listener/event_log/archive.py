"""
Event logs in zip files, as the History server sends them.

Spark: RollingEventLogFilesFileReader and SingleFileEventLogFileReader.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from ..errors import EventLogDamaged, NoEventLog

_MOST_MEMBERS: Final = 20_000
_ENCRYPTED: Final = 0x1
BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""Errors of `zipfile` about the content of a file."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in a zip."""

    archive: Path
    name: str
    size: int
    """Compressed size in bytes."""

    def open(self) -> IO[bytes]:
        """Open it for reading. Raises `EventLogDamaged` and `OSError`."""
        try:
            return zipfile.ZipFile(self.archive).open(self.name)
        except BROKEN as error:
            raise EventLogDamaged(f"{self.archive}/{self.name} is damaged: {error}") from error


def is_archive(path: Path) -> bool:
    """Return whether a path is a zip file. Raises `OSError`."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def split(path: Path) -> tuple[Path, str] | None:
    """Return the zip file that a path leads into and the rest of the path; None if there is none."""
    for archive in (path, *path.parents):
        if archive.is_file():
            return (archive, path.relative_to(archive).as_posix()) if is_archive(archive) else None
    return None


def members(archive: Path) -> Sequence[Member]:
    """
    Return the files of a zip, without hidden ones and the ones that macOS adds.

    Raises:
        EventLogDamaged: the zip cannot be read.
        NoEventLog: the zip is encrypted, or made to fill the memory.
        OSError: the zip cannot be opened.

    """
    try:
        with zipfile.ZipFile(archive) as opened:
            infos = opened.infolist()
    except BROKEN as error:
        raise EventLogDamaged(f"{archive} is damaged: {error}") from error
    if len(infos) > _MOST_MEMBERS:
        raise NoEventLog(
            f"{archive} holds {len(infos):,} files, more than any download of the History server: unpack it first"
        )
    if sum(info.compress_size for info in infos) > archive.stat().st_size:
        raise NoEventLog(f"{archive} is not a download of the History server: its files overlap")
    files = [
        info
        for info in infos
        if not info.is_dir() and not info.filename.startswith("__MACOSX/") and not _hidden(info.filename)
    ]
    if any(info.flag_bits & _ENCRYPTED for info in files):
        raise NoEventLog(f"{archive} is encrypted: unpack it first")
    return [Member(archive, info.filename, info.compress_size) for info in files]


def _hidden(name: str) -> bool:
    """Return whether a file of a zip is hidden."""
    return name.rpartition("/")[2].startswith(".")
