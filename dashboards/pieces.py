"""Pieces of Grafana's JSON that need no library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import ascii_uppercase
from typing import Final

from .model import Column, Link, Query, Table
from .normal import Json

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def marks(query: Query) -> list[dict[str, Json]]:
    """Marks in all graphs of a dashboard."""
    return [
        {
            "datasource": DATASOURCE,
            "enable": True,
            "expr": query.expr,
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": query.legend,
            "titleFormat": "Limits changed",
        }
    ]


def organised(panel: Table) -> dict[str, Json]:
    """The columns that are declared, in that order and under those titles, and no others."""
    names = [tuple(_names(column)) for column in panel.columns]
    return {
        "id": "organize",
        "options": {
            "excludeByName": {},
            "includeByName": {name: True for column in names for name in column},
            "indexByName": {
                name: index for index, column in enumerate(names) for name in column
            },
            "renameByName": {
                name: column.title
                for column, own in zip(panel.columns, names, strict=True)
                for name in own
            },
        },
    }


def _names(column: Column) -> Iterator[str]:
    """What Grafana calls the column before it is renamed."""
    if column.source not in ascii_uppercase:
        yield column.source
        return
    yield f"Value #{column.source}"
    if column.source == "A":  # the others are of the same rows: none is alone
        yield "Value"


def link_list(links: Iterable[Link]) -> list[dict[str, Json]]:
    """Links of a panel, each in a tab of its own."""
    return [
        {
            "asDropdown": False,
            "icon": "external link",
            "includeVars": False,
            "keepTime": False,
            "tags": [],
            "targetBlank": True,
            "title": link.title,
            "tooltip": "",
            "type": "link",
            "url": link.url,
        }
        for link in links
    ]
