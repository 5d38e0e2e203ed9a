"""Variables of dashboards; their values come from quotascope's own series only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quotascope.metrics.catalog import BUILD_INFO, Family

from .recorded import ENTITY_TEAM
from .scope import Scope

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
"""Data source that the viewer chose."""
_ON_LOAD: Final = 1
_ON_TIME_RANGE_CHANGE: Final = 2
_BY_NAME: Final = 1
_HIDDEN: Final = 2

Variable = dict[str, Any]
"""JSON of a variable."""


def common(scope: Scope) -> tuple[Variable, ...]:
    """Return the variables of every dashboard: data source and cluster."""
    source = {"query": "prometheus", "refresh": _ON_LOAD}
    return (
        _variable("datasource", "Data source", "datasource", **source),
        _choice("cluster", "Cluster", BUILD_INFO.name, scope.cluster),
    )


def teams() -> Variable:
    """Return the variable of teams of clients; it has values if teams are configured for the alerts."""
    return _choice("team", "Team", ENTITY_TEAM, "team")


def values(families: Sequence[Family], label: str, title: str, *matchers: str) -> Variable:
    """Return a variable of the values that a label has in some families."""
    names = "|".join(family.name for family in families)
    if len(families) > 1:
        names, matchers = "", (f'__name__=~"{names}"', *matchers)
    selector = f"{{{','.join(matchers)}}}" if matchers else ""
    return _choice(label, title, f"{names}{selector}", label)


def _choice(name: str, title: str, series: str, label: str) -> Variable:
    return _variable(
        name,
        title,
        "query",
        query=f"label_values({series}, {label})",
        current={"selected": True, "text": "All", "value": "$__all"},
        datasource=DATASOURCE,
        includeAll=True,
        multi=True,
        allValue=".*",  # .+ would leave out series without this label
        refresh=_ON_TIME_RANGE_CHANGE,
        sort=_BY_NAME,
    )


def text(name: str, label: str) -> Variable:
    """Return a variable of free text: a list cannot have ten thousand names, nor an empty one."""
    empty = {"selected": True, "text": "", "value": ""}
    return _variable(name, label, "textbox", query="", current=empty)


NOTE: Final = "${backtick:raw}"
"""End of a title above panels with texts of variables: empty, or a warning if one of the texts has a backtick."""
_BACKTICK: Final = (
    "`: Grafana cannot ask for a name with a backtick; the page /entity of the exporter and quotascope explain can"
)


def backtick_note(*texts: str) -> Variable:
    """
    Return the hidden variable of `NOTE`, for the names of variables with a text.

    Expressions have a name as a regular expression in a raw string, the only form in Grafana and PromQL that works with
    every other character (tests/dashboards/test_names.py); a backtick ends it, and Prometheus refuses the query. The
    browser looks for a backtick: the query is constant, and its answer matches if one of the texts, as a class of
    characters, has one.
    """
    classes = "|".join(f"[${{{name}:lucene}}]" for name in texts)
    hidden = _variable(
        "backtick",
        "",
        "query",
        query=f'query_result(label_replace(vector(1), "note", "{_BACKTICK}", "", ""))',
        regex=f'\\{{note="(?:{classes})(?<value>[^"]*)".*',
        current={"selected": False, "text": "", "value": ""},
        datasource=DATASOURCE,
        includeAll=False,
        multi=False,
        refresh=_ON_LOAD,
        sort=0,
    )
    return {**hidden, "hide": _HIDDEN}


def _variable(name: str, label: str, kind: str, **special: Any) -> Variable:  # noqa: ANN401  # JSON
    common = {"name": name, "label": label, "type": kind, "hide": 0, "options": []}
    return {**common, **special}


def one_of(label: str) -> str:
    """
    Return a matcher on the chosen values of a variable with the name of the label.

    >>> one_of("app")
    'app=~`${app:regex}`'
    """
    return f"{label}=~`${{{label}:regex}}`"


def exactly_or_none(label: str) -> str:
    """
    Return a matcher on the text of a variable, or on an empty label.

    >>> exactly_or_none("user")
    'user=~`|${user:regex}`'
    """
    return f"{label}=~`|${{{label}:regex}}`"


def contains(label: str, variable: str = "") -> str:
    """
    Return a matcher on all values that contain the text of a variable: all values if it is empty.

    >>> contains("user")
    'user=~`(?is).*${user:regex}.*`'
    """
    return f"{label}=~`(?is).*${{{variable or label}:regex}}.*`"
