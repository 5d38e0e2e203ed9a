"""Request logs that paths name, and the permissions of files that are made of them."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from threading import Lock
from typing import Final

from ..errors import UnreadableLog
from ..table.storage import ABSENT

STANDARD_INPUT: Final = "-"
_UMASK: Final = Lock()
"""Lock for the umask, which a process has one of: a thread that restores it must not undo what another has set."""
LINK_OUT: Final = "a link out of its folder, which is not followed: name the file, or pass --follow-links"


def log_files(
    paths: Iterable[str], names: str = "*", *, follow_links: bool = False
) -> tuple[list[str], dict[str, str]]:
    """
    Return the files that paths name, and the parts of folders that were left out, with the reason.

    A path itself may be a link. Links out of a folder are not followed: with them, a user who may write into the folder
    could have any file read that the reader may read. Hidden files of folders are left out as well.

    Args:
        paths: files, folders, and `-`.
        names: shell pattern for the files of a folder.
        follow_links: whether links in a folder may lead out of it.

    Returns:
        Absolute paths, each once; `-` stands for standard input and stays.

    Raises:
        UnreadableLog: a path does not exist or cannot be read, or a folder has no file of such a name.

    """
    files: list[str] = []
    left_out: dict[str, str] = {}
    for path in paths:
        if path == STANDARD_INPUT:
            files.append(path)
            continue
        try:
            mode = Path(path).stat().st_mode
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            reason = "there is no such file or folder" if is_missing else f"it cannot be read: {error.strerror}"
            raise UnreadableLog(path, reason) from error
        if stat.S_ISDIR(mode):
            inside = sorted(_files_in(Path(path), names, left_out, follow_links=follow_links))
            if refusal := left_out.get(str(Path(path).absolute())):
                raise UnreadableLog(path, f"it cannot be read: {refusal}")
            if not inside:
                reasons = "".join(f"; {entry}: {reason}" for entry, reason in left_out.items())
                raise UnreadableLog(path, f"no file in this folder is called {names}{reasons}")
            files += [str(file.absolute()) for file in inside]
        else:
            files.append(str(Path(path).absolute()))
    return list(dict.fromkeys(files)), {printable(file): reason for file, reason in left_out.items()}


def _files_in(root: Path, names: str, left_out: dict[str, str], *, follow_links: bool) -> Iterator[Path]:
    """Yield the files below a folder, each folder once, wherever links lead."""
    home = Path(os.path.realpath(root))
    folders, seen = [root], {home}
    while folders:
        folder = folders.pop()
        try:
            visible = (path for path in folder.iterdir() if not path.name.startswith((".", "_")))
            entries = [(path, stat.S_ISLNK(path.lstat().st_mode)) for path in visible]
        except OSError as error:
            left_out[str(folder.absolute())] = str(error.strerror)
            continue
        for path, link in entries:
            place, is_log = Path(os.path.realpath(path)), fnmatch(path.name, names)
            out = link and not place.is_relative_to(home)
            try:
                mode = place.stat().st_mode
            except OSError as error:
                if (is_log or link) and error.errno not in ABSENT:  # such as a file that was rotated away
                    left_out[str(path.absolute())] = str(error.strerror)
                continue
            if out and not follow_links:
                if stat.S_ISDIR(mode) or is_log:
                    left_out[str(path.absolute())] = LINK_OUT
            elif is_log and stat.S_ISREG(mode):
                yield path
            elif stat.S_ISDIR(mode) and place not in seen and (out or not link):
                seen.add(place)
                folders.append(path)


def printable(path: str) -> str:
    r"""Return a path as text that can be written and printed: bytes of its name that are no UTF-8 as `\xe9`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def path_here(path: str) -> str:
    """Return the path that Spark reads for a URI (`/a%20b` for `file:///a%20b`), and other paths unchanged."""
    local = path.startswith("file:/")
    return f"/{path.removeprefix('file:').lstrip('/')}" if local else path


def size_of(file: str) -> int:
    """Return the size of a file; 0 for a pipe, and for one that was rotated away meanwhile."""
    status = _stat(file)
    return 0 if status is None else status.st_size


def _stat(file: str) -> os.stat_result | None:
    try:
        return os.fstat(0) if file == STANDARD_INPUT else Path(file).stat()
    except FileNotFoundError:
        return None


@contextmanager
def as_private_as(files: Iterable[str]) -> Iterator[None]:
    """
    Let files that are written in the block be readable only by users who may read all of `files`.

    The group keeps its permissions only where the new files have the same group. The libraries that write the files
    take no mode, so the umask of the whole process is changed: files of other threads become as private, and a second
    thread that calls this waits for the first.
    """
    hidden = 0
    for file in files:
        status = _stat(file)
        if status is None:  # a file that replaces it may be private
            hidden = 0o077
        elif stat.S_ISREG(status.st_mode) and not status.st_mode & stat.S_IROTH:  # the content of a pipe has no mode
            for_group = status.st_gid == os.getegid() and status.st_mode & stat.S_IRGRP
            hidden |= stat.S_IRWXO if for_group else stat.S_IRWXO | stat.S_IRWXG
    with _UMASK:
        previous = os.umask(0o077)
        os.umask(previous | hidden)
        try:
            yield
        finally:
            os.umask(previous)
