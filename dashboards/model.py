"""What our dashboards are made of, whatever draws them; ``panels`` makes Grafana's JSON of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From this value on, this colour."""

    value: float | None
    """None for the lowest."""
    color: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where to go from a panel or a cell."""

    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One PromQL expression of a panel."""

    expr: str
    legend: str = ""
    """Name of a series, with labels as ``{{label}}``."""
    is_limit: bool = False
    """Drawn as a dashed line: what usage is compared with."""


class Look(Enum):
    """How a cell shows its value."""

    PLAIN = "auto"
    TEXT = "color-text"
    BACKGROUND = "color-background"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    source: str
    """A label, or the letter of the query whose value is shown."""
    unit: str = ""
    look: Look = Look.PLAIN
    steps: tuple[Step, ...] = ()
    full: float | None = None
    """Value of a full gauge."""
    width: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """What is shown in place of some values."""
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows merged from instant queries: those with equal labels are one row."""

    title: str
    description: str
    queries: tuple[Query, ...]
    columns: tuple[Column, ...]
    sort: str
    """Title of the column to sort by, highest first."""
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Lines over time."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str
    steps: tuple[Step, ...] = ()
    """Drawn as lines."""
    stacked: bool = False
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """One number now, for each cluster."""

    title: str
    description: str
    query: Query
    unit: str
    steps: tuple[Step, ...]
    nothing: str = "no data"
    """Shown when the query has no result."""
    texts: Mapping[str, str] = field(default_factory=dict)
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A few words in Markdown."""

    title: str
    description: str
    content: str


Panel = Table | Graph | Stat | Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels side by side under a heading; 24 columns are one line."""

    title: str
    panels: tuple[tuple[int, Panel], ...]
    """Each with its width in columns."""
    height: int = 8
    collapsed: bool = False


class Kind(StrEnum):
    """What a variable gets its values from."""

    DATASOURCE = "datasource"
    QUERY = "query"
    TEXTBOX = "textbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """What a viewer chooses at the top of a dashboard."""

    name: str
    label: str
    kind: Kind
    query: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotation: Query
    """Marks moments in all graphs."""

    def panels(self) -> tuple[Panel, ...]:
        """All panels in reading order."""
        return tuple(panel for row in self.rows for _, panel in row.panels)
