"""Single numbers that several dashboards show in their first row."""

from __future__ import annotations

from collections.abc import Callable

from quotascope.metrics import catalog

from . import steps
from .expressions import sources_down as failed
from .expressions import total
from .model import Link, Row, Stat
from .scope import Scope
from .shortcuts import stat

_COLUMNS = 24
_TWICE = "KRaft counts each twice, on the broker and on the controller."


def right_now(scope: Scope, *numbers: Callable[[Scope], Stat]) -> Row:
    """Numbers side by side, as wide as there is room."""
    width = _COLUMNS // len(numbers)
    panels = tuple((width, number(scope)) for number in numbers)
    return Row(title="Right now", panels=panels, height=4)


def how_many_throttled(scope: Scope, description: str, delayed: str) -> Stat:
    """How many are delayed; `delayed` gives a series for each."""
    return stat(
        scope,
        "Throttled",
        description,
        "short",
        scope.or_zero(scope.by("count", delayed)),
        steps=steps.ENTITIES,
    )


def longest(scope: Scope, title: str, description: str, delays: str) -> Stat:
    """The longest of some delays; 0 when there are none."""
    return stat(
        scope,
        title,
        description,
        "s",
        scope.or_zero(scope.by("max", delays)),
        steps=steps.DELAY,
    )


def refused(scope: Scope, title: str, description: str, *links: Link) -> Stat:
    """How often changes of topics are refused."""
    return stat(
        scope,
        title,
        f"{description} {_TWICE}",
        "cps",
        total(scope, catalog.THROTTLING_ERRORS),
        *links,
        steps=steps.REFUSED,
        nothing="none seen",
    )


def sources_down(scope: Scope, description: str, *links: Link) -> Stat:
    """How many brokers and controllers cannot be read."""
    return stat(
        scope,
        "Sources down",
        description,
        "short",
        scope.or_zero(scope.by("count", failed(scope))),
        *links,
        steps=steps.DOWN,
    )
