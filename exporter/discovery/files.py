"""Nodes from files as Prometheus's ``file_sd_configs`` reads them."""

from __future__ import annotations

import asyncio
import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..untrusted import shown
from .file_sd import MAX_BYTES, FileTarget, parse
from .target import Found, Target, UrlTemplate

_Stamp = tuple[int, int, int]
"""What changes when a file does: time of change in ns, size, inode."""


@dataclass(slots=True)
class _Seen:
    """What a file said when it was last looked at, and when it last could be read."""

    stamp: _Stamp
    targets: list[FileTarget]
    problem: str | None = None


class FileFinder:
    """
    Reads the files that match some patterns, again whenever one of them has changed.

    A file that cannot be read or understood keeps the targets that it had; one that is gone has none.

    Args:
        patterns: Paths in which ``*`` stands for any name.
        url: Template with ``target``, ``host`` and ``port``.
        match: Labels that a group must have to be taken.
        node_id_label: The label that holds the node id, where there is one.
        interval_seconds: Pause between two looks.

    """

    name = "file_sd"

    def __init__(
        self,
        patterns: Sequence[str],
        url: UrlTemplate,
        match: Mapping[str, str],
        node_id_label: str,
        interval_seconds: float,
    ) -> None:
        self._patterns = patterns
        self._url = url
        self._match = match
        self._node_id_label = node_id_label
        self.interval_seconds = interval_seconds
        self._seen: dict[str, _Seen] = {}

    async def find(self) -> Found:
        """The targets of all files."""
        return await asyncio.to_thread(self._find)

    async def close(self) -> None:
        """Nothing to release."""

    def _find(self) -> Found:
        problems: list[str] = []
        paths: dict[str, None] = {}
        for pattern in self._patterns:
            matching = sorted(glob.glob(pattern))  # noqa: PTH207 - a pattern may be absolute
            paths |= dict.fromkeys(matching)
            if not matching:
                problems.append(f"{pattern}: there is no such file")
        self._seen = {path: self._looked_at(path) for path in paths}
        targets = list(self._targets(problems))
        return Found(targets=tuple(targets), problem=_all(problems))

    def _looked_at(self, path: str) -> _Seen:
        before = self._seen.get(path)
        try:
            stamp = _stamp(path)
            if before is not None and before.stamp == stamp:
                return before
            return _Seen(stamp, parse(path, _text(path)))
        except OSError as error:
            stamp, problem = (0, 0, 0), f"cannot be read: {error.strerror or error}"
        except ValueError as error:
            problem = str(error)
        return _Seen(stamp, before.targets if before else [], problem)

    def _targets(self, problems: list[str]) -> Iterator[Target]:
        for path, seen in self._seen.items():
            if seen.problem is not None:
                problems.append(f"{shown(path)}: {seen.problem}")
            for target in seen.targets:
                if self._match.items() <= target.labels.items():
                    try:
                        yield self._target(target)
                    except ValueError as error:
                        problems.append(f"{shown(path)}: {error}")

    def _target(self, found: FileTarget) -> Target:
        address = found.address
        values = {"target": str(address), "host": address.host, "port": address.port}
        return self._url.target(values, _node_id(found.labels, self._node_id_label))


def _node_id(labels: Mapping[str, str], label: str) -> int | None:
    text = labels.get(label)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):  # noqa: PLR2004 - digits of an int32
        raise ValueError(f"the label {label} is {shown(text)!r}, which is no node id")
    return int(text)


def _stamp(path: str) -> _Stamp:
    stat = Path(path).stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _text(path: str) -> str:
    with Path(path).open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"longer than {MAX_BYTES >> 20} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from None


def _all(problems: Iterable[str], most: int = 3) -> str | None:
    told = list(problems)
    if len(told) > most:
        told[most:] = [f"and {len(told) - most} more"]
    return "; ".join(told) or None
