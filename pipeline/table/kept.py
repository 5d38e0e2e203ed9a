"""
Copies of commits beside the log of a table, by which lost commits are noticed and restored.

A log that has lost its last commit is still a valid log, of an older state of the table. So after each commit a copy is
written to `_commits`, with the version and a digest in its name. When a log is read, it is compared with these names,
and `restore` restores lost commits.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pyarrow import fs

from .storage import Storage

_FOLDER: Final = "_commits"
"""Folder beside the log; programs that clean up a Delta table leave names that begin with an underscore."""
_LOG: Final = "_delta_log"
_NOTHING: Final = b'{"commitInfo":{"operation":"REPAIR"}}\n'
"""Content of a commit that changes nothing."""
_LAST: Final[dict[str, tuple[int, int]]] = {}
"""
Last commit and checkpoint of which this process has kept a copy, by table.

With them, a commit does not need to list `_commits`, which grows.
"""
_NAME: Final = re.compile(r"(\d{20})-([0-9a-f]{32})\.(json|checkpoint)")


class Kept(NamedTuple):
    """A copy outside the log, of a commit or of a checkpoint."""

    version: int
    digest: str
    kind: str
    """`json` for a commit, whose content is kept; `checkpoint` for a checkpoint, of which only the digest is kept."""

    @property
    def copy(self) -> str:
        """The path of the copy."""
        return f"{_FOLDER}/{self.version:020d}-{self.digest}.{self.kind}"

    @property
    def original(self) -> str:
        """The path in the log."""
        return f"{_LOG}/{self.version:020d}.{'json' if self.kind == 'json' else 'checkpoint.parquet'}"


def keep(storage: Storage, version: int) -> None:
    """
    Write copies of all commits since the last copy, up to `version`, which is the last one of the log.

    Commits of other programs and of killed runs are copied, too. An error of the storage is ignored, as the commit is
    done; the next commit writes the missing copies.
    """
    last_commit, last_checkpoint = _LAST.pop(storage.uri, (-1, -1))
    try:
        if last_commit != version - 1:
            copies = listed(storage)
            last_commit, last_checkpoint = last_of(copies), last_of(copies, "checkpoint")
        # without any copy, only the last commit is copied
        for number in range(version if last_commit < 0 else last_commit + 1, version + 1):
            if (content := _content(storage, f"{_LOG}/{number:020d}.json")) is not None:
                _write(storage, Kept(number, digest_of(content), "json"), content)
        checkpoint = _checkpoint(storage)
        path = f"{_LOG}/{checkpoint:020d}.checkpoint.parquet"
        if checkpoint > last_checkpoint and (content := _content(storage, path)) is not None:
            _write(storage, Kept(checkpoint, digest_of(content), "checkpoint"), b"")
    except OSError:
        return
    _LAST[storage.uri] = (version, max(checkpoint, last_checkpoint))


def _checkpoint(storage: Storage) -> int:
    """Return the version of the last checkpoint that the log names; -1 without one."""
    try:
        checkpoint = json.loads(_content(storage, f"{_LOG}/_last_checkpoint") or b"{}")
        return int(checkpoint.get("version", -1))
    except (AttributeError, TypeError, ValueError):
        return -1


def listed(storage: Storage) -> list[Kept]:
    """Return the copies, oldest first."""
    names = (_NAME.fullmatch(info.base_name) for info in storage.listing(_FOLDER))
    return sorted(Kept(int(name[1]), name[2], name[3]) for name in names if name)


def last_of(copies: Sequence[Kept], kind: str = "json") -> int:
    """Return the version of the last commit, or checkpoint, that is kept; -1 without any."""
    return max((copy.version for copy in copies if copy.kind == kind), default=-1)


def changed(storage: Storage, copies: Sequence[Kept], version: int, compared_version: int = -1) -> Kept | None:
    """
    Return the copy of a commit or checkpoint that differs from the log, or of the last commit if the log lacks it.

    Return None if there is none. In an object store, which has checksums of its own, only the last commit and the last
    checkpoint are compared.

    Args:
        storage: folder of the table.
        copies: copies (`listed`).
        version: number of the last commit of the log.
        compared_version: last version that was compared before.

    """
    checkpoint = last_of(copies, "checkpoint")
    for copy in copies:
        is_commit = copy.kind == "json"
        is_newest = copy.version == (version if is_commit else checkpoint)
        is_new = storage.is_local and is_commit and copy.version > max(compared_version, checkpoint)
        if not is_newest and not is_new:
            continue
        content = _content(storage, copy.original)
        if content is None:
            if is_commit and copy.version == version:
                return copy
        elif digest_of(content) != copy.digest:
            return copy
    return None


class Restored(NamedTuple):
    """Outcome of a repair of a commit, or of a checkpoint, that the log had lost."""

    path: str
    """Path in the log."""
    whole: bool
    """True if nothing is lost: the commit is restored, or not needed. False if the rows that it added are lost."""


def restore(storage: Storage, *, write: bool) -> Iterator[Restored]:
    """
    Restore commits that are missing in the log, or have other bytes there, from their copies; yield a result for each.

    A commit whose copy is damaged is replaced by one that changes nothing, as its number must not be used again: other
    tables have counted it. A damaged checkpoint is removed, since the commits before it have the same content.

    Args:
        storage: folder of the table.
        write: whether to change the log; otherwise losses are only reported.

    """
    copies = listed(storage)
    checkpoint = last_of(copies, "checkpoint")
    for copy in copies:
        content = _content(storage, copy.original)
        if content is not None and digest_of(content) == copy.digest:
            continue  # nothing is lost
        if copy.kind == "checkpoint":
            if copy.version == checkpoint:
                yield Restored(copy.original, whole=True)
                if write:
                    for path in (copy.original, f"{_LOG}/_last_checkpoint", copy.copy):
                        storage.remove(path)
            continue
        if content is None and copy.version < checkpoint:
            continue  # the log has no need of it any more
        kept_content = _content(storage, copy.copy) or b""
        whole = digest_of(kept_content) == copy.digest
        yield Restored(copy.original, whole=whole)
        if write:
            if not whole:
                kept_content = _NOTHING
                storage.remove(copy.copy)
                _write(storage, Kept(copy.version, digest_of(kept_content), "json"), kept_content)
            with storage.filesystem.open_output_stream(copy.original) as stream:
                stream.write(kept_content)


def forget(storage: Storage) -> None:
    """Remove copies of commits that are before the last checkpoint and no longer in the log."""
    copies = listed(storage)
    checkpoint = last_of(copies, "checkpoint")
    for copy in copies:
        if copy.version < checkpoint and storage.filesystem.get_file_info(copy.original).type is fs.FileType.NotFound:
            storage.remove(copy.copy)


def digest_of(content: bytes) -> str:
    """Return the digest of a commit, as in the name of its copy."""
    return hashlib.sha256(content).hexdigest()[:32]


def _content(storage: Storage, path: str) -> bytes | None:
    """Return the content of a file; None if it does not exist."""
    try:
        with storage.filesystem.open_input_stream(path) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None


def _write(storage: Storage, copy: Kept, content: bytes) -> None:
    """Write a copy."""
    storage.filesystem.create_dir(_FOLDER, recursive=True)
    with storage.filesystem.open_output_stream(copy.copy) as stream:
        stream.write(content)
