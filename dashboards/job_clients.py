"""
The Kafka clients of jobs, beside the figures that brokers measure for them.

Depending on the rule, brokers measure a user, a client-id, or a pair: a job's client is looked up as all three. The
cluster is not part of the match, because few jobs report theirs (`spark.quotascope.cluster`). If two clusters have the
same names, choose one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Final

from quotascope.metrics import catalog

from .expressions import utilization
from .promql import aggregate, both, either, grouped, select
from .recorded import waiting
from .scope import Scope

CLIENT: Final = ("app", "query", "side", "user", "client_id")
"""Labels of a client of a job."""
SEEN_AS: Final = {
    "3": "user + client-id",
    "2": "user",
    "1": "client-id",
    "0": "not seen",
}
"""Texts for the numbers of `seen_as`."""
_SHAPES: Final = (
    (("user", "client_id"), ('user!=""', 'client_id!=""')),
    (("user",), ('user!=""', 'client_id=""')),
    (("client_id",), ('user=""', 'client_id!=""')),
)
"""Labels of an entity, and matchers of such entities; the strongest first."""
_SIDES: Final = {
    "read": "fetch|request",
    "write": "produce|request",
    "admin": "controller_mutation|request",
}
"""Quota types that apply to a client, by its side."""

View = Callable[..., str]
"""A function that returns figures of brokers by entity, restricted by matchers."""


def waits(scope: Scope, *chosen: str) -> str:
    """Return how long each client of the chosen jobs waits."""
    return scope.by("max", waiting(*chosen), *CLIENT)


def of_jobs(view: View, *chosen: str) -> str:
    """Return the brokers' figures for the entities of the chosen jobs."""
    return _any_of(both(view(*matchers), _jobs(on, chosen), on) for on, matchers in _SHAPES)


def behind(scope: Scope, view: View) -> str:
    """Return how long clients of jobs wait, if they are entities of a view."""
    return both(waits(scope), beside(scope, view), CLIENT)


def beside(scope: Scope, view: View, *chosen: str) -> str:
    """Return the brokers' figures with the labels of jobs' clients; none for clients that brokers do not measure."""
    return _any_of(
        _beside(scope, view(*matchers, _quota_types_of(side)), on, (*chosen, _clients_of(side)))
        for on, matchers in _SHAPES
        for side in _SIDES
    )


def seen_as(scope: Scope, *chosen: str) -> str:
    """Return a number of `SEEN_AS` for each client of the chosen jobs: brokers measure a user, client-id or pair."""
    views = [
        _beside(
            scope, _code_of_measured(scope, (*matchers, _quota_types_of(side)), code), on, (*chosen, _clients_of(side))
        )
        for code, (on, matchers) in zip((3, 2, 1), _SHAPES, strict=True)
        for side in _SIDES
    ]
    return _any_of([*views, _zero(scope, (), chosen)])


def keyed(expression: str) -> str:
    """Join all labels of a client into one, by which Grafana merges rows; see `expressions.row_key`."""
    names = ", ".join(f'"{label}"' for label in CLIENT)
    return f'label_join({expression}, "client", " / ", {names})'


def _code_of_measured(scope: Scope, matchers: tuple[str, ...], code: int) -> str:
    """Return a number for each entity that brokers measure."""
    return f"{code} + 0 * {grouped(utilization(scope, *matchers))}"


def _beside(scope: Scope, view: str, on: tuple[str, ...], chosen: tuple[str, ...]) -> str:
    """Return one number for each combination of the labels in `on`, for every client with these labels."""
    best = aggregate("max", on, view)
    zero = _zero(scope, on, chosen)
    return f"{zero} + on ({', '.join(on)}) group_left () {best}"


def _zero(scope: Scope, on: tuple[str, ...], chosen: tuple[str, ...]) -> str:
    """Return 0 for each client of the chosen jobs that has the labels in `on`."""
    return f"0 * {scope.by('max', _jobs(on, chosen), *CLIENT)}"


def _jobs(on: tuple[str, ...], chosen: tuple[str, ...]) -> str:
    return select(catalog.SPARK_THROTTLE_MAX_SECONDS, *chosen, *_named(on))


def _quota_types_of(side: str) -> str:
    return f'quota_type=~"{_SIDES[side]}"'


def _clients_of(side: str) -> str:
    return f'side="{side}"'


def _named(on: tuple[str, ...]) -> list[str]:
    return [f'{label}!=""' for label in on]


def _any_of(expressions: Iterable[str]) -> str:
    return reduce(either, expressions)
