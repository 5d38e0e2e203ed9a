"""
Files that are written completely or not at all.

A full disk or a killed process must not leave the first half of a file: half of a file of rules is still valid YAML,
and Prometheus would evaluate half of its alerts. The content is written to a hidden file in the same folder, which is
then renamed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES, EISDIR, ENOTDIR
from pathlib import Path
from typing import Final

_OPEN: Final = ("/dev/stdout", "/dev/stderr", "/dev/fd", "/proc")
"""Names of open files; they are not replaced, since the program that opened them would keep the old file."""
_NEW_FILE: Final = 0o666
"""Permissions of a new file, before the umask is applied."""

Content = str | bytes


def put(file: Path, content: Content) -> None:
    """Write one file, as `put_all` does."""
    put_all({file: content})


def put_all(contents: Mapping[Path, Content], *, make_folders: bool = False) -> None:
    """
    Write files; all are complete on the disk before the first one takes its name.

    An existing file keeps its permissions, and its owner where the system allows that; the target of a symbolic link is
    replaced, not the link. Pipes, devices and open files (`/dev/stdout`) are written to directly. Text is UTF-8;
    what cannot be encoded becomes a question mark.

    Raises:
        OSError: a file, named by `filename`, cannot be written; existing files are unchanged, unless the disk fails
            while files are renamed.

    """
    for file in contents if make_folders else ():
        with _named(file):
            _make_folder(file.parent)
    with ExitStack() as stack:
        staged = [stack.enter_context(_staged(file, content)) for file, content in contents.items()]
        for file, part in zip(contents, staged, strict=True):
            with _named(file):
                if part is not None:
                    part.take_its_name()
                else:
                    with file.open("ab") as opened:  # keeps the present content
                        opened.write(_encoded(contents[file]))
        for folder in {part.target.parent for part in staged if part is not None}:
            _remember_names(folder)


def check(file: Path) -> None:
    """Check that a file can be written, without changing it. Raises `OSError`."""
    with _staged(file, b""):
        pass


class _Part:
    """A hidden file with the content, beside its target."""

    def __init__(self, file: Path, existing: os.stat_result | None) -> None:
        self.target = Path(os.path.realpath(file))
        self._existing = existing
        self._path = self.target.with_name(f".quotascope-{os.urandom(8).hex()}.part")

    def write(self, content: bytes) -> None:
        """Write the content to the disk, with the permissions of the target."""
        existing = self._existing
        mode = _NEW_FILE if existing is None else stat.S_IMODE(existing.st_mode)
        with open(self._create(mode), "wb") as file:  # noqa: PTH123 - opened with its permissions
            if existing is not None:
                with suppress(OSError):  # only root may give files away
                    os.fchown(file.fileno(), existing.st_uid, existing.st_gid)
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _create(self, mode: int) -> int:
        try:
            return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except PermissionError as error:  # people check the file's permissions and forget those of its folder
            reason = f"{error.strerror}: no file can be made in its folder"
            raise PermissionError(error.errno, reason) from error

    def take_its_name(self) -> None:
        """Replace the target atomically."""
        self._path.replace(self.target)

    def remove(self) -> None:
        """Remove the hidden file, if it was not renamed."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


@contextmanager
def _staged(file: Path, content: Content) -> Iterator[_Part | None]:
    """Write the content to a hidden file and yield it; yield None if the file is to be written to directly."""
    with _named(file):
        existing = _stat(file)
    if existing is not None and _is_written_through(file, existing):
        yield None
        return
    part = _Part(file, existing)
    try:
        with _named(file):
            part.write(_encoded(content))
        yield part
    finally:
        part.remove()


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Replace the hidden file's name in an error by the name of the target."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(file)) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OSError(ENOTDIR, f"{folder} is not a folder") from error


def _stat(file: Path) -> os.stat_result | None:
    """Return the status of an existing file, or None. Raises `OSError` if the file may not be written."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise OSError(EISDIR, os.strerror(EISDIR))
    if not os.access(file, os.W_OK):  # the folder's permissions might allow it
        raise OSError(EACCES, os.strerror(EACCES))
    return status


def _is_written_through(file: Path, status: os.stat_result) -> bool:
    opened = any(file.absolute().is_relative_to(name) for name in _OPEN)
    return opened or not stat.S_ISREG(status.st_mode)


def _encoded(content: Content) -> bytes:
    return content.encode("utf-8", "replace") if isinstance(content, str) else content


def _remember_names(folder: Path) -> None:
    """Make the new names survive a power cut, on file systems that support it."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
