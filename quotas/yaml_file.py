"""YAML files that people wrote: safe to read, with line numbers, and with messages in terms of the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import Node

from quotascope.clients.reading import bounded, content_of

from .errors import InvalidQuotas

STDIN: Final = Path("-")
"""Path that stands for standard input."""


def named(path: Path) -> str:
    """Return the name of a file in messages."""
    return "standard input" if path == STDIN else str(path)


MOST_BYTES: Final = 16 << 20
"""Bound of a file of quotas, of which a rule has 60 bytes: PyYAML reads some 100 kB a second."""


def text_of(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """
    Return the text of a file, or of standard input for `-`.

    Raises as ``content_of`` does, and ``UnicodeDecodeError``.
    """
    content = bounded(sys.stdin.buffer, most_bytes) if path == STDIN else content_of(path, most_bytes)
    return content.decode("utf-8-sig")


def quoted(text: str) -> str:
    r"""
    Return a text in double quotes, on one line, with unprintable characters escaped: the same text in YAML 1.1 and 1.2.

    >>> print(quoted('a "b"\n'))
    "a \"b\"\n"
    """
    if text.isascii() and text.isprintable():
        return json.dumps(text)
    dumped: str = yaml.safe_dump(text, default_style='"', allow_unicode=text.isprintable(), width=float("inf"))
    return dumped.rstrip("\n")


@contextmanager
def refusing(refused: Callable[[str], Exception]) -> Iterator[None]:
    """Raise the exception that `refused` returns if the file that is read within the block is unreadable or no YAML."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start})"
    except yaml.MarkedYAMLError as error:
        problem = _syntax(error)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = f"is not valid YAML: {' '.join(str(error).split())}"
    else:
        return
    raise refused(problem) from None


def _syntax(error: yaml.MarkedYAMLError) -> str:
    """Return an error of YAML in words, with its line if it has one."""
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}: " if mark else ""
    return f"{where}not valid YAML: {error.problem or error.context}"


MOST_REPEATED: Final = 200_000
"""Bound of the values that the aliases of a document may stand for, together."""
_MOST_BITS: Final = 1_024
"""Bound of the bits of a whole number: no float is larger, and Python takes long to write more digits."""


class StrictLoader(yaml.SafeLoader):
    """
    PyYAML's safe loader, with bounds for hostile documents.

    A value that does not fit its tag (`!!int ""`, `!!timestamp x`) is an error of YAML, where PyYAML raises whatever
    Python makes of it. Aliases, of which a few lines can stand for any amount of memory, are counted by what they
    repeat; one that contains itself is refused.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._repeated = 0
        self._sizes: dict[int, int] = {}
        """Nodes below each node that is complete, itself included, aliases written out."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Compose a node as PyYAML does, and count it."""
        nodes_before = self._nodes
        is_alias = self.check_event(yaml.AliasEvent)
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        if is_alias:
            # a node without a size is not complete: the alias is within it
            self._repeat(self._sizes.get(id(node), MOST_REPEATED + 1), mark)
        else:
            self._nodes += 1
            self._sizes[id(node)] = self._nodes - nodes_before
        return node

    def construct_object(self, node: Node, deep: bool = False) -> object:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Return the value of a node."""
        try:
            value = super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            kind = node.tag.rpartition(":")[2]
            raise _refused(f"this is no {kind}", node.start_mark) from None
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise _refused("a number of too many digits", node.start_mark)
        return value

    def _repeat(self, nodes: int, mark: yaml.Mark) -> None:
        """Count the nodes that an alias stands for, and refuse it if all aliases stand for too many."""
        self._nodes += nodes
        self._repeated += nodes
        if self._repeated > MOST_REPEATED:
            raise _refused("this alias repeats too much, or what it is in", mark)


def _refused(problem: str, mark: yaml.Mark) -> ConstructorError:
    """Return an error of YAML about a place in the document."""
    return ConstructorError(None, None, problem, mark)


DEEPEST: Final = 20
"""Bound of nested levels; none of our files has as many."""

Value: TypeAlias = "object | tuple[Located, ...] | Mapping[str, Located]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A value of a YAML document, and its line."""

    value: Value
    """A mapping or tuple of further values, or the scalar that YAML reads: text, int, float, bool, None."""
    line: int
    """Line number, from 1."""
    text: str = ""
    """Scalar as written, without its quotes."""
    quoted: bool = False
    """True if a scalar is in quotes, or a block."""

    @property
    def mapping(self) -> Mapping[str, Located] | None:
        """The value, if it is a mapping."""
        return self.value if isinstance(self.value, dict) else None

    @property
    def items(self) -> tuple[Located, ...] | None:
        """The value, if it is a list."""
        return self.value if isinstance(self.value, tuple) else None


