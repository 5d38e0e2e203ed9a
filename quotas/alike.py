"""
Names that differ and may be meant to be the same.

Kafka compares whole names, so that a rule for `User:erin` is not for `erin`.

One name of a user or client-id is written in many ways: with the type of its principal, in quotes, percent-encoded as
Kafka's metrics and ZooKeeper have it, as a distinguished name in another order, as a Kerberos principal. `Names` finds
the names that differ from a given one in nothing else, `oddities` what is odd about a name by itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from .quota_set import USER

PRINCIPAL_TYPE: Final = "User:"
"""Beginning of the string form of a principal (`KafkaPrincipal.toString`)."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]*")
"""Names that have only one spelling, but for their case."""
_TYPE: Final = re.compile(r"\s*user\s*:\s*", re.IGNORECASE)
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_QUOTES: Final = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "\u2018": "\u2019", "«": "»"}
_JMX_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_BLANKS: Final = re.compile(r"\s+")
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Characters that are invisible, though Unicode counts them as letters, marks or symbols."""
_KERBEROS: Final = re.compile(r"([^/@\s]+)(?:/([^/@\s]+))?@([^/@\s]+)")
_ATTRIBUTE: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9.-]*|[0-9]+(?:\.[0-9]+)+)\s*=")
_ROUNDS: Final = 8
"""Number of nested forms that are taken off, such as a percent-encoded name in quotes behind a type."""
_MOST_SIMILAR: Final = 8


@dataclass(frozen=True, slots=True)
class _Compound:
    """A name that consists of others: a distinguished name, or a principal of Kerberos."""

    kind: str
    core: str
    """Common name or primary, folded; empty where there is none."""
    parts: tuple[tuple[str, str], ...]
    """All parts of the name by kind, folded and sorted."""

    def includes(self, other: _Compound) -> bool:
        """Return whether the other name has the same parts and more follow in this one."""
        return self.kind == other.kind and self.core == other.core and {*other.parts} < {*self.parts}


def _without_type(name: str) -> str:
    """Return a name without the type of its principal."""
    return _TYPE.sub("", name, count=1) if _TYPE.match(name) else name


def _unquoted(name: str) -> str:
    """Return a name without quotes around it, and without the escapes of JMX in them."""
    text = name.strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        return _JMX_ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], text[1:-1])
    return name


def _decoded(name: str) -> str:
    """Return a percent-encoded name decoded; the name itself if it is not one."""
    if not _ENCODED.search(name):
        return name
    try:
        return unquote_to_bytes(name).decode()
    except UnicodeError:
        return name


def _visible(name: str) -> str:
    """Return the name in one form of Unicode (NFKC), without invisible characters, and with one blank for several."""
    spaced = _BLANKS.sub(" ", unicodedata.normalize("NFKC", name))
    return _BLANKS.sub(" ", "".join(char for char in spaced if not _is_invisible(char))).strip()


def _is_invisible(char: str) -> bool:
    """Return whether a character is invisible: a filler, or one of Unicode's formats (Cf) and controls (Cc)."""
    return char in _FILLERS or unicodedata.category(char) in {"Cf", "Cc"}


def _folded(name: str) -> str:
    """Return a name in one case and one form of Unicode."""
    return unicodedata.normalize("NFKC", name.casefold())


def _ordered(name: str) -> str:
    """Return a distinguished name with its attributes sorted."""
    compound = _compound(name)
    if compound is None or compound.kind != "DN":
        return name
    return "\0".join(("DN", *(f"{kind}={value}" for kind, value in compound.parts)))


_FORMS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    (f"the type of the principal ({PRINCIPAL_TYPE})", _without_type),
    ("quotes", _unquoted),
    ("blanks, invisible characters or the form of Unicode", _visible),
    ("percent-encoding", _decoded),
)
"""
Forms in which a name can be wrapped, in words, and the function that takes each off; an invisible character within
`%25` comes off before it is decoded.
"""
_TYPED, _REST = _FORMS[:1], _FORMS[1:]
_CASE: Final = "upper and lower case"


def _forms(kind: str) -> tuple[tuple[str, Callable[[str], str]], ...]:
    """Return the forms of a kind of name: a client-id has no principal."""
    return _FORMS if kind == USER else _REST


def bare(name: str, kind: str) -> str:
    """
    Return a name without the type of its principal, quotes, percent-encoding, and invisible characters.

    >>> bare('"User:svc%3Ateam%20a"', "user"), bare(" app\u200b", "client-id")
    ('svc:team a', 'app')
    """
    for _ in range(_ROUNDS):
        previous = name
        for _, without in _forms(kind):
            # a form that leaves nothing is not taken off, unless the name has only invisible characters
            name = without(name) or (name if without is not _visible else "")
        if name == previous:
            break
    return name


def _canonical(name: str, kind: str) -> str:
    """Return the form that names share when they may be meant to be the same."""
    if _PLAIN.fullmatch(name):
        return name.lower()
    folded = _folded(bare(name, kind))
    return _ordered(folded) if kind == USER else folded


def oddities(name: str, kind: str) -> list[str]:
    r"""
    Return what is unusual about a name, in words: hardly any client has such a name.

    >>> oddities("User:erin", "user"), oddities("erin", "user")
    (['begins with User:, where Kafka compares with the name alone'], [])
    >>> oddities("svc%3Aa\u00a0", "client-id")
    ['is percent-encoded', 'has blanks at its ends or invisible characters']
    """
    findings = []
    if kind == USER and name.startswith(PRINCIPAL_TYPE):
        findings.append(f"begins with {PRINCIPAL_TYPE}, where Kafka compares with the name alone")
    if _unquoted(name) != name:
        findings.append("is in quotes")
    if _decoded(name) != name:
        findings.append("is percent-encoded")
    if name != name.strip() or any(_is_invisible(char) or (char != " " and char.isspace()) for char in name):
        findings.append("has blanks at its ends or invisible characters")
    elif unicodedata.normalize("NFC", name) != name:
        findings.append("has marks that are characters of their own (Unicode NFD)")
    return findings


