"""YAML that people can read: expressions keep their lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_WIDTH = 100_000  # no line is broken but where the expression breaks it


class _Dumper(yaml.SafeDumper):
    """Writes several lines as a block."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def yaml_text(note: str, document: Mapping[str, Any]) -> str:
    """The document with a comment in front, in the order of its keys."""
    text = yaml.dump(
        dict(document),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
    )
    return f"# {note}\n{text}"
