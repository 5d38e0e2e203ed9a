"""What a viewer chooses at the top of a dashboard; values come from our own series only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quotascope.alerts.recorded import ENTITY_OWNER
from quotascope.metrics.catalog import BUILD_INFO, Family

from .scope import Scope

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
"""The data source that the viewer chose."""
_ON_LOAD: Final = 1
_ON_TIME_RANGE_CHANGE: Final = 2
_BY_NAME: Final = 1

Variable = dict[str, Any]
"""Grafana's JSON of a variable."""


def common(scope: Scope) -> tuple[Variable, ...]:
    """Data source and cluster: every dashboard has them."""
    source = {"query": "prometheus", "refresh": _ON_LOAD}
    return (
        _variable("datasource", "Data source", "datasource", **source),
        _choice("cluster", "Cluster", BUILD_INFO.name, scope.cluster),
    )


def owners() -> Variable:
    """The owners of the clients that are shown; values are there where owners are configured for the alerts."""
    return _choice("owner", "Owner", ENTITY_OWNER, "owner")


def values(families: Sequence[Family], label: str, title: str, *matchers: str) -> Variable:
    """The values that a label has in some families."""
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
    """Free text: ten thousand names are too many for a list, and an empty name could not be chosen there."""
    empty = {"selected": True, "text": "", "value": ""}
    return _variable(name, label, "textbox", query="", current=empty)


def _variable(name: str, label: str, kind: str, **special: Any) -> Variable:  # noqa: ANN401  # JSON
    common = {"name": name, "label": label, "type": kind, "hide": 0, "options": []}
    return {**common, **special}


def one_of(label: str) -> str:
    """
    A matcher on the chosen values of a variable of the same name, whatever characters they hold.

    >>> one_of("app")
    'app=~`${app:regex}`'
    """
    return f"{label}=~`${{{label}:regex}}`"


def exactly_or_none(label: str) -> str:
    """
    A matcher on the text of a variable, or on no value at all.

    >>> exactly_or_none("user")
    'user=~`|${user:regex}`'
    """
    return f"{label}=~`|${{{label}:regex}}`"


def contains(label: str, variable: str = "") -> str:
    """
    A matcher on all values that contain the text of a variable: all, when it is empty.

    >>> contains("user")
    'user=~`(?is).*${user:regex}.*`'
    """
    return f"{label}=~`(?is).*${{{variable or label}:regex}}.*`"
