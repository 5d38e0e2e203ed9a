"""One metric family: what it is called, what it means, how its series differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FamilyType(StrEnum):
    """The Prometheus type of a family."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric family: what it is called, what it means, how its series differ."""

    name: str
    """Full name; a counter ends in ``_total``."""
    type: FamilyType
    help: str
    """One sentence for the ``HELP`` line: meaning and window."""
    labels: tuple[str, ...] = ()
    open_labels: bool = False
    """Whether series have further labels, which are known only when they are seen."""
    unit: str
    """Unit in words, for the documentation."""
    source: str
    """Where the value comes from: an MBean attribute, a request of the Admin API, or what it is computed from."""


USAGE_LABELS = ("broker", "user", "client_id")
TYPED_USAGE_LABELS = ("quota_type", *USAGE_LABELS)
LIMIT_LABELS = ("user", "client_id")
OVERFLOW = "__overflow__"
"""``user`` and ``client_id`` of what is shown in place of all entities that are not shown one by one."""
RULE_LABELS = ("level", "rule_user", "rule_client_id")
"""A default dimension reads ``<default>``; ``level`` distinguishes it from an entity of that name."""


def gauge(
    name: str,
    text: str,
    labels: tuple[str, ...],
    unit: str,
    source: str,
    *,
    open_labels: bool = False,
) -> Family:
    """A value that goes up and down."""
    return Family(
        name=name,
        type=FamilyType.GAUGE,
        help=text,
        labels=labels,
        open_labels=open_labels,
        unit=unit,
        source=source,
    )


def counter(
    name: str, text: str, labels: tuple[str, ...], unit: str, source: str
) -> Family:
    """A value that only grows, until what counts it starts again; its name ends in ``_total``."""
    return Family(
        name=name,
        type=FamilyType.COUNTER,
        help=text,
        labels=labels,
        unit=unit,
        source=source,
    )
