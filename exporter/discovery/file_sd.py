"""
The file format of Prometheus's ``file_sd_configs``: a list of groups, each with targets and labels, in JSON or YAML.

Whoever may write such a file is not who configured the exporter. What it says is taken as a list
of addresses and nothing else; anything unexpected refuses the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import yaml

from quotascope.quotas import StrictLoader

from ..untrusted import shown
from .target import Address, address

MAX_BYTES: Final = 1 << 20
"""A file that is longer is refused."""
MAX_TARGETS: Final = 10_000
"""So is one with more targets, which is more than any cluster has nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """One target of a file, with the labels of its group."""

    address: Address
    labels: Mapping[str, str]


def parse(name: str, text: str) -> list[FileTarget]:
    """
    The targets of a file called ``name``.

    Raises ``ValueError`` with what is wrong, for the whole file: half a list would look like nodes that went away.
    """
    found: list[FileTarget] = []
    for target in _targets(_document(name, text)):
        found.append(target)
        if len(found) > MAX_TARGETS:
            raise ValueError(f"more than {MAX_TARGETS} targets")
    return found


def _document(name: str, text: str) -> object:
    try:
        if PurePath(name).suffix.lower() == ".json":
            return json.loads(text)
        return yaml.load(text, _Plain)  # noqa: S506 - a SafeLoader
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"cannot be parsed: {shown(error)}") from None


class _Plain(StrictLoader):
    """YAML without aliases, a few of which can stand for any amount of memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)


def _targets(document: object) -> Iterator[FileTarget]:
    if document is None:
        return
    if not isinstance(document, list):
        raise ValueError("expected a list of groups with `targets`")  # noqa: TRY004 - the file's value
    for number, group in enumerate(document, 1):
        try:
            yield from _of_group(group)
        except ValueError as error:
            raise ValueError(f"group {number}: {error}") from None


def _of_group(group: object) -> Iterator[FileTarget]:
    if not isinstance(group, dict) or not group.keys() <= {"targets", "labels"}:
        raise ValueError("expected `targets` and perhaps `labels`, and nothing else")
    labels = group.get("labels") or {}
    if not isinstance(labels, dict) or not all(map(_is_text, labels.items())):
        raise ValueError("labels are not names with texts")
    targets = group.get("targets")
    if not isinstance(targets, list) or not all(isinstance(t, str) for t in targets):
        raise ValueError("targets are not a list of HOST:PORT")
    for target in targets:
        yield FileTarget(address=address(target), labels=labels)


def _is_text(item: tuple[object, object]) -> bool:
    return all(isinstance(part, str) for part in item)
