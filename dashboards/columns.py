"""Columns of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any, Final

from quotascope.alerts import Site
from quotascope.metrics.kafka.entities import BYTES_PER_SECOND, THREADS, QuotaType

from .links import Link, to_entity
from .steps import DELAY_IF_ANY, JOB_WAITS_IF_ANY, THROTTLED_FOR, USED, Steps

BAR: Final = {"mode": "lcd", "type": "gauge", "valueDisplayMode": "color"}
COLORED: Final = {"mode": "basic", "type": "color-background"}
QUOTA_TYPES: Final = {quota_type.label: quota_type.title for quota_type in QuotaType}
UNITS: Final = {BYTES_PER_SECOND: "Bps", THREADS: "percentunit"}
"""Grafana's units by ours; it has none for others."""
CAUSES: Final = {
    "own": "its own",
    "controller_mutation": "controller mutation",
    "unknown": "unknown",
}


def axis_of(kind: QuotaType) -> str:
    """Return the word beside the axis of a quota type's usage; empty where Grafana has a unit for it."""
    return "" if kind.unit in UNITS else kind.unit.words


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardColumn:
    """A column of a table."""

    title: str
    source: str
    """A label, or the letter of a query for its value."""
    unit: str = ""
    width: int | None = None
    """Width in pixels; None for a share of the remaining width."""
    least: int | None = None
    """Least width in pixels of a column with such a share; None for Grafana's 150, which a window of 1,000 lacks."""
    cell: Mapping[str, str] | None = None
    """`BAR`, `COLORED`, or None for plain text."""
    steps: Steps | None = None
    full: float | None = None
    """Value of a full bar."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts in place of some values."""
    links: tuple[Link, ...] = ()

    def sources(self) -> tuple[str, ...]:
        """Return the names that Grafana may give to the column before it is renamed."""
        if self.source not in ascii_uppercase:
            return (self.source,)
        # The only query's value has no letter; the other queries are never alone.
        return ("Value #A", "Value") if self.source == "A" else (f"Value #{self.source}",)

    def override(self) -> dict[str, Any]:
        """Return the properties that differ from other columns, as Grafana's JSON."""
        properties: dict[str, Any] = {
            "unit": self.unit or None,
            "custom.width": self.width,
            "custom.minWidth": self.least,
            "custom.cellOptions": self.cell,
            "thresholds": self.steps and {"mode": "absolute", "steps": self.steps},
            "min": None if self.full is None else 0,
            "max": self.full,
            "mappings": _value_maps(self.texts),
            "links": [{"targetBlank": False, "title": link.title, "url": link.url} for link in self.links],
        }
        return {
            "matcher": {"id": "byName", "options": self.title},
            "properties": [
                {"id": key, "value": value} for key, value in properties.items() if value is not None and value != []
            ],
        }


def _value_maps(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    options = {value: {"text": text, "index": index} for index, (value, text) in enumerate(texts.items())}
    return [{"type": "value", "options": options}] if options else []


def quota_type() -> BoardColumn:
    """Return the column of the quota type."""
    return BoardColumn(title="Quota", source="quota_type", width=145, texts=QUOTA_TYPES)


def user_and_client(link: Link) -> tuple[BoardColumn, ...]:
    """Return the columns of user and client-id with a link."""
    return (
        BoardColumn(title="User", source="user", least=105, links=(link,)),
        BoardColumn(title="Client-id", source="client_id", least=118, links=(link,)),
    )


def entity(site: Site) -> tuple[BoardColumn, ...]:
    """Return the columns of user and client-id with a link to their dashboard."""
    return user_and_client(to_entity(site))


def cluster(site: Site) -> BoardColumn:
    """Return the column of the cluster, which links from the row need."""
    return BoardColumn(title="Cluster", source=site.cluster_label, width=110)


def rule() -> BoardColumn:
    """Return the column of the rule that applies, with the number of its level."""
    return BoardColumn(title="Rule", source="rule", least=175)


def used(letter: str) -> BoardColumn:
    """Return the column of utilization as a bar that is full at the limit."""
    return bar("Used", letter, USED, width=120)


def bar(title: str, letter: str, steps: Steps, width: int | None = None) -> BoardColumn:
    """Return a column of a ratio as a bar."""
    return BoardColumn(title=title, source=letter, unit="percentunit", cell=BAR, steps=steps, full=1, width=width)


def colored(title: str, letter: str, unit: str, steps: Steps, width: int) -> BoardColumn:
    """Return a column of numbers on their color."""
    return BoardColumn(title=title, source=letter, unit=unit, cell=COLORED, steps=steps, width=width)


def delay(letter: str) -> BoardColumn:
    """Return the column of the throttle time, on its color; no color without a throttle."""
    return colored("Delay", letter, "s", DELAY_IF_ANY, 80)


def throttled_for(letter: str) -> BoardColumn:
    """Return the column of the throttled share, on the color of the alerts."""
    return colored("Throttled", letter, "percentunit", THROTTLED_FOR, 112)


def waiting(letter: str) -> BoardColumn:
    """Return the column of the share of time that a job waits, on its color; no color if it does not wait."""
    return colored("Waiting", letter, "short", JOB_WAITS_IF_ANY, 100)


def number(title: str, letter: str, unit: str, width: int | None = 120) -> BoardColumn:
    """Return a column of plain numbers."""
    return BoardColumn(title=title, source=letter, unit=unit, width=width)


def cause() -> BoardColumn:
    """Return the column of the cause of a throttle: this quota, or the quota of controller mutations."""
    return BoardColumn(title="Cause", source="cause", least=85, texts=CAUSES)
