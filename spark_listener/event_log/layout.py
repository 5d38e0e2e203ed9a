"""Where the event log of an application is: in one file, or in a folder of files that were rolled over (eventlog_v2_…)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import NoEventLog

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
    """Whether the History server has rewritten this file and all before it, without what it holds to be over."""

    @property
    def suffix(self) -> str:
        """That of the codec; empty where there is none."""
        name = self.path.name.removesuffix(_RUNNING).removesuffix(_COMPACTED)
        return next((codec for codec in _CODECS if name.endswith(codec)), "")


def locate(path: Path) -> Path:
    """
    The log that a user means: of a finished application, of one that runs, or the only one of a folder.

    Raises `NoEventLog` and `OSError`.
    """
    found = next((each for each in (path, *_other_names(path)) if each.exists()), None)
    if found is None:
        raise NoEventLog(f"{path} does not exist")
    if found.is_file() or is_rolled(found):
        return found
    return _only_one(found)


def is_rolled(path: Path) -> bool:
    """Whether this is a folder of files that were rolled over."""
    return path.is_dir() and any(_EVENTS.match(each.name) for each in path.iterdir())


def files(log: Path) -> Sequence[LogFile]:
    """
    The files of a log, in their order; after a compaction those that are left.

    Raises `OSError`.
    """
    if not log.is_dir():
        return (LogFile(path=log, index=0),)
    found = sorted(_rolled(log), key=lambda each: (each.index, each.compacted))
    begins = max((n for n, each in enumerate(found) if each.compacted), default=0)
    return found[begins:]


def is_running(log: Path) -> bool:
    """Whether the application has not closed this log; it may also have been killed."""
    if log.is_dir():
        return not any(
            each.name.startswith(_STATUS) and not each.name.endswith(_RUNNING)
            for each in log.iterdir()
        )
    return log.name.endswith(_RUNNING) and log.exists()


def _other_names(path: Path) -> Sequence[Path]:
    """The name changes when the application ends."""
    if not path.name:
        return ()
    if path.name.endswith(_RUNNING):
        return (path.with_name(path.name.removesuffix(_RUNNING)),)
    return (path.with_name(f"{path.name}{_RUNNING}"),)


def _rolled(folder: Path) -> list[LogFile]:
    matches = [(each, _EVENTS.match(each.name)) for each in folder.iterdir()]
    return [
        LogFile(
            path=each, index=int(match[1]), compacted=each.name.endswith(_COMPACTED)
        )
        for each, match in matches
        if match
    ]


def _only_one(folder: Path) -> Path:
    logs = sorted(each for each in folder.iterdir() if _may_be_log(each))
    if len(logs) == 1:
        return logs[0]
    if not logs:
        raise NoEventLog(f"{folder} holds no event log")
    names = ", ".join(each.name for each in logs[:_MOST_NAMED])
    more = ", …" if len(logs) > _MOST_NAMED else ""
    raise NoEventLog(f"{folder} holds {len(logs)} event logs, name one: {names}{more}")


def _may_be_log(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return path.is_file() or path.name.startswith(_FOLDER)
