r"""
Regular expressions, as Java and Python read them, for the names that jmx_exporter gives to attributes.

It writes ``domain<type=Produce, user=alice, client-id="a,b"><>byte-rate: 12.5``. Key properties come in the order in
which the broker wrote them, their values as they are: what ``ObjectName.quote`` quoted stays quoted. In quotes, a
backslash stands before ``"``, ``\``, ``*``, ``?`` and the n of a line end.

No dot, which in Java stops at six kinds of line ends; no repetition that backtracks, which in Java overflows the stack
for a client id of some thousand characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final

from .naming import Name

_QUOTED: Final = r'"(?:[^"\\]|\\["\\*?n])*+"'
_PLAIN: Final = r'[^",=:*?<>]*+'
_VALUE: Final = rf'(?:"([^"\\]*+)"|({_QUOTED}|{_PLAIN}))'
"""Two groups, one of which takes part: a value quoted for the sake of harmless characters comes without its quotes."""
_TAG: Final = rf'[^",=:*?<>]++=(?:{_QUOTED}|{_PLAIN})'
_GROUPS_OF_VALUE: Final = 2


def pattern_of(name: Name) -> tuple[str, dict[str, str]]:
    """The pattern of an attribute of all its beans, and by label the groups whose texts together are its value."""
    attribute = name.attribute
    fixed = [f", {key}={_literal(value)}" for key, value in attribute.fixed.items()]
    head = f"^{_literal(attribute.domain)}<type={_literal(attribute.type)}"
    tail = f"><>{_literal(attribute.name)}: "
    if attribute.open:
        return f"{head}, ({_TAG}(?:, {_TAG})*+){tail}", {}
    # Kafka writes the name next to the type, and promises no order of what follows
    head += "".join(fixed[:1])
    orders = list(_orders(name, fixed[1:]))
    middle = "|".join(text for text, _ in orders)
    if len(orders) > 1:
        middle = f"(?:{middle})"
    return head + middle + tail, _groups(orders)


def _orders(name: Name, fixed: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Properties in every order, and the labels of those with a value to find."""
    free = {f", {key}={_VALUE}": label for label, key in name.properties.items()}
    for order in permutations([*fixed, *free]):
        text = "".join(order if name.attribute.required else map(_optional, order))
        yield text, [free[part] for part in order if part in free]


def _optional(part: str) -> str:
    # not possessive: Java would keep the group of an order that failed later on
    return f"(?:{part})?"


def _groups(orders: Sequence[tuple[str, list[str]]]) -> dict[str, str]:
    """By label the groups that may hold its value, in the notation of a replacement."""
    found: dict[str, str] = {}
    group = 0
    for _, labels in orders:
        for label in labels:
            for _ in range(_GROUPS_OF_VALUE):
                group += 1
                found[label] = f"{found.get(label, '')}${group}"
    return found


def _literal(text: str) -> str:
    # re.escape would put backslashes before hyphens
    return re.sub(r"([.\\*+?^${}()|\[\]])", r"\\\1", text)
