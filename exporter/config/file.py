"""The configuration file: YAML with its line numbers kept, and ``${NAME}`` filled in from the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from quotascope.quotas import StrictLoader, named, refusing, text_of
from quotascope.quotas.yaml_file import DEEPEST, line_of, repeated_keys

from ..errors import ConfigError

Place = tuple[str | int, ...]
"""The path to a value: keys and list indices from the top."""

_MOST_BYTES = 1 << 20
"""Longer than any configuration; PyYAML needs ten seconds for it."""
_HALF = re.compile("[\ud800-\udfff]")
"""A surrogate without its pair, which no encoding can write."""
_VARIABLE = re.compile(r"\$(\$\{|\{(\w+)\})", re.ASCII)


@dataclass(slots=True, kw_only=True)
class ConfigDocument:
    """The content of a configuration file, and where it stands."""

    data: dict[str, object] = field(default_factory=dict)
    lines: dict[Place, int] = field(default_factory=dict)
    """The line of each key and list item."""
    raw: dict[Place, str] = field(default_factory=dict)
    """Texts as written wherever ``${NAME}`` was filled in; safe to show."""
    problems: list[tuple[int, str]] = field(default_factory=list)
    """Faults of its form: line and text. The values are usable all the same."""
    broken: set[Place] = field(default_factory=set)
    """Places that have no value because of a problem."""


def read_document(path: Path, environ: Mapping[str, str] | None) -> ConfigDocument:
    """Read a configuration file, or standard input for ``-``. Raises ``ConfigError`` when it cannot be read at all."""
    subject = named(path)
    with refusing(lambda problem: ConfigError(subject, [problem])):
        text = text_of(path, _MOST_BYTES)
    return parse_document(text, subject, environ)


def parse_document(text: str, subject: str, environ: Mapping[str, str] | None) -> ConfigDocument:
    """
    Parse the text of a configuration file; without ``environ``, ``${NAME}`` stands for itself.

    Raises ``ConfigError`` about ``subject`` when the text is not YAML or not a mapping; smaller problems are in the
    document.
    """
    document = ConfigDocument()
    with refusing(lambda problem: ConfigError(subject, [problem])):
        loader = StrictLoader(text)
        node = loader.get_single_node()
        data = None if node is None else _YamlReader(loader, environ, document).value(node, ())
    if data is None:
        return ConfigDocument()
    if not isinstance(data, dict):
        problem = "line 1: expected keys and values, such as `key: value`"
        raise ConfigError(subject, [problem])
    document.data = data
    return document


class _YamlReader:
    """Turns YAML nodes into values, noting lines and problems in the document."""

    def __init__(self, loader: yaml.SafeLoader, environ: Mapping[str, str] | None, document: ConfigDocument) -> None:
        self._loader = loader
        self._environ = environ
        self._document = document

    def value(self, node: yaml.Node, place: Place) -> object:
        """Return the value of a node."""
        self._document.lines.setdefault(place, line_of(node))
        if len(place) > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels")
        if isinstance(node, yaml.MappingNode):
            return dict(self._items(node, place))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        scalar = self._loader.construct_object(node)
        if not isinstance(scalar, str):
            return scalar
        if _HALF.search(scalar):
            text = (
                f"{place[-1]} contains an incomplete Unicode character" if place else "an incomplete Unicode character"
            )
            self._document.problems.append((self._document.lines[place], text))
            self._document.broken.add(place)
            return ""
        return self._filled(scalar, place)

    def _items(self, node: yaml.MappingNode, place: Place) -> Iterator[tuple[str, object]]:
        """Yield the keys and values of a mapping, and note the lines of the keys."""
        self._document.problems += repeated_keys(node)
        self._loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = str(key_node.value)
            self._document.lines[(*place, key)] = line_of(key_node)
            yield key, self.value(value_node, (*place, key))

    def _filled(self, text: str, place: Place) -> str:
        """Return a text with variables of the environment in place of ``${NAME}``, and ``${`` in place of ``$${``."""
        environ = self._environ
        if environ is None:
            return text

        def fill(match: re.Match[str]) -> str:
            name = match[2]
            if name is None:  # the text is $${
                return "${"
            if name not in environ:
                text = f"the environment has no variable {name}"
                self._document.problems.append((self._document.lines[place], text))
                self._document.broken.add(place)
            return environ.get(name, "")

        filled = _VARIABLE.sub(fill, text)
        if filled != text:
            self._document.raw[place] = text
        return filled
