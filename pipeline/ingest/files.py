"""The files that a list of paths means, and the permissions of what is made of them."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from threading import Lock
from typing import Final

from ..errors import UnreadableLog

STANDARD_INPUT: Final = "-"
_UMASK: Final = Lock()
"""A process has one: a thread that puts it back must not undo what another one has set."""
LINK_OUT: Final = "a link out of its folder, which is not followed: name the file, or pass --follow-links"


@dataclass(slots=True)
class LogFiles:
    """Files to read."""

    files: list[str] = field(default_factory=list)
    """Absolute paths, each once; `-` stands for standard input and stays."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What else is in the folders and was not looked into, and why."""


def log_files(paths: Iterable[str], names: str = "*", *, follow_links: bool = False) -> LogFiles:
    """
    The files that paths mean, those of a folder by name. A path itself may be a link.

    Links out of a folder are not followed: with them, a user who may write into the folder could have any file read that the reader may
    read. Hidden files of folders are left out as well.

    Args:
        paths: files, folders, and `-`.
        names: which files of a folder, as a shell pattern.
        follow_links: whether links in a folder may lead out of it.

    Raises:
        UnreadableLog: a path is not there, or a folder has no file of such a name.

    """
    found = LogFiles()
    for path in paths:
        if path == STANDARD_INPUT:
            found.files.append(path)
        elif Path(path).is_dir():
            _add_folder(Path(path), names, found, follow_links=follow_links)
        elif Path(path).exists():
            found.files.append(str(Path(path).absolute()))
        else:
            raise UnreadableLog(path, "there is no such file or folder")
    found.files = list(dict.fromkeys(found.files))
    return found


def _add_folder(root: Path, names: str, found: LogFiles, *, follow_links: bool) -> None:
    """Add the files below a folder, each folder once, wherever links lead."""
    home = Path(os.path.realpath(root))
    folders, seen, files = [root], {home}, list[Path]()
    while folders:
        folder = folders.pop()
        try:
            entries = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
        except OSError as error:
            found.left_out[str(folder.absolute())] = str(error.strerror)
            continue
        for path in entries:
            place, named = Path(os.path.realpath(path)), fnmatch(path.name, names)
            link = path.is_symlink()
            out = link and not place.is_relative_to(home)
            if out and not follow_links:
                if place.is_dir() or (named and place.exists()):
                    found.left_out[str(path.absolute())] = LINK_OUT
            elif named and place.is_file():
                files.append(path)
            elif place.is_dir() and place not in seen and (out or not link):
                seen.add(place)
                folders.append(path)
    if not files:
        reasons = "".join(f"; {path}: {why}" for path, why in found.left_out.items())
        raise UnreadableLog(str(root), f"no file in this folder is called {names}{reasons}")
    found.files += [str(file.absolute()) for file in sorted(files)]


def path_here(path: str) -> str:
    """A URI such as `file:///a%20b` as the path that Spark takes it for, `/a%20b`; others as they are."""
    local = path.startswith("file:/")
    return f"/{path.removeprefix('file:').lstrip('/')}" if local else path


def size_of(file: str) -> int:
    """Bytes of a file; 0 for standard input, and for one that was rotated away since the folder was looked at."""
    about = None if file == STANDARD_INPUT else _stat(file)
    return 0 if about is None else about.st_size


def _stat(file: str) -> os.stat_result | None:
    try:
        return Path(file).stat()
    except FileNotFoundError:
        return None


@contextmanager
def as_private_as(files: Iterable[str]) -> Iterator[None]:
    """
    Make files that are written meanwhile readable only by users who may read all of these.

    The group keeps its permissions only where the new files have the same group. The process's umask is changed, as the libraries that write
    the files take no mode: other threads' files are as private meanwhile, and of several threads in here one waits for the other.
    """
    hidden = 0
    for file in files:
        about = os.fstat(0) if file == STANDARD_INPUT else _stat(file)
        if about is None:  # what takes its place may be private
            hidden = 0o077
        elif stat.S_ISREG(about.st_mode):  # a pipe says nothing of what is in it
            for_all = about.st_mode & stat.S_IROTH
            same_group = about.st_gid == os.getegid()
            hidden |= 0 if for_all else stat.S_IRWXO
            if not for_all and not (same_group and about.st_mode & stat.S_IRGRP):
                hidden |= stat.S_IRWXG
    with _UMASK:
        before = os.umask(0o077)
        os.umask(before | hidden)
        try:
            yield
        finally:
            os.umask(before)
