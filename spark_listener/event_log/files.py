"""
The files of an event log: their places and their order.

A log is one file; a folder of files that Spark rolled over (eventlog_v2_…); a folder of Databricks' cluster log
delivery, with a file for each hour that is over (eventlog-2021-06-14--20-00.gz, then eventlog); or a zip with one of
these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from ..errors import NoEventLog
from . import archive
from .codecs import SUFFIXES

_RUNNING = ".inprogress"
_COMPACTED = ".compact"
_EVENTS = re.compile(r"events_(\d{1,18})_")
_HOUR: Final = re.compile(r"eventlog(?:-(\d{4}-\d\d-\d\d--\d\d-\d\d))?(?:\.gz)?")
"""Pattern of Databricks' names of the files of a log: the file that is written, and files of the hours before."""
_NEWEST: Final = 10**13
"""Index of the file that Databricks writes; those before it have the digits of their hour."""
_FOLDER = "eventlog_v2_"
_STATUS = "appstatus_"
_APPLICATION = re.compile(r"(?:app|application|local|spark)[-_]")
"""Beginning of the ids that cluster managers give applications."""
_BEGINNING = re.compile(rb'\s*\{\s*"Event"\s*:')
"""Beginning of a log."""
_MOST_NAMED = 10
_DEEPEST: Final = 6
"""Depth of folders in which the only log is searched for: Databricks has cluster, eventlog, host and context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file of a log."""

    path: Path
    """Path that names the file in messages; a path into a zip for a file in a zip."""
    index: int
    """Position of the file in the order of reading."""
    compacted: bool = False
    """
    True if the History server has rewritten this file and all before it, without the jobs that it considers ended.
    """
    numbered: bool = False
    """True if indexes count up, so that gaps show missing files."""
    member: archive.Member | None = None
    """The file in a zip; None for a file of its own."""

    @property
    def suffix(self) -> str:
        """Suffix of the codec; empty where there is none."""
        name = self.path.name.removesuffix(_RUNNING).removesuffix(_COMPACTED)
        return next((codec for codec in SUFFIXES if name.endswith(codec)), "")

    def open(self) -> IO[bytes]:
        """Open the file for reading. Raises `EventLogDamaged` and `OSError`."""
        return self.path.open("rb") if self.member is None else self.member.open()

    def size(self) -> int:
        """Return the size of the file on the disk in bytes. Raises `OSError`."""
        return self.path.stat().st_size if self.member is None else self.member.size


def locate(path: Path) -> Path:
    """
    Return the log that a user means.

    Its path, a folder with the id of its application, or the only log of a folder or of a zip.

    A file of Databricks beside others of its log means that log. Raises `EventLogError` and `OSError`.
    """
    inside = archive.split(path)
    if inside is not None:
        return _located_in_zip(*inside)
    if path.is_file():
        return path.parent if _HOUR.fullmatch(path.name) and is_hourly(path.parent) else path
    return _located(path, _DEEPEST)


def _located(path: Path, deepest: int) -> Path:
    """Return the log of a folder, looking into folders of `deepest` levels below it; or that of an application's id."""
    if is_rolled(path) or is_hourly(path):
        return path
    if not path.exists():
        return _located_by_id(path)
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    candidates = [entry for entry in entries if entry.is_file() or entry.name.startswith(_FOLDER)]
    folders = [entry for entry in entries if entry.is_dir()]
    if not candidates and len(folders) == 1 and deepest:
        return _located(folders[0], deepest - 1)
    logs = candidates if len(candidates) == 1 else [log for log in candidates if _may_be_log(log)]
    if candidates and not logs:
        raise NoEventLog(f"{path} is a folder of {len(candidates)} files, and none of them is an event log: name one")
    return path / _only(path, [log.name for log in logs])


def _located_by_id(path: Path) -> Path:
    """Return the log of the application that a path names: the name of the log changes when the application ends."""
    folder, app_id = path.parent, path.name.removesuffix(_RUNNING).removeprefix(_FOLDER)
    attempts_and_logs = logs_of(folder, app_id) if folder.is_dir() else []
    logs = [log for attempt, log in attempts_and_logs if not attempt] or [log for _, log in attempts_and_logs]
    if not logs:
        raise NoEventLog(f"{path} does not exist")
    return folder / _only(folder, sorted(log.name for log in logs))


def _may_be_log(path: Path) -> bool:
    """Decide whether a path is a folder of a log, or a file that has the name or the beginning of one."""
    name = path.name.removesuffix(_RUNNING)
    if path.is_dir() or _APPLICATION.match(name) or name.endswith(tuple(SUFFIXES)):
        return True
    try:
        with path.open("rb") as file:
            return _BEGINNING.match(file.read(100)) is not None
    except OSError:
        return False


def _located_in_zip(zipped: Path, inner: str) -> Path:
    """Return the path of the log in a zip: the one that the user's path names, or else the only one."""
    names = [member.name for member in archive.members(zipped)]
    logs = _logs_in(names)
    if inner != ".":
        logs = [log for log in logs if log == inner or log.startswith(f"{inner}/") or inner.startswith(f"{log}/")]
        if not logs:
            raise NoEventLog(f"{zipped} holds no {inner}")
    return zipped / _only(zipped, logs)


