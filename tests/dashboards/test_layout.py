"""
Places and styles of panels.

`known/layout.txt` has the places; this module has the common styles of panels. Both are written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase
from typing import Any, Final

import pytest
from tests.dashboards.boards import panels_of
from tests.dashboards.stored import KNOWN

from quotascope.alerts import Site
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

Dashboards = dict[str, dict[str, Any]]
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
BOARDS: Final = ("overview", "entity", "teams", "mutations", "brokers", "shadow", "spark", "exporter")
WITH_NAMES: Final[dict[str, set[str]]] = {
    "overview": {"The 10 of each cluster that use most of their limit"},
    "entity": {
        *(
            "Share of the limit, by broker",
            "Delay, by broker",
            "Produced",
            "Fetched",
            "Request time, percent of a thread",
        ),
        *("Controller mutations per second", "Tokens left, of the burst"),
    },
    "mutations": {
        *("Changes per second, against the limit", "Tokens, against the burst", "Delay"),
        "Share of the burst that is used up",
    },
    "shadow": {"Delay, if it were set and now"},
    "spark": {"The brokers' view: delay", "The brokers' view: share of the limit"},
}
"""Graphs whose lines are users and client-ids, which may be many: their legend is a table."""
LINKS: Final = {
    "On which brokers": "/d/quotascope-brokers?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}",
    "The brokers' view": (
        "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}"
        '&var-user=${__data.fields["user"]:percentencode}&var-client_id=${__data.fields["client_id"]:percentencode}'
    ),
    "This job": (
        "/d/quotascope-spark?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}"
        '&var-app=${__data.fields["app"]:percentencode}'
    ),
    "This user and client-id": (
        "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}"
        '&var-cluster=${__data.fields["cluster"]:percentencode}'
        '&var-user=${__data.fields["user"]:percentencode}&var-client_id=${__data.fields["client_id"]:percentencode}'
    ),
    "Teams": "/d/quotascope-teams?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}",
    "Which, and why": "/d/quotascope-exporter?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}",
    "Controller mutations": (
        "/d/quotascope-mutations?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}"
    ),
}
"""Where the links of the dashboards lead, by their titles."""
FRAME: Final = {
    "editable": False,
    "graphTooltip": 1,  # a crosshair in all graphs
    "links": [
        {
            "asDropdown": True,
            "icon": "external link",
            "includeVars": True,
            "keepTime": True,
            "tags": ["quotascope"],
            "targetBlank": False,
            "title": "Quotas",
            "tooltip": "",
            "type": "dashboards",
            "url": "",
        }
    ],
    "refresh": "30s",
    "schemaVersion": 42,
    "tags": ["kafka", "quotascope"],
    "time": {"from": "now-1h", "to": "now"},
    "timepicker": {"hidden": False, "refresh_intervals": ["10s", "30s", "1m", "5m", "15m"]},
    "timezone": "browser",
    "version": 0,
}
"""What is the same for all dashboards."""
MARK: Final = {
    "datasource": SOURCE,
    "enable": True,
    "iconColor": "purple",
    "name": "Limits changed",
    "step": "60s",
    "textFormat": "{{change}}",
    "titleFormat": "Limits changed",
}
EPISODES: Final = MARK | {"iconColor": "red", "name": "Throttled", "step": "30s", "titleFormat": "Throttled"}
CHOICES: Final[dict[str, dict[str, Any]]] = {
    "datasource": {"query": "prometheus", "refresh": 1},
    "query": {
        "allValue": ".*",  # .+ would hide series without the label
        "current": {"selected": True, "text": "All", "value": "$__all"},
        "datasource": SOURCE,
        "includeAll": True,
        "multi": True,
        "refresh": 2,  # when the time range changes
        "sort": 1,  # by name
    },
    "textbox": {"current": {"selected": True, "text": "", "value": ""}, "query": ""},
}
"""What variables of a type have in common."""
VARIABLES: Final = {
    "overview": {"team": "Team"},
    "entity": {"user": "User", "client_id": "Client-id", "find": "Find"},
    "teams": {"team": "Team"},
    "mutations": {"user": "User", "client_id": "Client-id"},
    "brokers": {"broker": "Broker"},
    "shadow": {"shadow": "Shadow"},
    "spark": {"app": "Job", "query": "Query"},
    "exporter": {},
}
"""Beside the data source and the cluster, which come first."""
GRAPH: Final = {
    "axisLabel": "",
    "axisPlacement": "auto",
    "axisSoftMin": 0,
    "barAlignment": 0,
    "drawStyle": "line",
    "gradientMode": "none",
    "hideFrom": {"legend": False, "tooltip": False, "viz": False},
    "lineInterpolation": "linear",
    "lineWidth": 1,
    "pointSize": 5,
    "scaleDistribution": {"log": 2, "type": "linear"},
    "showPoints": "never",
    "spanNulls": False,  # a gap is shown as a gap
}
LIMIT_LINE: Final = [
    {"id": "custom.lineStyle", "value": {"dash": [8, 6], "fill": "dash"}},
    {"id": "custom.fillOpacity", "value": 0},
    {"id": "custom.stacking", "value": {"group": "limit", "mode": "none"}},
    {"id": "color", "value": {"fixedColor": "red", "mode": "fixed"}},
]
WORDLESS_TIME: Final = {
    "matcher": {"id": "byType", "options": "time"},
    "properties": [{"id": "custom.axisLabel", "value": ""}],
}
"""What keeps the word of the other axis away from the times."""
TABLE: Final = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True, "inspect": False}
LINK: Final = {
    "asDropdown": False,
    "icon": "external link",
    "includeVars": False,
    "keepTime": False,
    "tags": [],
    "targetBlank": True,
    "tooltip": "",
    "type": "link",
}
STAT: Final = {
    "colorMode": "background",
    "graphMode": "none",
    "justifyMode": "auto",
    "orientation": "auto",
    "percentChangeColorMode": "standard",
    "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    "showPercentChange": False,
    "textMode": "auto",
    "wideLayout": True,
}
PAGE: Final = 1568
"""Pixels of the grid in a window of 1600."""
SIDES: Final = 2 * 8 + 2 + 8
"""Padding and border of a panel, and a scroll bar."""
FILTER_ICON: Final = 22
PANEL_HEAD, TABLE_HEAD, TABLE_ROW = 40 + 8 + 2, 34, 36
"""Pixels of Grafana 13: title, padding and border; names of columns; a row."""
CELLS: Final = {
    "bar": {"mode": "lcd", "type": "gauge", "valueDisplayMode": "color"},
    "colored": {"mode": "basic", "type": "color-background"},
}
"""How cells look, by the word for it in `layout.txt`."""


Panel = dict[str, Any]


@pytest.fixture
def dashboards() -> Dashboards:
    """Return dashboards that are made for each test alone, so that coverage sees the test run their code."""
    return grafana_dashboards(Scope())


def _of(dashboards: Dashboards, kind: str) -> Iterator[tuple[str, Panel]]:
    every = [
        (uid.removeprefix("quotascope-"), panel)
        for uid, dashboard in dashboards.items()
        for panel in panels_of(dashboard)
    ]
    panels = [(board, panel) for board, panel in every if panel["type"] == kind]
    assert panels
    yield from panels


def _looks(panel: Panel) -> Iterator[tuple[str, dict[str, Any]]]:
    for override in panel["fieldConfig"]["overrides"]:
        yield (
            override["matcher"]["options"],
            {property_["id"]: property_["value"] for property_ in override["properties"]},
        )


def _rows(dashboard: dict[str, Any]) -> Iterator[tuple[Panel, list[Panel]]]:
    """Return rows with their panels, whether they are folded or not."""
    rows: list[tuple[Panel, list[Panel]]] = []
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            rows.append((panel, list(panel["panels"])))
        else:
            rows[-1][1].append(panel)
    yield from rows


def _drawn(dashboard: dict[str, Any]) -> Iterator[str]:
    """A dashboard in the words of `layout.txt`."""
    for row, panels in _rows(dashboard):
        yield f"{row['title']}:{' folded' if row['collapsed'] else ''}"
        for panel in panels:
            leads, place = _leads(panel["links"]), panel["gridPos"]
            yield f"{place['w']}x{place['h']} {panel['type']} {panel['title']}{leads}"
            if panel["type"] == "table":
                yield " | ".join(_column(*look) for look in _looks(panel))
                (sort,) = panel["options"]["sortBy"]
                yield f"by {sort['displayName']}"


def _column(title: str, looks: dict[str, Any]) -> str:
    parts = [title]
    if "custom.width" in looks:
        parts.append(str(looks["custom.width"]))
    if "custom.minWidth" in looks:
        parts.append(f"{looks['custom.minWidth']}+")
    parts += [word for word, cell in CELLS.items() if looks.get("custom.cellOptions", {}) == cell]
    return " ".join(parts) + _leads(looks.get("links", ()))


def _leads(links: Any) -> str:
    titles = ", ".join(link["title"] for link in links)
    return f" -> {titles}" if titles else ""


def expected() -> dict[str, list[str]]:
    """The layouts by dashboard."""
    layouts: dict[str, list[str]] = {}
    lines = list[str]()
    for line in (KNOWN / "layout.txt").read_text("utf-8").splitlines():
        if line.startswith("== "):
            lines = layouts.setdefault(line.removeprefix("== "), [])
        elif line and not line.startswith("#"):
            lines.append(line.strip())
    return layouts


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_rows_panels_and_columns_are_as_laid_out(board: str, *, recorded: bool) -> None:
    """Rows, panels and columns have the expected order, size and look, with and without recording rules."""
    models = grafana_dashboards(Scope(recorded=recorded))
    assert list(models) == [f"quotascope-{name}" for name in BOARDS]
    assert [*_drawn(models[f"quotascope-{board}"])] == expected()[board]


def test_rows_are_full_and_follow_each_other(dashboards: Dashboards) -> None:
    """Panels fill the lines below a heading of one line, unless it is folded; all are numbered."""
    for dashboard in dashboards.values():
        top = 0
        for row, panels in _rows(dashboard):
            assert row["gridPos"] == {"h": 1, "w": 24, "x": 0, "y": top}
            x, below = 0, top + 1
            for panel in panels:
                place = panel["gridPos"]
                assert (place["x"], place["y"]) == (x, below)
                x += place["w"]
                if x == 24:
                    x, below = 0, below + place["h"]
            assert x == 0, row["title"]
            top = top + 1 if row["collapsed"] else below
        # what stands in a user's link stays true
        numbers = [panel["id"] for panel in panels_of(dashboard)]
        assert numbers == [*range(1, len(numbers) + 1)]


ROWS = {
    "Quotas that apply, by which rule": 4,
    "Limits of bytes, and what would do": 2,
    "Limits of request time, and what would do": 2,
    "Buckets, the emptiest first": 6,
}
"""Rows of tables that are short in most clusters, such as those with the quotas of one user and client-id only."""


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_tables_show_ten_rows_and_whole_columns_at_1600_pixels(*, recorded: bool) -> None:
    """Tables have ten rows, or fewer of what is few, and no pages; columns are as wide as their titles and texts."""
    for board, panel in _of(grafana_dashboards(Scope(recorded=recorded)), "table"):
        where = (board, panel["title"])
        assert panel["options"]["enablePagination"] is False
        inner = panel["gridPos"]["h"] * 38 - 8 - PANEL_HEAD - TABLE_HEAD
        assert ROWS.get(panel["title"], 10) <= inner // TABLE_ROW <= 20, where
        taken = 0
        for title, looks in _looks(panel):
            width = looks.get("custom.width", looks.get("custom.minWidth", 150))
            taken += width
            longest = 7 * len(title) + FILTER_ICON
            for mapping in looks.get("mappings", ()):
                texts = [option["text"] for option in mapping["options"].values()]
                longest = max(longest, *(7 * len(text) for text in texts))
            # the remaining width is shared
            assert longest + 12 <= width or title == "Cause", (*where, title)
        assert taken <= panel["gridPos"]["w"] * PAGE / 24 - 8 - SIDES, where


def test_dashboards_share_their_frame(dashboards: Dashboards) -> None:
    """All dashboards have the same time range, refresh and links; those with clients also mark throttle episodes."""
    for uid, dashboard in dashboards.items():
        own_keys = {"annotations", "description", "panels", "templating", "title", "uid"}
        assert {key: dashboard[key] for key in {*dashboard} - own_keys} == FRAME
        marks = dashboard["annotations"]["list"]
        clients = uid in {"quotascope-overview", "quotascope-entity"}
        styles = [MARK, EPISODES] if clients else [MARK]
        assert marks == [look | {"expr": mark["expr"]} for look, mark in zip(styles, marks, strict=True)]


def test_viewers_choose_by_these_variables(dashboards: Dashboards) -> None:
    """The variables are data source, clusters and the dashboard's subject, with all values or no text at first."""
    common_labels = {"datasource": "Data source", "cluster": "Cluster"}
    for board, labels in VARIABLES.items():
        variables = dashboards[f"quotascope-{board}"]["templating"]["list"]
        hidden = [variable["name"] for variable in variables if variable["hide"]]
        assert hidden == (["backtick"] if "user" in labels else [])
        visible = [variable for variable in variables if not variable["hide"]]
        assert [(variable["name"], variable["label"]) for variable in visible] == [*(common_labels | labels).items()]
        for variable in visible:
            own_keys = {"name", "label", "type"} | ({"query"} if variable["type"] == "query" else set())
            common = {key: variable[key] for key in {*variable} - own_keys}
            assert common == CHOICES[variable["type"]] | {"hide": 0, "options": []}


