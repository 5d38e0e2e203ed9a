"""YAML with its line numbers kept, so that messages can name the line of a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from .errors import InvalidQuotas
from .strict_yaml import StrictLoader
from .yaml_file import named, refusing, text_of

_DEEPEST = 20
"""More levels than any of our files has."""

Value: TypeAlias = "object | tuple[Located, ...] | Mapping[str, Located]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A value of a YAML document, and where it stands."""

    value: Value
    """A mapping or tuple of further ones, or what YAML makes of a scalar: text, int, float, bool, None."""
    line: int
    """From 1."""
    text: str = ""
    """A scalar as written, without its quotes."""
    quoted: bool = False
    """Whether a scalar is in quotes, or a block."""

    @property
    def mapping(self) -> Mapping[str, Located] | None:
        """The value, if it is a mapping."""
        return self.value if isinstance(self.value, dict) else None

    @property
    def items(self) -> tuple[Located, ...] | None:
        """The value, if it is a list."""
        return self.value if isinstance(self.value, tuple) else None


def load_file(path: Path) -> Located:
    """The document in a file, or on standard input for `-`. Raises `InvalidQuotas`."""
    subject = named(path)
    with refusing(lambda problem: InvalidQuotas(subject, [problem])):
        text = text_of(path)
    return load(text, subject)


def load(text: str, subject: str) -> Located:
    """The document in a text, an empty mapping if it is empty. Raises `InvalidQuotas`, which calls it `subject`."""
    with refusing(lambda problem: InvalidQuotas(subject, [problem])):
        loader = StrictLoader(text)
        node = loader.get_single_node()
        if node is None:
            return Located(value={}, line=1)
        return _Reader(loader, subject).located(node, 0)


class _Reader:
    """Turns each node into its value once, however often aliases repeat it."""

    def __init__(self, loader: yaml.SafeLoader, subject: str) -> None:
        self._loader = loader
        self._subject = subject
        self._done: dict[int, Located] = {}

    def located(self, node: yaml.Node, depth: int) -> Located:
        if depth > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} levels")
        if id(node) not in self._done:
            self._done[id(node)] = self._read(node, depth)
        return self._done[id(node)]

    def _read(self, node: yaml.Node, depth: int) -> Located:
        line = int(node.start_mark.line) + 1
        if isinstance(node, yaml.MappingNode):
            return Located(value=dict(self._pairs(node, depth)), line=line)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.located(item, depth + 1) for item in node.value)
            return Located(value=items, line=line)
        return Located(
            value=self._loader.construct_object(node),
            line=line,
            text=str(node.value),
            quoted=isinstance(node, yaml.ScalarNode) and node.style is not None,
        )

    def _pairs(
        self, node: yaml.MappingNode, depth: int
    ) -> Iterator[tuple[str, Located]]:
        self._loader.flatten_mapping(node)
        seen: set[str] = set()
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in seen:
                line = int(key_node.start_mark.line) + 1
                problem = f"line {line}: the key {key[:60]!r} is there twice"
                raise InvalidQuotas(self._subject, [problem])
            seen.add(key)
            yield key, self.located(value_node, depth + 1)
