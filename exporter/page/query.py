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

from quotascope.metrics.kafka.entities import QuotaType

from ..diagnosis.selection import Order, Selection, Show, in_order, matching
from ..diagnosis.trails import Trails
from ..diagnosis.units import limits_unknown
from ..errors import InvalidQuery
from ..snapshot import EntityUsage, Snapshot
from ..untrusted import shown
from .teams import Teams, readable

SIZE: Final = 50
MOST: Final = 500
"""Rows of one page or answer: the default, and the most."""
FARTHEST: Final = 10_000_000
"""The greatest offset."""
_TYPES: Final = {quota_type.label: quota_type for quota_type in QuotaType}
_NAMES: Final = {"user", "client_id"}
"""Parameters in which an empty text means a dimension that an entity does not have."""


def _whole(value: object) -> int:
    """Return the whole number that a text holds. Raise ValueError for any other text."""
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) < 9):  # noqa: PLR2004 - not a thousand digits
        raise ValueError  # without the text, which pydantic would encode in UTF-8
    return int(text)


def _type(value: str | QuotaType | None) -> QuotaType | None:
    """Return the quota type with a label; anything but a text as it is. Raise ValueError for another text."""
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
"""A name as it is in the query: it may hold halves of surrogate pairs, which pydantic refuses."""
Text = Annotated[str, PlainValidator(readable), WithJsonSchema({"type": "string"})]


class PartQuery(BaseModel):
    """
    The part of all rows of a query that a client asks for.

    The fields of a query are the parameters of its address. One that is missing, or empty, has its default.
    """

    model_config = ConfigDict(frozen=True)

    offset: Annotated[int, Field(ge=0, le=FARTHEST), BeforeValidator(_whole)] = 0
    """Number of rows before the first that is shown."""
    size: Annotated[int, Field(ge=1, le=MOST), BeforeValidator(_whole)] = SIZE
    """Greatest number of rows that are shown."""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Self:
        """
        Return the query of an address; unknown parameters are ignored.

        Raises ``InvalidQuery`` for a value that is not valid.
        """
        try:
            return cls.model_validate({name: text for name, text in parameters.items() if text or name in _NAMES})
        except ValidationError as error:
            first_error = error.errors(include_context=False)[0]
            name = str(first_error["loc"][0])
        schema = cls.described()[name]
        expectation = schema.get(
            "description", f"a whole number from {schema.get('minimum')} to {schema.get('maximum')}"
        )
        if "enum" in schema:
            expectation = f"one of {', '.join(schema['enum'])}"
        raise InvalidQuery(f"{name}={shown(parameters[name])} is not valid: it has to be {expectation}")

    @classmethod
    def described(cls) -> dict[str, dict[str, Any]]:
        """Return the parameters in the order of addresses, the part last, with their descriptions for OpenAPI."""
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
        """Return the parameters that differ from their defaults, in the order of addresses."""
        values = self.model_dump(exclude_defaults=True)
        return {name: str(values[name]) for name in _in_order(values)}

    def with_values(self, **values: object) -> Self:
        """Return the query with other values of some parameters."""
        return self.model_copy(update=values)

    @property
    def address(self) -> str:
        """The query as the end of an address from `?` on, without defaults; only `?` if there is nothing else."""
        return "?" + urlencode(self.parameters(), errors="replace")

    @property
    def before(self) -> str | None:
        """The address of the part before this one; None on the first."""
        return self.with_values(offset=max(0, self.offset - self.size)).address if self.offset else None

    def following(self, total: int, count: int | None = None) -> str | None:
        """
        Return the address of the next part; None on the last.

        This part has ``count`` rows (by default as many as the query asks for) of ``total``.
        """
        end = self.offset + (self.size if count is None else count)
        return self.with_values(offset=end).address if self.offset < end < total else None


def _in_order(names: Iterable[str]) -> list[str]:
    """Return the parameters in the order of addresses: the part last."""
    return sorted(names, key=lambda name: name in PartQuery.model_fields)  # False comes before True


class EntityQuery(PartQuery):
    """The entities that a client asks for, their order, and the part of them."""

    sort: Annotated[Order, WithJsonSchema({"enum": [*Order]})] = Order.URGENCY
    reverse: Flag = "0"
    show: Annotated[Show, WithJsonSchema({"enum": [*Show]})] = Show.LIMITED
    type: Kind = None
    q: Text = ""
    """Only users and client-ids that contain it, ignoring case."""
    broker: Text = ""
    team: Text = ""
    """Only entities of this team; empty for all."""

    def selection(self, near_limit: float) -> Selection:
        """Return the selection without team and part; an entity from this utilization on is near its limit."""
        return Selection(
            near_limit=near_limit,
            order=self.sort,
            backwards=self.reverse == "1",
            show=self.show,
            quota_type=self.type,
            text=self.q,
            broker=self.broker,
        )


class EpisodeQuery(PartQuery):
    """The throttle episodes that a client asks for, and the part of them."""

    user: Name = None
    client_id: Name = None
    """Of requests that are counted under the entity; None for any."""
    type: Kind = None
    since: Annotated[float, Field(ge=0, allow_inf_nan=False, description="a Unix time in seconds")] = 0.0
    """Episodes that were seen then or later."""


def shown_part(offset: int, count: int, total: int) -> str:
    """Return the place of the shown rows among all rows of a query; an empty text when the query finds nothing."""
    if count:
        return f"{offset + 1} to {offset + count} of {total}."
    return f"There are {total}; this page is past the last." if total else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The entities of a snapshot that a query finds."""

    snapshot: Snapshot
    trails: Trails
    """Recent values of these entities."""
    teams: Teams
    query: EntityQuery
    total: int
    """Number of entities that match the query."""
    limits_unknown: int
    """Number of measured entities that may have an unknown limit; ``Show.NEAR`` cannot find them."""
    rows: Sequence[EntityUsage]
    """The entities of the part that is shown."""


def find_entities(snapshot: Snapshot, trails: Trails, query: EntityQuery, teams: Teams) -> QueryResult:
    """Run a query on a snapshot."""
    measured = snapshot.measured
    selection = query.selection(snapshot.thresholds.near_limit)
    usages = matching(measured, selection)
    if query.team:
        usages = teams.own(usages, query.team)
    end = query.offset + query.size
    rows = in_order(usages, selection, min(end, len(usages)))[query.offset :]
    return QueryResult(
        snapshot=snapshot,
        trails=trails,
        teams=teams,
        query=query,
        total=len(usages),
        limits_unknown=limits_unknown(measured),
        rows=rows,
    )
