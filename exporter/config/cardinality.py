"""The configuration of what keeps the number of series in bounds."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from ..patterns import matcher
from .section import Seconds, Section


class Excluded(StrEnum):
    """What becomes of entities whose names are excluded."""

    OVERFLOW = "overflow"
    DROP = "drop"


def _lines(value: object) -> object:
    # a variable of the environment holds one text; patterns may contain commas and spaces
    return value.splitlines() if isinstance(value, str) else value


def _checked(pattern: str) -> str:
    matcher(pattern)
    return pattern


Patterns = Annotated[
    tuple[Annotated[str, AfterValidator(_checked)], ...], BeforeValidator(_lines)
]


class CardinalityConfig(Section):
    """How many series there may be, and whose."""

    max_entities: int = Field(
        default=10_000,
        ge=1,
        description="Most pairs of user and client id that are shown for each quota type, and most entities of custom quota callbacks for each. The others are folded into `__overflow__`, so that sums stay true.",
    )
    include_users: Patterns = Field(
        default=(),
        description="Show only users whose whole name matches one of these RE2 expressions, such as team-.*. An entity without a user is not concerned. Needs quotascope[patterns].",
    )
    exclude_users: Patterns = Field(
        default=(), description="Do not show these users, included or not."
    )
    include_client_ids: Patterns = Field(
        default=(), description="The same for client ids."
    )
    exclude_client_ids: Patterns = Field(
        default=(), description="The same for client ids."
    )
    excluded: Excluded = Field(
        default=Excluded.OVERFLOW,
        description="What becomes of entities that are not shown for their names: overflow folds them, drop leaves them out of sums as well.",
    )
    detail_above: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Show utilisation, burst, rule and cause only of entities that were throttled or above this utilisation in the last five minutes. Without it: of all.",
        examples=[0.5],
    )
    idle_after_seconds: Seconds | None = Field(
        default=None,
        description="Leave out entities that had neither usage nor a throttle for so long, until they move again. Without it: Kafka drops them after an hour.",
        examples=[900.0],
    )
