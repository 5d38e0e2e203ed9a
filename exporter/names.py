"""
The names under which users and client-ids are known: long ones are known by their beginning with a digest.

A client chooses its client-id, of up to 32 kB, and each name stands in a dozen series of each node: what is shown of it
is bounded, and two names stay two. The same everywhere: in metrics, page, API, pushes, logs, episodes, rules and
shadows.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

from quotascope.metrics.kafka.entities import Name, QuotaEntity, QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable
from quotascope.metrics.kafka.sanitizer import desanitize, sanitize

LONGEST_BYTES: Final = 256
"""Longest name, in bytes of UTF-8, that is shown as it is."""
_MARK: Final = "…sha256:"
_DIGITS: Final = 32
_CUT: Final = re.compile(rf".*{_MARK}[0-9a-f]{{{_DIGITS}}}", re.DOTALL)
_HEAD_BYTES: Final = LONGEST_BYTES - len(_MARK.encode()) - _DIGITS
_HINT: Final = "sha256"
"""A part of the mark that stays as it is however a name is escaped."""
MOST_REMEMBERED_BYTES: Final = 16 << 20
"""Bytes of real names that are remembered after they were cut: 500 of the longest."""
_USER: Final = "user"
"""The property of a bean that is percent-encoded."""


def is_cut(name: str) -> bool:
    """Return whether a name has the form of one that was cut: no name is shown in that form as it is."""
    return _HINT in name and _CUT.fullmatch(name) is not None


def known_as(name: str) -> str:
    """
    Return the name under which a user or client-id of a broker is known.

    Call it once for a name: a name that looks like a cut one gets yet another form.
    """
    if len(name) <= LONGEST_BYTES // 4 and _HINT not in name:
        return name
    encoded = name.encode(errors="replace")
    if len(encoded) <= LONGEST_BYTES and not is_cut(name):
        return name
    head = encoded[:_HEAD_BYTES].decode(errors="ignore")
    cut_name = f"{head}{_MARK}{sha256(encoded).hexdigest()[:_DIGITS]}"
    _REMEMBERED.add(cut_name, encoded)
    return cut_name


class _RealNames:
    """The real names of the latest cut names, for patterns, as far as they fit into ``MOST_REMEMBERED_BYTES``."""

    def __init__(self) -> None:
        self._names = OrderedDict[str, bytes]()
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, known_name: str, name: bytes) -> None:
        """Remember the real name of a cut one; if there is no room, forget the names that were added longest ago."""
        with self._lock:
            self._bytes += len(name) - len(self._names.pop(known_name, b""))
            self._names[known_name] = name
            while self._bytes > MOST_REMEMBERED_BYTES:
                _, oldest = self._names.popitem(last=False)
                self._bytes -= len(oldest)

    def get(self, known_name: str) -> str | None:
        """Return the real name of a cut one; None if it is not remembered."""
        with self._lock:
            name = self._names.get(known_name)
        return None if name is None else name.decode()


_REMEMBERED: Final = _RealNames()


def real_name(known_name: str) -> str | None:
    """
    Return a client's real name, given the name under which it is known.

    Return None for a long name that is no longer remembered.
    """
    return _REMEMBERED.get(known_name) if is_cut(known_name) else known_name


def asked_as(name: str) -> str:
    """Return the name under which an entity is known, given either its real name or the name that is shown."""
    return name if is_cut(name) else known_as(name)


def contains(name: str, folded_text: str) -> bool:
    """
    Return whether a name contains this text, ignoring case (``str.casefold``), as far as the name is known.

    In a name that was cut, the text may reach beyond the part that is shown.
    """
    folded = name.casefold()
    if folded_text in folded:
        return True
    return is_cut(name) and folded_text.startswith(folded[: folded.rindex(_MARK)])


def property_known_as(key: str, value: str) -> str:
    """Return the value of a bean's key property, cut if it is long; ``user`` stays percent-encoded as in Kafka."""
    return value if is_plain(value) else _long_property(key, value)


def is_plain(text: str) -> bool:
    """Return whether a text is ASCII, and it and each part of it are certainly known unchanged."""
    return text.isascii() and len(text) <= LONGEST_BYTES and _HINT not in text


@lru_cache(maxsize=64)  # the attributes of a bean come one after the other
def _long_property(key: str, value: str) -> str:
    """Return the value of a key property that may have to be cut; it counts as it is before it is percent-encoded."""
    if key != _USER:
        return known_as(value)
    try:
        user = desanitize(value)
    except MalformedName:
        return known_as(value)
    short_name = known_as(user)
    return value if short_name == user else sanitize(short_name)


def known_rules(tables: Mapping[QuotaType, RuleTable]) -> Mapping[QuotaType, RuleTable]:
    """Return the rules of each type under the known names of their entities, given real names or known ones."""
    return {kind: _known_table(table) for kind, table in tables.items()}


def _known_table(table: RuleTable) -> RuleTable:
    """Return the rules under known names; the same table if all names are."""
    entities = {entity: known_entity(entity, asked_as) for entity in table}
    if all(entity == renamed for entity, renamed in entities.items()):
        return table
    rules = QuotaRules()
    for entity, bound in table.items():
        rules.set(entities[entity], bound)
    return rules


def known_entity(entity: QuotaEntity, rename: Callable[[str], str] = known_as) -> QuotaEntity:
    """Return a rule's entity under its known names."""

    def part(name: Name | None) -> Name | None:
        return rename(name) if isinstance(name, str) else name

    return QuotaEntity(part(entity.user), part(entity.client_id))
