"""The reference configuration: every key of the models, with its default and what it means."""

from __future__ import annotations

import textwrap
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from quotascope.metrics.connection_settings import variable

from .load import section_in, sections_in
from .model import Config
from .section import Section

_WIDTH = 100
_SHOWN = {("kafka",), ("sources",)}
"""Sections without a default that most configurations have."""
_HEAD = f"""\
The configuration of quotascope: every key, its default, and what it means.

A key after a # without a space has no default; its value is an example. ${{NAME}} in a value is
replaced by that environment variable ($${{ is a literal ${{). Environment variables also set values
outside of `sources`: {variable(("server", "port"))} sets server.port. Flags set the
most common ones. Flags override the environment, which overrides this file. A path that is not
absolute is relative to the folder in which quotascope is started.
`quotascope config check FILE` reports all errors in a file.
"""


def reference(root: type[Section] = Config, head: str = _HEAD) -> str:
    """Return a section with every key as YAML. Loading that of `Config` gives the defaults and one example source."""
    lines = [*_comment(head), "", *_section(root, ())]
    return "\n".join(lines).rstrip() + "\n"


def _section(section: type[Section], place: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a section: each key with its value, below its description; keys without a default after #."""
    for key, field in section.model_fields.items():
        yield from _comment(field.description or "")
        place_of_key, subsection = (*place, key), section_in(field.annotation)
        default = field.get_default(call_default_factory=True)
        # a key that is not active is commented out
        if subsection is not None:
            is_list = typing.get_origin(field.annotation) is tuple
            lines = [f"{key}:", *_nested(_section(subsection, place_of_key), as_item=is_list)]
            active = place_of_key in _SHOWN or isinstance(field.default, BaseModel)
        elif default is None or default == {}:
            lines, active = _yaml(key, field.examples), False
        else:
            examples = field.examples if default is PydanticUndefined else [default]
            lines, active = _yaml(key, examples), True
        yield from (line if active else f"#{line}" for line in lines)
        for alternative in [*sections_in(field.annotation)][1:]:
            yield from _commented_item(_nested(_section(alternative, place_of_key), as_item=True))
        if not place:
            yield ""


def _commented_item(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a list item whose keys are all commented out, with a dash before the first key."""
    is_first = True
    for line in lines:
        # a key is commented out with # alone, and a description begins with # and a blank
        if is_first and line.startswith("    #") and not line.startswith("    # "):
            is_first = False
            yield f"  #- {line.removeprefix('    #')}"
        else:
            yield line


def _yaml(key: str, values: list[Any] | None) -> list[str]:
    """Return the lines of a key with the first of some values, or with null if there are none."""
    value = (values or [None])[0]
    plain = value.value if isinstance(value, Enum) else value
    text = yaml.safe_dump({key: plain}, default_flow_style=False, width=_WIDTH)
    return text.splitlines()


def _nested(lines: Iterator[str], *, as_item: bool) -> Iterator[str]:
    """Yield lines one level deeper; those of a list item with a dash before the first key."""
    needs_dash = as_item
    for line in lines:
        marker = "  " if as_item else ""
        if needs_dash and not line.startswith("#"):  # a description stands before the first key, without a dash
            marker, needs_dash = "- ", False
        yield f"  {marker}{line}".rstrip()


def _comment(text: str) -> Iterator[str]:
    """Yield the lines of a comment, cut to the width of the file."""
    for paragraph in text.splitlines():
        lines = textwrap.wrap(paragraph, _WIDTH - 2, break_on_hyphens=False)
        yield from (f"# {line}".rstrip() for line in lines or [""])
