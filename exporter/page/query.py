"""The query parameters of the page and of its JSON: what is wanted, and which part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import urlencode

from quotascope.metrics import QuotaType

from ..diagnosis.selection import Order, Selection, Show
from ..errors import InvalidQuery
from ..untrusted import shown

SIZE: Final = 50
MOST: Final = 500
"""Entities of one page or answer, if nothing is said, and at most."""
_FARTHEST: Final = 10_000_000
_LONGEST: Final = 200
"""Characters of a text to look for, and of the id of a node."""
_YES_OR_NO: Final = {"": False, "0": False, "false": False, "1": True, "true": True}
_TYPES: Final = {each.label: each for each in QuotaType}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What somebody asked for."""

    selection: Selection = field(default_factory=Selection)
    offset: int = 0
    """How many entities come before the first that is shown."""
    size: int = SIZE
    """How many are shown at most."""


def read_query(given: Mapping[str, str]) -> Query:
    """
    The query of an address; parameters that are not known mean nothing.

    Raises:
        InvalidQuery: a value is none of those that there are.

    """
    selection = Selection(
        order=_one_of(given, "sort", Order, Order.USED),
        backwards=_flag(given, "reverse"),
        show=_one_of(given, "show", Show, Show.LIMITED),
        quota_type=_quota_type(given),
        text=_text(given, "q"),
        broker=_text(given, "broker"),
    )
    offset = _number(given, "offset", 0, 0, _FARTHEST)
    return Query(
        selection=selection, offset=offset, size=_number(given, "size", SIZE, 1, MOST)
    )


def address_of(query: Query) -> str:
    """The query as the part of an address from `?` on, without what is so anyway; `?` when all is."""
    return "?" + urlencode(list(parameters(query)))


def parameters(query: Query) -> Iterator[tuple[str, str]]:
    """The parameters that differ from what is so without any."""
    wanted = query.selection
    said = (
        ("sort", wanted.order.value, Order.USED.value),
        ("reverse", "1" if wanted.backwards else "", ""),
        ("show", wanted.show.value, Show.LIMITED.value),
        ("type", wanted.quota_type.label if wanted.quota_type else "", ""),
        ("q", wanted.text, ""),
        ("broker", wanted.broker, ""),
        ("offset", str(query.offset), "0"),
        ("size", str(query.size), str(SIZE)),
    )
    yield from ((name, value) for name, value, usual in said if value != usual)


_Value = TypeVar("_Value", bound=StrEnum)


def _one_of(
    given: Mapping[str, str], name: str, values: type[_Value], usual: _Value
) -> _Value:
    text = given.get(name, "")
    if not text:
        return usual
    try:
        return values(text)
    except ValueError:
        raise _wrong(name, text, f"one of {', '.join(values)}") from None


def _quota_type(given: Mapping[str, str]) -> QuotaType | None:
    text = given.get("type", "")
    if text and text not in _TYPES:
        raise _wrong("type", text, f"one of {', '.join(_TYPES)}")
    return _TYPES.get(text)


def _flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "")
    if text not in _YES_OR_NO:
        raise _wrong(name, text, "1 or 0")
    return _YES_OR_NO[text]


def _number(
    given: Mapping[str, str], name: str, usual: int, least: int, most: int
) -> int:
    text = given.get(name, "")
    if not text:
        return usual
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1  # noqa: PLR2004 - no number of a thousand digits is read
    if not least <= number <= most:
        raise _wrong(name, text, f"a whole number from {least} to {most}")
    return number


def _text(given: Mapping[str, str], name: str) -> str:
    """Without what cannot be printed, and so not be seen in the form either."""
    return "".join(filter(str.isprintable, given.get(name, "")[:_LONGEST]))


def _wrong(name: str, value: str, wanted: str) -> InvalidQuery:
    return InvalidQuery(f"{name}={shown(value)} is not known: it has to be {wanted}")