def _logs_in(names: Iterable[str]) -> list[str]:
    """Return the logs among the files of a zip: folders of files that belong together, and single files."""
    by_folder: dict[str, list[str]] = {}
    for name in names:
        folder, _, base = name.rpartition("/")
        by_folder.setdefault(folder, []).append(base)
    logs = []
    for folder, bases in by_folder.items():
        if any(_EVENTS.match(base) for base in bases) or _hours(bases) > 1:
            logs.append(folder or ".")
        else:
            logs += [f"{folder}/{base}".removeprefix("/") for base in bases if not base.startswith(_STATUS)]
    return sorted(logs)


def _only(where: Path, logs: Sequence[str]) -> str:
    """Return the only log of a place. Raises `NoEventLog` if there is none or are several."""
    if not logs:
        raise NoEventLog(f"{where} holds no event log")
    if len(logs) > 1:
        names = ", ".join(logs[:_MOST_NAMED])
        ellipsis = ", …" if len(logs) > _MOST_NAMED else ""
        raise NoEventLog(f"{where} holds {len(logs)} event logs, name one: {names}{ellipsis}")
    return logs[0]


def logs_of(folder: Path, app_id: str) -> Sequence[tuple[str, Path]]:
    """
    Return the logs of an application in a folder, each with the attempt at the application in its name.

    Raises `OSError`.
    """
    codec = "|".join(map(re.escape, SUFFIXES))
    # with more digits, it would be the name of another application
    name = re.compile(rf"(?:{_FOLDER})?{re.escape(app_id)}(?:_([^.]+))?(?:{codec})?(?:{re.escape(_RUNNING)})?")
    return [(match[1] or "", entry) for entry in folder.iterdir() if (match := name.fullmatch(entry.name))]


def is_rolled(path: Path) -> bool:
    """Return whether this is a folder of files that were rolled over."""
    return path.is_dir() and any(_EVENTS.match(entry.name) for entry in path.iterdir())


def is_hourly(path: Path) -> bool:
    """Return whether this is a folder with several files of a log of Databricks."""
    return path.is_dir() and _hours(entry.name for entry in path.iterdir()) > 1


def _hours(names: Iterable[str]) -> int:
    """Return the number of names that are those of Databricks' files."""
    return sum(_HOUR.fullmatch(name) is not None for name in names)


def files(log: Path) -> Sequence[LogFile]:
    """
    Return the files of a log, in their order.

    Files that a compaction has replaced are left out. While a compaction runs, its result is left out instead.

    Raises `EventLogError` and `OSError`.
    """
    inside = archive.split(log)
    if inside is not None:
        zipped, inner = inside
        member_by_name = {member.name: member for member in archive.members(zipped)}
        if inner in member_by_name:
            return (LogFile(path=log, index=0, member=member_by_name[inner]),)
        members = {
            name.rpartition("/")[2]: member for name, member in member_by_name.items() if _folder_of(name) == inner
        }
        return _ordered(members, lambda name: log / name, members.__getitem__)
    if not log.is_dir():
        return (LogFile(path=log, index=0),)
    return _ordered([entry.name for entry in log.iterdir()], lambda name: log / name)


def _folder_of(name: str) -> str:
    """Return the folder of a file in a zip, `.` for the top."""
    return name.rpartition("/")[0] or "."


def _ordered(
    names: Iterable[str],
    path: Callable[[str], Path],
    member: Callable[[str], archive.Member | None] = lambda _: None,
) -> Sequence[LogFile]:
    """
    Return the files of a folder that belong to its log, in their order.

    Args:
        names: names of all files in the folder.
        path: function from a name to the path of the file.
        member: function from a name to the file in a zip.

    """
    names = list(names)
    rolled = [
        LogFile(
            path=path(name),
            index=int(match[1]),
            compacted=name.endswith(_COMPACTED),
            numbered=True,
            member=member(name),
        )
        for name in names
        if (match := _EVENTS.match(name)) and not name.endswith(_COMPACTED + _RUNNING)
    ]
    if not rolled:
        return sorted(_by_hour(names, path, member), key=lambda file: file.index)
    rolled.sort(key=lambda file: (file.index, file.compacted))
    # a compacted file replaces all before it
    first = max((place for place, file in enumerate(rolled) if file.compacted), default=0)
    return rolled[first:]


def _by_hour(
    names: Iterable[str], path: Callable[[str], Path], member: Callable[[str], archive.Member | None]
) -> Iterator[LogFile]:
    """Yield the files of Databricks, whose index is the number that the digits of their hour make."""
    for name in names:
        match = _HOUR.fullmatch(name)
        if match is not None:
            index = int(re.sub(r"\D", "", match[1])) if match[1] else _NEWEST
            yield LogFile(path=path(name), index=index, member=member(name))


def is_running(log: Path) -> bool:
    """Return whether the application has not closed this log; it may also have been killed."""
    inside = archive.split(log)
    if inside is not None:
        zipped, inner = inside
        names = [member.name for member in archive.members(zipped)]
        if inner in names:
            return inner.endswith(_RUNNING)
        return _is_rolling([name.rpartition("/")[2] for name in names if _folder_of(name) == inner])
    if log.is_dir():
        return _is_rolling([entry.name for entry in log.iterdir()])
    return log.name.endswith(_RUNNING) and log.exists()


def _is_rolling(names: Sequence[str]) -> bool:
    """Return whether the names of a folder's files show that its log was not closed."""
    if _hours(names) and not any(map(_EVENTS.match, names)):
        return False
    return not any(name.startswith(_STATUS) and not name.endswith(_RUNNING) for name in names)
