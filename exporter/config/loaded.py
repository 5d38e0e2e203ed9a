"""A configuration together with what the files hold that it names: passwords, tokens, certificates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .model import Config
from .section import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was read at one moment."""

    config: Config
    contents: Mapping[Path, str] = field(default_factory=dict)
    """A digest of each file that the configuration names; empty for one that cannot be read."""

    def same(self, before: Loaded, ours: object, theirs: object) -> bool:
        """Whether a part of this configuration and one of an earlier one say the same, in files that hold the same."""
        if ours != theirs:
            return False
        return all(
            self.contents.get(path) == before.contents.get(path)
            for path in files_in(ours)
        )


def loaded(config: Config) -> Loaded:
    """The configuration with what its files hold now."""
    return Loaded(
        config=config, contents={path: _digest(path) for path in files_in(config)}
    )


def files_in(part: object) -> Iterator[Path]:
    """The files that a part of the configuration names."""
    return (path for _, path in named_files(part))


def named_files(part: object, name: str = "") -> Iterator[tuple[str, Path]]:
    """The same, each with the field that names it, such as ``ca_file``."""
    match part:
        case Path():
            yield name, part
        case Section():
            for field_name in type(part).model_fields:
                yield from named_files(getattr(part, field_name), field_name)
        case Mapping():
            for value in part.values():
                yield from named_files(value, name)
        case tuple():
            for value in part:
                yield from named_files(value, name)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
