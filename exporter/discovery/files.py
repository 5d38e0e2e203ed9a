"""
Finds nodes in files as Prometheus's ``file_sd_configs`` reads them.

A list of groups, each with targets and labels, in JSON or YAML. The author of such a file need not be the person who
configured the exporter. Its content is taken as a list of addresses and nothing else; anything unexpected refuses the
file.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

import yaml

from quotascope.clients.reading import content_of
from quotascope.quotas import StrictLoader

from ..config import FileDiscoveryConfig
from ..errors import DiscoveryError
from ..threads import BlockingCalls
from ..untrusted import shown
from .target import Address, FoundNodes, NodeTarget, address, target_of

MAX_BYTES: Final = 1 << 20
"""A longer file is refused."""
MAX_TARGETS: Final = 10_000
"""A file with more targets is refused: no cluster has as many nodes."""
_MOST_PROBLEMS: Final = 3
_MOST_DIGITS: Final = 10
"""Digits of the largest int32, the type of Kafka's node.id."""

_Stamp = tuple[int, int, int]
"""Properties that change when a file does: time of change in ns, size, inode."""


@dataclass(slots=True)
class _Seen:
    """The content of a file, either at the last look or when it could last be read."""

    stamp: _Stamp
    targets: list[FileTarget]
    problem: str | None = None


class FileFinder:
    """
    Reads the configured files, again whenever one of them has changed.

    A file that cannot be read or understood keeps the targets that it had; one that is gone has none.
    """

    name = "file_sd"

    def __init__(self, config: FileDiscoveryConfig) -> None:
        self._config = config
        self.interval_seconds = config.refresh_interval_seconds
        self._seen: dict[str, _Seen] = {}
        # a file system of another machine, or a pipe, can make a read wait for ever
        self._calls = BlockingCalls("quotascope-files", DiscoveryError)

    async def find(self) -> FoundNodes:
        """Return the targets of all files. Raises ``DiscoveryError`` while an earlier look still waits for a file."""
        return await self._calls.run(self._find)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _find(self) -> FoundNodes:
        """Return the targets of all files, with the first problems; blocks."""
        problems: list[str] = []
        paths: dict[str, None] = {}
        for pattern in self._config.files:
            matching = sorted(glob.glob(pattern))  # noqa: PTH207 - a pattern may be absolute
            paths |= dict.fromkeys(matching)
            if not matching:
                problems.append(f"{pattern}: there is no such file")
        self._seen = {path: self._look_at(path) for path in paths}
        targets: list[NodeTarget] = []
        for path, seen in self._seen.items():
            if seen.problem is not None:
                problems.append(f"{shown(path)}: {seen.problem}")
            for target in seen.targets:
                if self._config.match.items() <= target.labels.items():
                    try:
                        targets.append(self._target(target))
                    except ValueError as error:
                        problems.append(f"{shown(path)}: {error}")
        if not targets and not problems:
            labels = " with the labels of match" if self._config.match else ""
            problems.append(f"the files list no target{labels}")
        if len(problems) > _MOST_PROBLEMS:
            problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS} more"]
        return FoundNodes(targets=tuple(targets), problem="; ".join(problems) or None)

    def _look_at(self, path: str) -> _Seen:
        """Return the content of a file; after an error, the targets of the last look with the problem."""
        previous = self._seen.get(path)
        try:
            stat = Path(path).stat()
            stamp = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if previous is not None and previous.stamp == stamp:
                return previous
            return _Seen(stamp, parse(path, _text(path)))
        except OSError as error:
            stamp, problem = (0, 0, 0), f"cannot be read: {error.strerror or error}"
        except ValueError as error:
            problem = str(error)
        return _Seen(stamp, previous.targets if previous else [], problem)

    def _target(self, target: FileTarget) -> NodeTarget:
        """Return the node of a target. Raises ``ValueError`` if its address or its node id is not valid."""
        address, label = target.address, self._config.node_id_label
        values = {"target": str(address), "host": address.host, "port": address.port}
        text = target.labels.get(label)
        if text is None:
            return target_of(self._config.url, values)
        if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
            raise ValueError(f"the label {label} is {shown(text)!r}, which is not a node id")
        return target_of(self._config.url, values, int(text))


def _text(path: str) -> str:
    """Return the text of a file. Raises ``OSError``, and ``ValueError`` if it is not UTF-8."""
    try:
        return content_of(Path(path), MAX_BYTES).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """One target of a file, with the labels of its group."""

    address: Address
    labels: Mapping[str, str]


class _PlainLoader(StrictLoader):
    """YAML without aliases, a few of which can stand for any amount of memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)


def parse(name: str, text: str) -> list[FileTarget]:
    """
    Return the targets of a file called ``name``.

    Raises ``ValueError`` with what is wrong, for the whole file: half a list would look like nodes that went away.
    """
    try:
        if PurePath(name).suffix.lower() == ".json":
            document = json.loads(text)
        else:
            document = yaml.load(text, _PlainLoader)  # noqa: S506 - a SafeLoader
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"cannot be parsed: {shown(error)}") from None
    if document is None:
        return []
    if not isinstance(document, list):
        raise ValueError("expected a list of groups with `targets`")  # noqa: TRY004 - the file's value
    targets: list[FileTarget] = []
    for number, group in enumerate(document, 1):
        try:
            targets.extend(_targets_of(group))
        except ValueError as error:
            raise ValueError(f"group {number}: {error}") from None
        if len(targets) > MAX_TARGETS:
            raise ValueError(f"more than {MAX_TARGETS} targets")
    return targets


def _targets_of(group: object) -> Iterator[FileTarget]:
    """Yield the targets of a group. Raises ``ValueError`` for anything unexpected."""
    if not isinstance(group, dict) or not group.keys() <= {"targets", "labels"}:
        raise ValueError("expected `targets` and perhaps `labels`, and nothing else")
    labels = group.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(part, str) for item in labels.items() for part in item):
        raise ValueError("labels are not names with texts")
    targets = group.get("targets")
    if not isinstance(targets, list) or not all(isinstance(t, str) for t in targets):
        raise ValueError("targets are not a list of HOST:PORT")
    for target in targets:
        yield FileTarget(address=address(target), labels=labels)
