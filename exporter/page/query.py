"""The query parameters of the page and of its JSON, and the entities that a query finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import Final, TypeVar
from urllib.parse import urlencode

from quotascope.metrics import QuotaType

from ..diagnosis.selection import Order, Selection, Show, in_order, matching
from ..diagnosis.trails import Trails
from ..diagnosis.units import limits_unknown
from ..errors import InvalidQuery
from ..snapshot import EntityUsage, Snapshot
from ..untrusted import shown
from .owners import Owners, readable

SIZE: Final = 50
MOST: Final = 500
"""Rows of one page or answer, by default and at most."""
FARTHEST: Final = 10_000_000
"""The greatest offset."""
_ORDERS: Final = {each.value: each for each in Order}
_SHOWS: Final = {each.value: each for each in Show}
_TYPES: Final[Mapping[str, QuotaType | None]] = {each.label: each for each in QuotaType}
_FLAGS: Final = {"0": False, "false": False, "1": True, "true": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartQuery:
    """Which part is wanted of all that a query finds."""

    offset: int = 0
    """How many rows come before the first that is shown."""
    size: int = SIZE
    """How many are shown at most."""

    def given(self) -> Iterable[tuple[str, str | None, str | None]]:
        """The parameters beside those of the part, each with its value and its default."""
        return ()

    def parameters(self) -> Iterator[tuple[str, str]]:
        """The parameters that differ from their defaults."""
        for name, value, usual in (
            *self.given(),
            ("offset", str(self.offset), "0"),
            ("size", str(self.size), str(SIZE)),
        ):
            if value is not None and value != usual:
                yield name, value

    @property
    def address(self) -> str:
        """The query as the part of an address from `?` on, without defaults; `?` when there is nothing else."""
        return "?" + urlencode(list(self.parameters()), errors="replace")

    @property
    def before(self) -> str | None:
        """The address of the part before this one; None on the first."""
        return replace(self, offset=max(0, self.offset - self.size)).address if self.offset else None

    def following(self, total: int, shown: int | None = None) -> str | None:
        """The address of the next part, where this one has ``shown`` rows (by default as many as wanted) of ``total``; None on the last."""
        end = self.offset + (self.size if shown is None else shown)
        return replace(self, offset=end).address if self.offset < end < total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuery(PartQuery):
    """Which entities are wanted, in which order, and which part of them."""

    selection: Selection = field(default_factory=Selection)
    owner: str = ""
    """Only entities of this owner; empty for all."""

    def given(self) -> Iterable[tuple[str, str | None, str | None]]:
        """Order, filter and owner."""
        wanted = self.selection
        return (
            ("sort", wanted.order.value, Order.URGENCY.value),
            ("reverse", "1" if wanted.backwards else "", ""),
            ("show", wanted.show.value, Show.LIMITED.value),
            ("type", wanted.quota_type.label if wanted.quota_type else "", ""),
            ("q", wanted.text, ""),
            ("broker", wanted.broker, ""),
            ("owner", self.owner, ""),
        )


def read_query(given: Mapping[str, str]) -> EntityQuery:
    """
    The query of an address; unknown parameters are ignored.

    Raises:
        InvalidQuery: a value is not valid.

    """
    selection = Selection(
        order=one_of(given, "sort", _ORDERS, Order.URGENCY),
        backwards=one_of(given, "reverse", _FLAGS, usual=False),
        show=one_of(given, "show", _SHOWS, Show.LIMITED),
        quota_type=one_of(given, "type", _TYPES, None),
        text=readable(given.get("q", "")),
        broker=readable(given.get("broker", "")),
    )
    offset = number_of(given, "offset", 0, 0, FARTHEST)
    return EntityQuery(
        selection=selection,
        owner=readable(given.get("owner", "")),
        offset=offset,
        size=number_of(given, "size", SIZE, 1, MOST),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeQuery(PartQuery):
    """Which throttle episodes are wanted, and which part of them."""

    user: str | None = None
    client_id: str | None = None
    """Of requests that are counted under the entity; None for any."""
    quota_type: QuotaType | None = None
    since: float = 0.0
    """Unix time in seconds: episodes that were seen then or later."""

    def given(self) -> Iterable[tuple[str, str | None, str | None]]:
        """Names, quota type and time."""
        return (
            ("user", self.user, None),
            ("client_id", self.client_id, None),
            ("type", self.quota_type.label if self.quota_type else None, None),
            ("since", str(self.since), "0.0"),
        )


def read_episode_query(given: Mapping[str, str]) -> EpisodeQuery:
    """The query of an address. Raises ``InvalidQuery`` for a value that is not valid."""
    try:
        since = float(given.get("since") or "0")
    except ValueError:
        since = nan
    if not 0 <= since < inf:
        raise _wrong("since", given["since"], "a Unix time in seconds")
    return EpisodeQuery(
        user=given.get("user"),
        client_id=given.get("client_id"),
        quota_type=one_of(given, "type", _TYPES, None),
        since=since,
        offset=number_of(given, "offset", 0, 0, FARTHEST),
        size=number_of(given, "size", SIZE, 1, MOST),
    )


def shown_part(offset: int, count: int, total: int) -> str:
    """Which of all that a query finds are shown; empty when it finds nothing."""
    if count:
        return f"{offset + 1} to {offset + count} of {total}."
    return f"There are {total}; this page is past the last." if total else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The entities of a snapshot that a query finds."""

    snapshot: Snapshot
    trails: Trails
    """How full their limits were lately."""
    owners: Owners
    query: EntityQuery
    total: int
    """How many entities match the query."""
    limits_unknown: int
    """How many of all measured entities may have a limit that is unknown; ``Show.NEAR`` cannot find them."""
    rows: Sequence[EntityUsage]
    """Those of them that are shown."""


def find_entities(snapshot: Snapshot, trails: Trails, query: EntityQuery, owners: Owners) -> QueryResult:
    """Run a query on a snapshot."""
    measured = snapshot.measured
    found = matching(measured, query.selection)
    if query.owner:
        found = owners.own(found, query.owner)
    end = query.offset + query.size
    rows = in_order(found, query.selection, min(end, len(found)))[query.offset :]
    return QueryResult(
        snapshot=snapshot,
        trails=trails,
        owners=owners,
        query=query,
        total=len(found),
        limits_unknown=limits_unknown(measured),
        rows=rows,
    )


_Value = TypeVar("_Value")


def one_of(given: Mapping[str, str], name: str, values: Mapping[str, _Value], usual: _Value) -> _Value:
    """The value that a parameter names; the usual one without it. Raises ``InvalidQuery``."""
    text = given.get(name, "")
    if text and text not in values:
        raise _wrong(name, text, f"one of {', '.join(values)}")
    return values[text] if text else usual


def number_of(given: Mapping[str, str], name: str, usual: int, least: int, most: int) -> int:
    """A whole number between bounds; the usual one without it. Raises ``InvalidQuery``."""
    text = given.get(name, "")
    if not text:
        return usual
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1  # noqa: PLR2004 - no number of a thousand digits is read
    if not least <= number <= most:
        raise _wrong(name, text, f"a whole number from {least} to {most}")
    return number


def _wrong(name: str, value: str, wanted: str) -> InvalidQuery:
    return InvalidQuery(f"{name}={shown(value)} is not valid: it has to be {wanted}")
