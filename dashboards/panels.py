"""
Our panels as Grafana's JSON: the only file that knows grafanalib.

What Grafana's linter dislikes about grafanalib's defaults is set right here, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Final

from grafanalib import core
from grafanalib._gen import DashboardEncoder

from .fields import (
    color_by_steps,
    limit_override,
    overrides,
    thresholds,
    unknown,
    value_maps,
)
from .model import (
    Board,
    Graph,
    Kind,
    Panel,
    Query,
    Row,
    Stat,
    Table,
    Text,
    Variable,
)
from .normal import Json, normalised
from .pieces import DATASOURCE, link_list, marks, organised

SCHEMA_VERSION: Final = 42
"""Of Grafana 12 and 13."""
TAG: Final = "quotascope"
REFRESH: Final = "30s"
_COLUMNS: Final = 24
_ON_LOAD: Final = 1
_ON_TIME_RANGE_CHANGE: Final = 2
_SHARED_CROSSHAIR: Final = 1
_ALL: Final = "$__all"
_CHOICE: Final = {
    "default": _ALL,
    "dataSource": DATASOURCE,
    "includeAll": True,
    "multi": True,
    "allValue": ".*",  # .+ would leave out series without this label
    "refresh": _ON_TIME_RANGE_CHANGE,
}
_MERGE: Final = {"id": "merge", "options": {}}


def grafana_json(board: Board) -> dict[str, Json]:
    """The JSON model of a dashboard."""
    made = core.Dashboard(
        uid=board.uid,
        title=board.title,
        description=board.description,
        tags=["kafka", TAG],
        editable=False,
        graphTooltip=_SHARED_CROSSHAIR,
        links=[_to_the_others()],
        annotations=core.Annotations(list=marks(board.annotation)),
        templating=core.Templating(list=[_variable(each) for each in board.variables]),
        panels=list(_placed(board.rows)),
        refresh=REFRESH,
        schemaVersion=SCHEMA_VERSION,
        time=core.Time("now-1h", "now"),
        timePicker=_time_picker(),
        timezone="browser",
    ).auto_panel_ids()
    text = json.dumps(made.to_json_data(), cls=DashboardEncoder)
    return normalised(json.loads(text))


def _to_the_others() -> object:
    return core.DashboardLink(
        title="Quotas", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True
    )


def _time_picker() -> object:
    intervals = ["10s", "30s", "1m", "5m", "15m"]
    return core.TimePicker(refreshIntervals=intervals, timeOptions=None)


def _variable(variable: Variable) -> object:
    special: dict[str, Json]
    match variable.kind:
        case Kind.DATASOURCE:
            special = {"refresh": _ON_LOAD}
        case Kind.TEXTBOX:
            special = {"default": ""}
        case Kind.QUERY:
            special = _CHOICE
    return _Template(
        name=variable.name,
        label=variable.label,
        query=variable.query,
        type=variable.kind.value,
        **special,
    )


class _Template(core.Template):  # type: ignore[misc]  # grafanalib has no types
    """A variable whose choice of everything reads as Grafana writes it."""

    def to_json_data(self) -> dict[str, Json]:
        made: dict[str, Json] = super().to_json_data()
        value = made["current"]["value"]
        text = "All" if value == _ALL else value
        return {**made, "current": {"selected": True, "text": text, "value": value}}


def _placed(rows: Iterable[Row]) -> Iterator[object]:
    top = 0
    for row in rows:
        inner = list(_side_by_side(row, top + 1))
        yield core.RowPanel(
            title=row.title,
            collapsed=row.collapsed,
            panels=inner if row.collapsed else [],
            gridPos=core.GridPos(h=1, w=_COLUMNS, x=0, y=top),
        )
        top += 1
        if not row.collapsed:
            yield from inner
            top += row.height * _lines(row)


def _lines(row: Row) -> int:
    return -(-sum(width for width, _ in row.panels) // _COLUMNS)


def _side_by_side(row: Row, top: int) -> Iterator[object]:
    taken = 0
    for width, panel in row.panels:
        line, left = divmod(taken, _COLUMNS)
        position = core.GridPos(
            h=row.height, w=width, x=left, y=top + line * row.height
        )
        yield _panel(panel, position)
        taken += width


def _panel(panel: Panel, position: object) -> object:
    common = {
        "title": panel.title,
        "description": panel.description,
        "gridPos": position,
        "dataSource": DATASOURCE,
        "maxDataPoints": None,
    }
    match panel:
        case Graph():
            return _graph(panel, common)
        case Table():
            return _table(panel, common)
        case Stat():
            return _stat(panel, common)
        case Text():
            return core.Text(content=panel.content, **common)


def _graph(panel: Graph, common: Mapping[str, Json]) -> object:
    limits = [
        limit_override(letter)
        for letter, query in zip(ascii_uppercase, panel.queries, strict=False)
        if query.is_limit
    ]
    return core.TimeSeries(
        **common,
        targets=list(_targets(panel.queries)),
        links=link_list(panel.links),
        unit=panel.unit,
        fillOpacity=40 if panel.stacked else 8,
        stacking={"group": "A", "mode": "normal" if panel.stacked else "none"},
        showPoints="never",
        axisSoftMin=0,
        legendDisplayMode="table" if _has_names(panel) else "list",
        legendPlacement="bottom",
        legendCalcs=["lastNotNull", "max"] if _has_names(panel) else [],
        tooltipMode="multi",
        tooltipSort="desc",
        thresholds=thresholds(panel.steps),
        thresholdsStyleMode="dashed" if panel.steps else "off",
        overrides=limits,
        extraJson={"options": {"legend": {"showLegend": True}}},
    )


def _has_names(panel: Graph) -> bool:
    return any("user" in query.legend for query in panel.queries)


def _table(panel: Table, common: Mapping[str, Json]) -> object:
    return core.Table(
        **common,
        targets=list(_targets(panel.queries, kind="table")),
        links=link_list(panel.links),
        transformations=[_MERGE, organised(panel)],
        overrides=[overrides(column) for column in panel.columns],
        filterable=True,
        thresholds=thresholds(()),
        sortBy=[core.TableSortByField(displayName=panel.sort, desc=True)],
        extraJson={
            "options": {"cellHeight": "sm", "frameIndex": 0, "enablePagination": True},
            "fieldConfig": {
                "defaults": {
                    "color": {"mode": "thresholds"},
                    "custom": {"cellOptions": {"type": "auto"}, "inspect": False},
                    "mappings": [],
                }
            },
        },
    )


def _stat(panel: Stat, common: Mapping[str, Json]) -> object:
    return core.Stat(
        **common,
        targets=list(_targets([panel.query], kind="instant")),
        links=link_list(panel.links),
        format=panel.unit,
        color=color_by_steps(),
        colorMode="background",
        graphMode="none",
        reduceCalc="lastNotNull",
        noValue=panel.nothing,
        mappings=[*value_maps(panel.texts), unknown(panel.nothing)],
        thresholds=thresholds(panel.steps),
        extraJson={
            "options": {
                "percentChangeColorMode": "standard",
                "showPercentChange": False,
                "wideLayout": True,
            }
        },
    )


def _targets(queries: Sequence[Query], kind: str = "range") -> Iterator[object]:
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        yield _Target(
            expr=query.expr,
            legendFormat=query.legend,
            refId=letter,
            format="table" if kind == "table" else "time_series",
            instant=kind != "range",
            datasource=DATASOURCE,
        )


class _Target(core.Target):  # type: ignore[misc]  # grafanalib has no types
    """A query that is either instant or over a range, never both."""

    def to_json_data(self) -> dict[str, Json]:
        made: dict[str, Json] = super().to_json_data()
        return {**made, "editorMode": "code", "range": not self.instant}
