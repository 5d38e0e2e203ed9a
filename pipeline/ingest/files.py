"""Search for the files of request logs, and the permissions of files that are made from them."""

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
"""Lock for the umask of the process, so that a thread that restores it does not undo what another thread has set."""
LINK_OUT: Final = "a link out of its folder, which is not followed: name the file, or pass --follow-links"


def log_files(
    paths: Iterable[str], names: str = "*", *, follow_links: bool = False
) -> tuple[list[str], dict[str, str]]:
    """
    Return the log files of some paths, and the files and folders that were left out, with the reason.

    A path itself may be a link. Links in a folder that lead out of it are not followed. Otherwise a user who may write
    to the folder could make this process read any file that it may read. Hidden files of folders are left out, too.

    Args:
        paths: files, folders, and `-`.
        names: shell pattern for the names of files in folders.
        follow_links: whether to follow links that lead out of a folder.

    Returns:
        Absolute paths, each once, and `-` for standard input; and the reasons by the path that was left out.

    Raises:
        UnreadableLog: a path does not exist or cannot be read, or a folder has no file that matches `names`.

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
    """Yield the files below a folder that match `names`, and add reasons to `left_out`; no folder is read twice."""
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
        for path, is_link in entries:
            target, matches = Path(os.path.realpath(path)), fnmatch(path.name, names)
            leads_out = is_link and not target.is_relative_to(home)
            try:
                mode = target.stat().st_mode
            except OSError as error:
                if (matches or is_link) and error.errno not in ABSENT:  # it may have been rotated away
                    left_out[str(path.absolute())] = str(error.strerror)
                continue
            if leads_out and not follow_links:
                if stat.S_ISDIR(mode) or matches:
                    left_out[str(path.absolute())] = LINK_OUT
            elif matches and stat.S_ISREG(mode):
                yield path
            elif stat.S_ISDIR(mode) and target not in seen and (leads_out or not is_link):
                seen.add(target)
                folders.append(path)


def printable(path: str) -> str:
    r"""Return a path as text in UTF-8; other bytes of its name are escaped, such as `\xe9`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def path_here(path: str) -> str:
    """Return the path that Spark reads for a URI, which is `/a%20b` for `file:///a%20b`; other paths are unchanged."""
    local = path.startswith("file:/")
    return f"/{path.removeprefix('file:').lstrip('/')}" if local else path


def size_of(file: str) -> int:
    """Return the size of a file in bytes; 0 for a pipe, and for a file that was rotated away meanwhile."""
    status = _stat(file)
    return 0 if status is None else status.st_size


def _stat(file: str) -> os.stat_result | None:
    """Return the status of a file or of standard input; None if the file does not exist."""
    try:
        return os.fstat(0) if file == STANDARD_INPUT else Path(file).stat()
    except FileNotFoundError:
        return None


@contextmanager
def as_private_as(files: Iterable[str]) -> Iterator[None]:
    """
    Make files that are written in the block readable only by users who may read all of `files`.

    The group may read the new files only if it may read `files`, and the new files have the same group. The libraries
    that write the files take no mode, so the umask of the process is changed: files that other threads write become as
    private, and a second thread that calls this waits for the first.
    """
    masked = 0
    for file in files:
        status = _stat(file)
        if status is None:  # a file that replaces it may be private
            masked = 0o077
        elif stat.S_ISREG(status.st_mode) and not status.st_mode & stat.S_IROTH:  # the content of a pipe has no mode
            group_may_read = status.st_gid == os.getegid() and status.st_mode & stat.S_IRGRP
            masked |= stat.S_IRWXO if group_may_read else stat.S_IRWXO | stat.S_IRWXG
    with _UMASK:
        previous = os.umask(0o077)  # the umask can only be read by setting it
        os.umask(previous | masked)
        try:
            yield
        finally:
            os.umask(previous)
