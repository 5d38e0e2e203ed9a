"""Questions about the models of the configuration: which keys exist, and what is at a place."""

from __future__ import annotations

import typing
from collections.abc import Iterator

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from .file import Place
from .model import Config
from .section import Section


def section_in(annotation: object) -> type[Section] | None:
    """The section that a field of this type holds, alone, optional or in a sequence."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    found = (section_in(part) for part in typing.get_args(annotation))
    return next((section for section in found if section), None)


def section_at(place: Place, root: type[Section] = Config) -> type[Section] | None:
    """The section at a place below ``root``, None for values and for places that do not exist."""
    section: type[Section] | None = root
    for step in place:
        if isinstance(step, int):
            continue
        field = section.model_fields.get(step) if section else None
        section = section_in(field.annotation) if field else None
    return section


def field_at(place: Place, root: type[Section] = Config) -> FieldInfo | None:
    """The field that a place belongs to: for an item of a list or a mapping, the list or mapping."""
    for end in range(len(place), 0, -1):
        section, key = section_at(place[: end - 1], root), place[end - 1]
        if section and isinstance(key, str) and key in section.model_fields:
            return section.model_fields[key]
    return None


def is_secret(place: Place, root: type[Section] = Config) -> bool:
    """Whether the value at a place must not be shown."""
    field = field_at(place, root)
    return field is None or _mentions(field.annotation, SecretStr)


def value_places(
    section: type[Section] = Config, place: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The places of all values outside of ``sources`` that one text can give, in the order of declaration."""
    for key, field in section.model_fields.items():
        below = section_in(field.annotation)
        if typing.get_origin(field.annotation) is dict:
            continue
        if below is None:
            yield (*place, key)
        elif key != "sources":
            yield from value_places(below, (*place, key))


def _mentions(annotation: object, wanted: type) -> bool:
    parts = typing.get_args(annotation)
    return annotation is wanted or any(_mentions(part, wanted) for part in parts)