def load_file(path: Path) -> Located:
    """Return the document in a file, or on standard input for `-`. Raises `InvalidQuotas`."""
    subject = named(path)
    with refusing(lambda problem: InvalidQuotas(subject, [problem])):
        text = text_of(path)
    return load(text, subject)


def load(text: str, subject: str) -> Located:
    """
    Return the document in a text, an empty mapping if it is empty.

    Raises `InvalidQuotas`, which calls it `subject`.
    """
    with refusing(lambda problem: InvalidQuotas(subject, [problem])):
        loader = StrictLoader(text)
        node = loader.get_single_node()
        if node is None:
            return Located(value={}, line=1)
        reader = _Reader(loader)
        document = reader.located(node, 0)
    _check(reader, subject=subject)
    return document


def load_all(text: str, subject: str, levels: Callable[[Mapping[str, str]], int | None]) -> list[Located]:
    """
    Return the documents in a text that are not empty. Raises `InvalidQuotas`, which calls it `subject`.

    Args:
        text: a stream of YAML, or JSON.
        subject: what messages call it.
        levels: function of the keys of a document whose values are plain texts. It returns how many levels of the
            document to read, None for all; a value below them may be anything, and becomes None.

    """
    with refusing(lambda problem: InvalidQuotas(subject, [problem])):
        loader = StrictLoader(_spaced(text))
        documents: list[Located] = []
        readers: list[_Reader] = []
        while loader.check_node():
            node = loader.get_node()
            if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
                continue
            readers.append(_Reader(loader, levels(_plain(node))))
            documents.append(readers[-1].located(node, 0))
    _check(*readers, subject=subject)
    return documents


def _spaced(text: str) -> str:
    """Replace tabs by blanks in JSON, which may be indented by them, unlike YAML; JSON has no other plain tabs."""
    if "\t" in text and text.lstrip().startswith(("{", "[")):
        try:
            json.loads(text)
        except ValueError:
            return text
        return text.replace("\t", " ")
    return text


def line_of(node: yaml.Node) -> int:
    """Return the line of a node, from 1."""
    return int(node.start_mark.line) + 1


def repeated_keys(node: yaml.MappingNode) -> Iterator[tuple[int, str]]:
    """Yield line and text of each key that a mapping has twice; a key may stand for one that is merged by <<."""
    first_lines: dict[str, int] = {}
    for key_node, _ in node.value:
        key, line = str(key_node.value), line_of(key_node)
        if key in first_lines:
            yield line, f"the key {key[:60]!r} is there already in line {first_lines[key]}"
        first_lines.setdefault(key, line)


def _plain(node: yaml.Node) -> Mapping[str, str]:
    """Return the keys of a mapping whose values are plain texts, with these; none for any other node."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    pairs = ((key.value, value.value) for key, value in node.value if isinstance(value, yaml.ScalarNode))
    return {str(key): str(value) for key, value in pairs}


class _Reader:
    """
    Reader that turns each node into its value once, however often aliases repeat it.

    A node below the given number of levels is None.
    """

    def __init__(self, loader: yaml.SafeLoader, levels: int | None = None) -> None:
        self._loader = loader
        self._levels = levels
        self.problems: list[tuple[int, str]] = []
        """Line and text of each key that is there twice."""
        self._done: dict[int, Located] = {}

    def located(self, node: yaml.Node, depth: int) -> Located:
        """Return the value of a node that is `depth` levels below the document. Raises `ValueError` if too deep."""
        if self._levels is not None and depth > self._levels:
            return Located(value=None, line=line_of(node))
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels")
        if id(node) not in self._done:
            self._done[id(node)] = self._read(node, depth)
        return self._done[id(node)]

    def _read(self, node: yaml.Node, depth: int) -> Located:
        """Return the value of a node that was not read before."""
        line = line_of(node)
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

    def _pairs(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[str, Located]]:
        """Yield the keys and values of a mapping, merged ones (`<<`) included, and record keys that are there twice."""
        self.problems += repeated_keys(node)
        self._loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            yield str(key_node.value), self.located(value_node, depth + 1)


def _check(*readers: _Reader, subject: str) -> None:
    """Raise `InvalidQuotas` with all keys that are there twice."""
    problems = sorted(problem for reader in readers for problem in reader.problems)
    if problems:
        raise InvalidQuotas(subject, [f"line {line}: {text}" for line, text in problems])