def differences(name: str, other: str, kind: str) -> list[str]:
    """
    Return the differences between two names that may be meant to be the same, in words.

    Forms are taken off both names, one after the other, as long as the names differ. Then the remaining difference is
    in their case, or in the parts of compound names.
    """
    findings: dict[str, None] = {}
    # twice, as a form may be within another one
    for words, without in _forms(kind) * 2:
        if name == other:
            return [*findings]
        previous = name, other
        name, other = without(name), without(other)
        if previous != (name, other):
            findings[words] = None
    if _ordered(name) != _ordered(other):
        compounds = [(text, _compound(text)) for text in (name, other)]
        # the names are alike, so different cores differ in case only
        cores = {text if compound is None else compound.core for text, compound in compounds}
        if _folded(name) == _folded(other) or len(cores) > 1:
            findings[_CASE] = None
    name, other = _folded(name), _folded(other)
    if name != other:
        compound = _compound(name) or _compound(other)
        if compound is not None and compound.kind == "Kerberos":
            findings["the host and realm of Kerberos"] = None
        elif _ordered(name) != _ordered(other):
            findings["other parts of the distinguished name"] = None
        else:
            findings["the order or spacing of a distinguished name"] = None
    return [*findings]


class Names(Collection[str]):
    """
    Names of users or of client-ids, indexed by their bare form.

    Args:
        names: each once or several times.
        kind: `user` or `client-id`.

    """

    def __init__(self, names: Iterable[str], kind: str) -> None:
        self._kind = kind
        self._names = dict.fromkeys(names)
        self._by_canonical: dict[str, list[str]] = defaultdict(list)
        self._by_core: dict[str, list[tuple[str, _Compound]]] = defaultdict(list)
        for name in self._names:
            self._by_canonical[_canonical(name, kind)].append(name)
            compound = self._compound(name)
            if compound is not None and compound.core:
                self._by_core[compound.core].append((name, compound))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def similar(self, name: str) -> list[str]:
        """
        Return the names that another one may stand for: those that differ in form only.

        Where there is none, those of which it is a part or that are a part of it.

        >>> names = Names(["erin", "O=a, CN=bob", "eve@CORP"], "user")
        >>> names.similar("User:Erin"), names.similar("cn=bob,o=A"), names.similar("bob"), names.similar("eve/h1@CORP")
        (['erin'], ['O=a, CN=bob'], ['O=a, CN=bob'], ['eve@CORP'])
        """
        canonical = _canonical(name, self._kind)
        alike = [candidate for candidate in self._by_canonical.get(canonical, ()) if candidate != name]
        if not alike:
            compound = self._compound(name)
            if compound is None:
                alike = [candidate for candidate, _ in self._by_core.get(canonical, ())]
            elif compound.core:
                alike = [candidate for candidate in self._by_canonical.get(compound.core, ()) if candidate != name]
                alike += [
                    candidate
                    for candidate, candidate_parts in self._by_core.get(compound.core, ())
                    if compound.includes(candidate_parts) or candidate_parts.includes(compound)
                ]
        return sorted(alike)[:_MOST_SIMILAR]

    def _compound(self, name: str) -> _Compound | None:
        """Return the parts of a user's distinguished name or principal of Kerberos; None for any other name."""
        if self._kind != USER or _PLAIN.fullmatch(name):
            return None
        return _compound(_folded(bare(name, self._kind)))


def _compound(name: str) -> _Compound | None:
    """Return the parts of a folded distinguished name or principal of Kerberos; None for any other name."""
    principal = _KERBEROS.fullmatch(name)
    if principal is not None and "=" not in name:
        kinds = zip(("primary", "host", "realm"), principal.groups(), strict=True)
        named = tuple((kind, part) for kind, part in kinds if part is not None)
        return _Compound("Kerberos", principal[1], named)
    slashes = name.startswith("/")  # as OpenSSL writes it
    if not _ATTRIBUTE.match(name[1:] if slashes else name):
        return None
    parts: list[tuple[str, str]] = []
    for text in _split(name[1:], "/") if slashes else _split(name, ",;"):
        attribute = _ATTRIBUTE.match(text)
        if attribute is None:
            return None
        value = _visible(_unquoted(_JMX_ESCAPE.sub(r"\1", text[attribute.end() :])))
        parts.append((attribute[1].casefold(), value))
    common = [value for kind, value in parts if kind == "cn"]
    return _Compound("DN", common[0] if len(common) == 1 else "", tuple(sorted(parts)))


def _split(name: str, separators: str) -> list[str]:
    """
    Split a distinguished name into its attributes (RFC 4514).

    Separators that are escaped or in quotes separate nothing.
    """
    parts, start, is_quoted, is_escaped = [], 0, False, False
    for position, char in enumerate(name):
        if is_escaped:
            is_escaped = False
        elif char == "\\":
            is_escaped = True
        elif char == '"':
            is_quoted = not is_quoted
        elif char in separators and not is_quoted:
            parts.append(name[start:position])
            start = position + 1
    return [*parts, name[start:]]