def test_graphs_are_drawn_alike(dashboards: Dashboards) -> None:
    """Graphs have thin lines from zero; a stacked graph is filled, a threshold is dashed, a limit is dashed and red."""
    for board, panel in _of(dashboards, "timeseries"):
        defaults = panel["fieldConfig"]["defaults"]
        custom = defaults["custom"]
        stacked = custom["stacking"] == {"group": "A", "mode": "normal"}
        colored = len(defaults["thresholds"]["steps"]) > 1
        named = panel["title"] in WITH_NAMES.get(board, ())
        assert (custom["axisLabel"] == "") == (defaults["unit"] != "short"), panel["title"]
        assert custom == GRAPH | {
            "axisLabel": custom["axisLabel"],
            "fillOpacity": 40 if stacked else 0 if named else 8,
            "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
            "thresholdsStyle": {"mode": "dashed" if colored else "off"},
        }
        assert defaults["color"] == {"mode": "palette-classic"}
        assert panel["options"] == {
            "legend": {
                "calcs": ["lastNotNull", "max"] if named else [],
                "displayMode": "table" if named else "list",
                "placement": "right" if named else "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
        limits = panel["fieldConfig"]["overrides"]
        if custom["axisLabel"]:
            assert limits[0] == WORDLESS_TIME
            limits = limits[1:]
        for limit in limits:
            assert limit["matcher"]["id"] == "byFrameRefID"
            assert limit["properties"] == LIMIT_LINE


def test_numbers_are_drawn_alike(dashboards: Dashboards) -> None:
    """Numbers have the color of their threshold; gray where nothing is known, which is neither good nor bad."""
    for _, panel in _of(dashboards, "stat"):
        defaults = panel["fieldConfig"]["defaults"]
        assert (panel["options"], panel["fieldConfig"]["overrides"]) == (STAT, [])
        assert (defaults["color"], defaults["custom"]) == ({"mode": "thresholds"}, {})
        nothing = {"color": "#808080", "index": 0, "text": defaults["noValue"]}
        options = {"match": "null+nan", "result": nothing}
        assert defaults["mappings"][-1] == {"options": options, "type": "special"}


def test_tables_are_drawn_alike(dashboards: Dashboards) -> None:
    """Small rows, the highest first, columns that can be searched; bars begin at zero and are full at the limit."""
    for _, panel in _of(dashboards, "table"):
        defaults = panel["fieldConfig"]["defaults"]
        sort = panel["options"]["sortBy"][0]["displayName"]
        assert panel["options"] == {
            "cellHeight": "sm",
            "enablePagination": False,
            "frameIndex": 0,
            "showHeader": True,
            "sortBy": [{"desc": True, "displayName": sort}],
        }
        assert defaults == {
            "color": {"mode": "thresholds"},
            "custom": TABLE,
            "mappings": [],
            "thresholds": {"mode": "absolute", "steps": [{"color": "green", "value": None}]},
            "unit": "",
        }
        for _, looks in _looks(panel):
            cell = looks.get("custom.cellOptions")
            assert cell is None or cell in CELLS.values()
            scale = [looks.get("min"), looks.get("max")]
            assert scale == ([0, 1] if cell == CELLS["bar"] else [None, None])
            if "thresholds" in looks:
                assert looks["thresholds"]["mode"] == "absolute"
            for mapping in looks.get("mappings", ()):
                assert [option["index"] for option in mapping["options"].values()] == [*range(len(mapping["options"]))]


def test_tables_show_the_columns_of_their_queries_once(dashboards: Dashboards) -> None:
    """Columns stand in one order, each under one title; rows of equal labels are one row."""
    for _, panel in _of(dashboards, "table"):
        merge, organize = panel["transformations"]
        assert merge == {"id": "merge", "options": {}}
        assert organize["id"] == "organize"
        titles = organize["options"]["renameByName"]
        columns = [title for title, _ in _looks(panel)]
        assert organize["options"] == {
            "excludeByName": {},
            "includeByName": dict.fromkeys(titles, True),
            "indexByName": {name: columns.index(title) for name, title in titles.items()},
            "renameByName": titles,
        }
        # alone, the first query's value is called otherwise
        assert titles.get("Value") == titles.get("Value #A")


def test_queries_are_named_in_order(dashboards: Dashboards) -> None:
    """Queries are named A, B, C, to which overrides and columns refer, and are shown as code."""
    for panel in (panel for dashboard in dashboards.values() for panel in panels_of(dashboard)):
        assert panel["type"] == "row" or panel["datasource"] == SOURCE
        for letter, target in zip(ascii_uppercase, panel.get("targets", ()), strict=False):
            assert (target["refId"], target["editorMode"], target["datasource"]) == (letter, "code", SOURCE)
            assert target["format"] == ("table" if panel["type"] == "table" else "time_series")


def test_links_lead_where_their_title_says(dashboards: Dashboards) -> None:
    """Links of cells open in the same tab, links of panels in another; addresses have all choices."""
    panels = [panel for dashboard in dashboards.values() for panel in panels_of(dashboard)]
    of_panels = [link for panel in panels for link in panel.get("links", ())]
    looks = (look for _, panel in _of(dashboards, "table") for _, look in _looks(panel))
    of_cells = [link for look in looks for link in look.get("links", ())]
    assert {link["title"]: link["url"] for link in of_panels + of_cells} == LINKS
    assert of_panels == [LINK | {"title": link["title"], "url": LINKS[link["title"]]} for link in of_panels]
    assert [(link["targetBlank"], link["url"]) for link in of_cells] == [
        (False, LINKS[link["title"]]) for link in of_cells
    ]


def test_runbooks_come_after_the_other_links() -> None:
    """A link to the alert's runbook is the last one, and exists only where the site has runbooks."""
    site = Site(runbook_url="https://wiki.example.com/{alert}")
    model = grafana_dashboards(Scope(site=site))["quotascope-overview"]
    links = {(panel["type"], panel["title"]): panel.get("links", ()) for panel in panels_of(model)}
    titles = {key: [link["title"] for link in of_panel] for key, of_panel in links.items()}
    assert titles["table", "Closest to the limit, not throttled yet"] == [
        "Runbook: KafkaQuotaNearLimit",
        "Runbook: KafkaQuotaManyNearLimit",
        "Runbook: KafkaQuotaLimitPredicted",
    ]
    assert titles["stat", "Refused (error 89)"] == ["Controller mutations", "Runbook: KafkaQuotaRefusalsRising"]
    assert titles["stat", "Connections waiting"] == ["On which brokers"]
    assert titles["stat", "Throttled"] == [
        "Teams",
        "Runbook: KafkaQuotaManyClientsThrottled",
        "Runbook: KafkaQuotaThrottleStorm",
    ]
    _, link, _ = links["stat", "Throttled"]
    assert link["url"] == "https://wiki.example.com/KafkaQuotaManyClientsThrottled"
