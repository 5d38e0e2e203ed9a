"""
Copies of commits beside the log, which reveal a commit that the log has lost.

A log without its last commit is a log: Delta's readers take it for an older table. So after each commit a copy goes to
`_commits`, with the version and a digest in its name. A log that is read is compared with these names, and `restore`
puts lost commits back.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pyarrow import fs

from .storage import Storage

_FOLDER: Final = "_commits"
"""Beside the log; programs that clean up a Delta table leave names with an underscore in front alone."""
_LOG: Final = "_delta_log"
_NOTHING: Final = b'{"commitInfo":{"operation":"REPAIR"}}\n'
"""Content of a commit that changes nothing."""
_LAST: Final[dict[str, tuple[int, int]]] = {}
"""
The last commit and checkpoint that this process has kept, by table.

So `_commits`, which grows, need not be listed for the next commit.
"""
_NAME: Final = re.compile(r"(\d{20})-([0-9a-f]{32})\.(json|checkpoint)")


class Kept(NamedTuple):
    """Version and digest of a commit, or of a checkpoint, kept outside the log."""

    version: int
    digest: str
    kind: str
    """`json` of a commit, of which the content is kept; `checkpoint` of a checkpoint, of which only the digest is."""

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
    Keep copies of the commits up to a version, the last one of the log.

    Commits of other programs and of killed runs since the last copy are copied as well. An error does not prevent the
    commit, and the next commit makes up for it.
    """
    last_commit, last_checkpoint = _LAST.pop(storage.uri, (-1, -1))
    try:
        if last_commit != version - 1:
            copies = listed(storage)
            last_commit, last_checkpoint = last_of(copies), last_of(copies, "checkpoint")
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
    """Return the version of the last checkpoint, as the log names it; -1 without one."""
    try:
        checkpoint = json.loads(_content(storage, f"{_LOG}/_last_checkpoint") or b"{}")
        return int(checkpoint.get("version", -1))
    except (AttributeError, TypeError, ValueError):
        return -1


def listed(storage: Storage) -> list[Kept]:
    """Return the names of the kept copies, oldest first."""
    names = (_NAME.fullmatch(info.base_name) for info in storage.listing(_FOLDER))
    return sorted(Kept(int(name[1]), name[2], name[3]) for name in names if name)


def last_of(copies: Sequence[Kept], kind: str = "json") -> int:
    """Return the version of the last commit, or checkpoint, that is kept; -1 without any."""
    return max((copy.version for copy in copies if copy.kind == kind), default=-1)


def changed(storage: Storage, copies: Sequence[Kept], version: int, compared_version: int = -1) -> Kept | None:
    """
    Return the copy of a commit that has other bytes in the log, or of the last commit if the log lacks it.

    With a checkpoint the log can be read without its last commit, but not be written to.

    Args:
        storage: folder of the table.
        copies: the copies.
        version: number of the last commit of the log.
        compared_version: commits up to this version were compared before. In an object store, which has checksums of
            its own, only the last commit is compared.

    """
    checkpoint = last_of(copies, "checkpoint")
    for copy in copies:
        newest = copy.version == (checkpoint if copy.kind == "checkpoint" else version)
        if newest or (storage.is_local and copy.kind == "json" and copy.version > max(compared_version, checkpoint)):
            content = _content(storage, copy.original)
            is_lost = content is None and copy.version == version and copy.kind == "json"
            if is_lost or (content is not None and digest_of(content) != copy.digest):
                return copy
    return None


class Restored(NamedTuple):
    """Outcome of a repair of a commit, or of a checkpoint, that the log had lost."""

    path: str
    """Path in the log."""
    whole: bool
    """Whether the commit is restored, or not needed; otherwise the rows that it added or removed are lost."""


def restore(storage: Storage, *, write: bool) -> Iterator[Restored]:
    """
    Restore commits that the log has lost, or of which it has other bytes, from their copies; yield a result for each.

    A commit without a whole copy becomes one that changes nothing, as its number must not come again: other tables have
    counted it. The remains of a lost or damaged checkpoint are removed: the commits before it say the same.

    Args:
        storage: folder of the table.
        write: whether to change the log; otherwise losses are only reported.

    """
    copies = listed(storage)
    checkpoint = last_of(copies, "checkpoint")
    for copy in copies:
        content = _content(storage, copy.original)
        if content is not None and digest_of(content) == copy.digest:
            continue
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
    """Remove copies of commits that the log neither has nor needs any more."""
    copies = listed(storage)
    checkpoint = last_of(copies, "checkpoint")
    for copy in copies:
        if copy.version < checkpoint and storage.filesystem.get_file_info(copy.original).type is fs.FileType.NotFound:
            storage.remove(copy.copy)


def digest_of(content: bytes) -> str:
    """Return the digest of a commit, as the name of its copy has it."""
    return hashlib.sha256(content).hexdigest()[:32]


def _content(storage: Storage, path: str) -> bytes | None:
    try:
        with storage.filesystem.open_input_stream(path) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None


def _write(storage: Storage, copy: Kept, content: bytes) -> None:
    storage.filesystem.create_dir(_FOLDER, recursive=True)
    with storage.filesystem.open_output_stream(copy.copy) as stream:
        stream.write(content)
