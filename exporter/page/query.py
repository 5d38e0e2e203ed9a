"""The query parameters of the page and of its JSON, and the entities that a query finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlencode

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SkipValidation,
    ValidationError,
    WithJsonSchema,
)

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
_TYPES: Final = {each.label: each for each in QuotaType}
_NAMES: Final = {"user", "client_id"}
"""Parameters of which an empty text means something: a dimension that an entity does not have."""


def _whole(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) < 9):  # noqa: PLR2004 - no number of a thousand digits is read
        raise ValueError  # without the text, of which pydantic makes UTF-8
    return int(text)


def _type(value: str | QuotaType | None) -> QuotaType | None:
    if isinstance(value, str):
        if value not in _TYPES:
            raise ValueError
        return _TYPES[value]
    return value


Flag = Annotated[
    Literal["0", "false", "1", "true"],
    AfterValidator(lambda text: {"false": "0", "true": "1"}.get(text, text)),
    WithJsonSchema({"enum": ["0", "1", "false", "true"]}),
]
Kind = Annotated[
    QuotaType | None,
    PlainValidator(_type),
    PlainSerializer(lambda kind: kind and kind.label),
    WithJsonSchema({"enum": [*_TYPES]}),
]
Name = Annotated[str | None, SkipValidation, WithJsonSchema({"type": "string"})]
"""As it is given: it may hold halves of surrogate pairs, which pydantic refuses."""
Text = Annotated[str, PlainValidator(readable), WithJsonSchema({"type": "string"})]


class PartQuery(BaseModel):
    """
    Which part is wanted of all that a query finds.

    The fields of a query are the parameters of its address. One that is missing, or empty, has its default.
    """

    model_config = ConfigDict(frozen=True)

    offset: Annotated[int, Field(ge=0, le=FARTHEST), BeforeValidator(_whole)] = 0
    """How many rows come before the first that is shown."""
    size: Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole)] = SIZE
    """How many are shown at most."""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """The query of an address; unknown parameters are ignored. Raises ``InvalidQuery`` for a value that is not valid."""
        try:
            return cls.model_validate({name: text for name, text in given.items() if text or name in _NAMES})
        except ValidationError as error:
            name = str(error.errors(include_context=False)[0]["loc"][0])
        schema = cls.described()[name]
        wanted = schema.get("description", f"a whole number from {schema.get('minimum')} to {schema.get('maximum')}")
        if "enum" in schema:
            wanted = f"one of {', '.join(schema['enum'])}"
        raise InvalidQuery(f"{name}={shown(given[name])} is not valid: it has to be {wanted}")

    @classmethod
    def described(cls) -> dict[str, dict[str, Any]]:
        """The parameters in the order of addresses, the part last, each with what OpenAPI says of it."""
        schemas = cls.model_json_schema()["properties"]
        return {
            name: {
                key: value
                for key, value in schemas[name].items()
                if key != "title" and value is not None and value != ""
            }
            for name in _in_order(schemas)
        }

    def parameters(self) -> dict[str, str]:
        """The parameters that differ from their defaults, in the order of addresses."""
        given = self.model_dump(exclude_defaults=True)
        return {name: str(given[name]) for name in _in_order(given)}

    def with_values(self, **values: object) -> Self:
        """The query with other values of some parameters."""
        return self.model_copy(update=values)

    @property
    def address(self) -> str:
        """The query as the part of an address from `?` on, without defaults; `?` when there is nothing else."""
        return "?" + urlencode(self.parameters(), errors="replace")

    @property
    def before(self) -> str | None:
        """The address of the part before this one; None on the first."""
        return self.with_values(offset=max(0, self.offset - self.size)).address if self.offset else None

    def following(self, total: int, shown: int | None = None) -> str | None:
        """The address of the next part, where this one has ``shown`` rows (by default as many as wanted) of ``total``; None on the last."""
        end = self.offset + (self.size if shown is None else shown)
        return self.with_values(offset=end).address if self.offset < end < total else None


def _in_order(names: Iterable[str]) -> list[str]:
    """The parameters in the order of addresses: the part last."""
    return sorted(names, key=PartQuery.model_fields.__contains__)


class EntityQuery(PartQuery):
    """Which entities are wanted, in which order, and which part of them."""

    sort: Annotated[Order, WithJsonSchema({"enum": [*Order]})] = Order.URGENCY
    reverse: Flag = "0"
    show: Annotated[Show, WithJsonSchema({"enum": [*Show]})] = Show.LIMITED
    type: Kind = None
    q: Text = ""
    """Only users and client-ids that contain it, ignoring case."""
    broker: Text = ""
    owner: Text = ""
    """Only entities of this owner; empty for all."""

    @property
    def selection(self) -> Selection:
        """All but owner and part."""
        return Selection(
            order=self.sort,
            backwards=self.reverse == "1",
            show=self.show,
            quota_type=self.type,
            text=self.q,
            broker=self.broker,
        )


class EpisodeQuery(PartQuery):
    """Which throttle episodes are wanted, and which part of them."""

    user: Name = None
    client_id: Name = None
    """Of requests that are counted under the entity; None for any."""
    type: Kind = None
    since: Annotated[float, Field(ge=0, allow_inf_nan=False, description="a Unix time in seconds")] = 0.0
    """Episodes that were seen then or later."""


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
