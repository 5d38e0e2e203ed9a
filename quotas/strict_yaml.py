"""YAML from untrusted files: reading it raises only ``YAMLError``, and takes time and memory by its length."""

from __future__ import annotations

from typing import Final

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import Node

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
