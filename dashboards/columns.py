"""Columns of tables, and those that several tables have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any, Final

from quotascope.alerts import Site

from .links import Link, to_entity
from .steps import DELAY_IF_ANY, JOB_WAITS_IF_ANY, USED, Steps

BAR: Final = {"mode": "lcd", "type": "gauge", "valueDisplayMode": "color"}
COLORED: Final = {"mode": "basic", "type": "color-background"}
QUOTA_TYPES: Final = {
    "produce": "produce",
    "fetch": "fetch",
    "request": "request time",
    "controller_mutation": "controller mutation",
}
CAUSES: Final = {
    "own": "its own",
    "controller_mutation": "controller mutation",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardColumn:
    """One column of a table."""

    title: str
    source: str
    """A label, or the letter of a query for its value."""
    unit: str = ""
    width: int | None = None
    """In pixels; None for what is left."""
    cell: Mapping[str, str] | None = None
    """`BAR`, `COLORED`, or None for plain text."""
    steps: Steps | None = None
    full: float | None = None
    """Value of a full bar."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Shown in place of some values."""
    links: tuple[Link, ...] = ()

    def sources(self) -> tuple[str, ...]:
        """The names that Grafana may give to the column before it is renamed."""
        if self.source not in ascii_uppercase:
            return (self.source,)
        # The only query's value has no letter; the other queries are never alone.
        return ("Value #A", "Value") if self.source == "A" else (f"Value #{self.source}",)

    def override(self) -> dict[str, Any]:
        """What is special about it, as Grafana's JSON."""
        looks: dict[str, Any] = {
            "unit": self.unit or None,
            "custom.width": self.width,
            "custom.cellOptions": self.cell,
            "thresholds": self.steps and {"mode": "absolute", "steps": self.steps},
            "min": None if self.full is None else 0,
            "max": self.full,
            "mappings": _value_maps(self.texts),
            "links": [{"targetBlank": False, "title": link.title, "url": link.url} for link in self.links],
        }
        set_here = [{"id": key, "value": value} for key, value in looks.items() if value is not None and value != []]
        return {
            "matcher": {"id": "byName", "options": self.title},
            "properties": set_here,
        }


def _value_maps(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    options = {value: {"text": text, "index": index} for index, (value, text) in enumerate(texts.items())}
    return [{"type": "value", "options": options}] if options else []


def quota_type() -> BoardColumn:
    """Which of the four quotas it is."""
    return BoardColumn(title="Quota", source="quota_type", width=145, texts=QUOTA_TYPES)


def user_and_client(link: Link) -> tuple[BoardColumn, ...]:
    """User and client-id with a link."""
    return (
        BoardColumn(title="User", source="user", links=(link,)),
        BoardColumn(title="Client-id", source="client_id", links=(link,)),
    )


def entity(site: Site) -> tuple[BoardColumn, ...]:
    """User and client-id with a link to their dashboard."""
    return user_and_client(to_entity(site))


def cluster(site: Site) -> BoardColumn:
    """The cluster; links from the row need it to be shown."""
    return BoardColumn(title="Cluster", source=site.cluster_label, width=120)


def rule() -> BoardColumn:
    """The rule that applies, with the number of its level."""
    return BoardColumn(title="Rule", source="rule", width=260)


def used(letter: str) -> BoardColumn:
    """Utilization as a bar that is full at the limit."""
    return bar("Used", letter, USED, width=145)


def bar(title: str, letter: str, steps: Steps, width: int | None = None) -> BoardColumn:
    """A ratio as a bar."""
    return BoardColumn(title=title, source=letter, unit="percentunit", cell=BAR, steps=steps, full=1, width=width)


def delay(letter: str) -> BoardColumn:
    """The throttle time, on its color; none where nothing is throttled."""
    return BoardColumn(title="Delay", source=letter, unit="s", cell=COLORED, steps=DELAY_IF_ANY, width=90)


def waiting(letter: str) -> BoardColumn:
    """The share of time that a job waits, on its color; none where it does not wait."""
    return BoardColumn(title="Waiting", source=letter, unit="short", cell=COLORED, steps=JOB_WAITS_IF_ANY, width=100)


def number(title: str, letter: str, unit: str, width: int | None = 120) -> BoardColumn:
    """A plain number."""
    return BoardColumn(title=title, source=letter, unit=unit, width=width)


def cause() -> BoardColumn:
    """Why it is throttled: by this quota, or by the one of controller mutations."""
    return BoardColumn(title="Cause", source="cause", width=145, texts=CAUSES)
