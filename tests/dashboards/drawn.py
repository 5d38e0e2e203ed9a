"""Dashboards in a browser, drawn by Grafana's own components from what a Prometheus answers (`grafana/board.jsx`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from PIL import Image
from tests.chromium.browser import Browser, browser
from tests.servers import served

WIDTH: Final = 1600
_HEIGHT: Final = 8000
"""More than any dashboard has: what is out of sight has no texts."""
_UNRESOLVED: Final = ("${", "$__", "undefined", "NaN", "[object")
_SLOW: Final = "/icons/unicons/sync-slash.svg"
"""Icon of the button that cancels a query, which Grafana shows while one takes long: the page has no such file."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    prometheus: str
    """URL."""
    start: float
    """Seconds since 1970, as `end`."""
    end: float
    scrape_seconds: int
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values by name; others are *All*, or empty."""


_OF_SLOW_QUERY: Final = "/sync-slash.svg"
"""The icon that cancels a query which takes long on a busy machine; Grafana's packages lack its file."""


@dataclass(frozen=True, slots=True)
class Drawn:
    report: Json
    complaints: list[str]
    """Errors of scripts, and what the console shows."""
    picture: Image.Image

    def empty(self) -> set[str]:
        """The titles of graphs and tables without data."""
        return {panel["title"] for panel in self.report["panels"] if panel["nothing"] is not None}

    def faults(self, boards: Mapping[str, Json]) -> list[str]:
        """Return the faults of a drawn dashboard; links may lead to `boards`, by uid."""
        faults = [f"script: {complaint}" for complaint in self.complaints if _OF_SLOW_QUERY not in complaint]
        faults += [f"marks: {error}" for error in self.report["errors"]]
        faults += [f"values of a variable: {refusal}" for refusal in self.report["refused"]]
        for variable in self.report["variables"]:
            if variable["error"]:
                faults.append(f"variable {variable['name']}: {variable['error']}")
        for panel in self.report["panels"]:
            faults += [f"{panel['title']}: {fault}" for fault in _of_panel(panel, boards)]
        return faults

    def choices(self) -> list[Json]:
        """The variables whose values come from Prometheus."""
        return [
            variable
            for variable in self.report["variables"]
            if variable["type"] == "query" and variable["name"] != "backtick"
        ]


def _of_panel(panel: Json, boards: Mapping[str, Json]) -> Iterator[str]:
    yield from panel["errors"]
    for text in panel["cut"]:
        yield f"cut: {text}"
    for column in panel["unsorted"]:
        yield f"not sorted by {column}"
    for series in panel["fields"]:
        if not series["isUnitKnown"]:
            yield f"unknown unit of {series['name']}"
    clusters = {field["labels"].get("cluster", "") for field in panel["fields"]}
    if panel["type"] == "timeseries" and len(clusters) > 1 and not all(map(_names_cluster, panel["fields"])):
        yield "legend without the cluster"
    for text in _UNRESOLVED:
        if text in panel["text"]:
            yield f"{text} in {panel['text']!r}"
    links = [*panel["links"], *(link for field in panel["fields"] for link in field["links"])]
    for link in dict.fromkeys(links):
        yield from _of_link(link, boards)


def _names_cluster(series: Json) -> bool:
    return series["labels"].get("cluster", "") in series["name"]


def _of_link(link: str, boards: Mapping[str, Json]) -> Iterator[str]:
    parts = urlsplit(link)
    query = parse_qs(parts.query, keep_blank_values=True)
    board = boards.get(parts.path.removeprefix("/d/"))
    if board is None:
        yield f"link to no dashboard: {link}"
        return
    names = {variable["name"] for variable in board["templating"]["list"]}
    chosen = {parameter.removeprefix("var-") for parameter in query if parameter.startswith("var-")}
    if not {"datasource", "cluster"} <= chosen <= names or not {"from", "to"} <= {*query}:
        yield f"link with other variables than the dashboard's: {link}"
    if any(
        text in value.replace("$__all", "") for values in query.values() for value in values for text in _UNRESOLVED
    ):
        yield f"link with a variable left: {link}"


class Drawing:
    """A browser with the page that draws dashboards, one after the other."""

    def __init__(self, tab: Browser, address: str) -> None:
        self._browser = tab
        tab.open(f"{address}/board.html", WIDTH, _HEIGHT)

    def draw(self, board: Json, view: View, *, expanded: bool = True) -> Drawn:
        """Draw a dashboard; collapsed rows are open when `expanded`."""
        self._browser.complaints.clear()
        self._browser.resize(WIDTH, _HEIGHT)
        request = {
            "board": board,
            "prometheus": view.prometheus,
            "from": view.start,
            "to": view.end,
            "scrapeSeconds": view.scrape_seconds,
            "variables": dict(view.variables),
            "expanded": expanded,
        }
        report = self._browser.evaluate(f"draw({json.dumps(request)})")
        self._browser.resize(WIDTH, report["height"])
        picture = self._browser.picture()
        complaints = [complaint for complaint in self._browser.complaints if _SLOW not in complaint]
        return Drawn(report, complaints, picture)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Requests are not worth a line."""


@contextmanager
def drawing(page: Path, folder: Path) -> Iterator[Drawing]:
    """A browser that keeps its files in a folder, and a server of the page for the length of a `with` block."""
    handler = partial(_Quiet, directory=page)
    with served(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server, browser(folder) as tab:
        yield Drawing(tab, f"http://127.0.0.1:{server.server_port}")
