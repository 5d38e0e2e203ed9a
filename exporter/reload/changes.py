"""What differs between two configurations, by the names of fields only: values may be secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..config import Config
from ..config.load import Loaded
from ..config.section import Section

NEEDS_RESTART: Final = ("server",)
"""Sections that are read once, at the start."""


def changed_fields(old: Section, new: Section, place: str = "") -> Iterator[str]:
    """The fields that differ, as people write them: ``kafka.timeout_seconds``."""
    for name in type(new).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        here = f"{place}{name}"
        if isinstance(before, Section) and isinstance(after, Section):
            yield from changed_fields(before, after, f"{here}.")
        elif before != after:
            yield here


def changed_files(old: Loaded, new: Loaded) -> Iterator[str]:
    """The files that both configurations name and that hold something else now."""
    for path in sorted(old.contents.keys() & new.contents.keys()):
        if old.contents[path] != new.contents[path]:
            yield str(path)


def needs_restart(fields: list[str]) -> list[str]:
    """Those of these fields that count only after a restart."""
    return [field for field in fields if field.partition(".")[0] in NEEDS_RESTART]


def without_restart(old: Config, new: Config) -> Config:
    """The new configuration, with what stays as it was until a restart."""
    return new.model_copy(update={name: getattr(old, name) for name in NEEDS_RESTART})
