"""YAML files that people wrote: safe to read, with line numbers, and with messages in terms of the file."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import Node

from .errors import InvalidQuotas

STDIN: Final = Path("-")
"""Stands for standard input."""


def named(path: Path) -> str:
    """How messages call a file."""
    return "standard input" if path == STDIN else str(path)


MOST_BYTES: Final = 16 << 20
"""Of a file of quotas, of which a rule has 60 bytes: PyYAML reads some 100 kB a second."""


def text_of(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """The text of a file, or of standard input for `-`. Raises ``OSError``, also for one that is longer, and ``UnicodeDecodeError``."""
    with nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        problem = f"it is larger than {most_bytes >> 20} MiB, the largest that is read"
        raise OSError(errno.EFBIG, problem)
    return data.decode("utf-8-sig")


@contextmanager
def refusing(refused: Callable[[str], Exception]) -> Iterator[None]:
    """Raise what is made of the problem when the file that is read within the block cannot be, or its YAML is none."""
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
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}: " if mark else ""
    return f"{where}not valid YAML: {error.problem or error.context}"


MOST_REPEATED: Final = 200_000
"""Values that the aliases of a document may stand for, together."""
_MOST_BITS: Final = 1_024
"""Of a whole number: beyond, no float is as large, and Python does not write it in decimal for ever."""


class StrictLoader(yaml.SafeLoader):
    """
    PyYAML's safe loader without its holes.

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
        """PyYAML's, and count."""
        before = self._nodes
        is_alias = self.check_event(yaml.AliasEvent)
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        if is_alias:
            self._repeat(self._sizes.get(id(node), MOST_REPEATED + 1), mark)
        else:
            self._nodes += 1
            self._sizes[id(node)] = self._nodes - before
        return node

    def construct_object(self, node: Node, deep: bool = False) -> object:  # noqa: FBT001, FBT002 - PyYAML's signature
        """The value of a node."""
        try:
            value = super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            kind = node.tag.rpartition(":")[2]
            raise _refused(f"this is no {kind}", node.start_mark) from None
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise _refused("a number of too many digits", node.start_mark)
        return value

    def _repeat(self, nodes: int, mark: yaml.Mark) -> None:
        self._nodes += nodes
        self._repeated += nodes
        if self._repeated > MOST_REPEATED:
            raise _refused("this alias repeats too much, or what it is in", mark)


def _refused(problem: str, mark: yaml.Mark) -> ConstructorError:
    return ConstructorError(None, None, problem, mark)


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

    def _pairs(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[str, Located]]:
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
