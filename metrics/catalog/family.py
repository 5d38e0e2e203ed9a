"""One metric family: what it is called, what it means, how its series differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FamilyType(StrEnum):
    """The Prometheus type of a family."""

    GAUGE = "gauge"
    COUNTER = "counter"


_MEASURES = ("bytes", "ratio", "seconds", "threads")


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

    def __hash__(self) -> int:
        """Hash the name, which no other family has."""
        return hash(self.name)

    @property
    def documentation(self) -> str:
        """Text of ``HELP``: the help, and the MBean and attribute if the value is one."""
        from_mbean = self.source.startswith("kafka.")
        return f"{self.help} MBean {self.source}" if from_mbean else self.help

    @property
    def declared_unit(self) -> str:
        """Unit as OpenMetrics declares it: ``bytes_per_second``; empty for counts, and unless the name ends with it."""
        unit = self.unit.replace("/s", "_per_second")
        counts = unit == self.unit and unit not in _MEASURES
        ends = self.name.removesuffix("_total").endswith(f"_{unit}")
        return unit if ends and not counts else ""

    @property
    def is_info(self) -> bool:
        """True if the value is always 1 and the labels are the information, an ``info`` of OpenMetrics."""
        return self.name.endswith("_info")


USAGE_LABELS = ("broker", "user", "client_id")
TYPED_USAGE_LABELS = ("quota_type", *USAGE_LABELS)
LIMIT_LABELS = ("user", "client_id")
OVERFLOW = "__overflow__"
"""``user`` and ``client_id`` of the sum of all entities that are not shown one by one."""
RULE_LABELS = ("rule", "level", "rule_user", "rule_client_id")
"""Labels of a rule; ``level`` distinguishes a default dimension from an entity named ``<default>``."""


def gauge(
    name: str, text: str, labels: tuple[str, ...], unit: str, source: str, *, open_labels: bool = False
) -> Family:
    """Return the family of a value that goes up and down."""
    return Family(
        name=name, type=FamilyType.GAUGE, help=text, labels=labels, open_labels=open_labels, unit=unit, source=source
    )


def counter(name: str, text: str, labels: tuple[str, ...], unit: str, source: str) -> Family:
    """Return the family of a value that only grows, until its source restarts; its name ends in ``_total``."""
    return Family(name=name, type=FamilyType.COUNTER, help=text, labels=labels, unit=unit, source=source)
