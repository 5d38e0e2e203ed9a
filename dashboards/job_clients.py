"""
The Kafka clients of jobs, beside what brokers measure of them.

Depending on the rule, brokers measure a user, a client-id, or a pair: a job's client is looked up as all three. The
cluster is not part of the match, because few jobs report theirs (`spark.quotascope.cluster`). If two clusters have the
same names, choose one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Final

from quotascope.alerts.promql import aggregate, both, either, grouped, select
from quotascope.alerts.recorded import waiting
from quotascope.metrics import catalog

from .expressions import utilization
from .scope import Scope

CLIENT: Final = ("app", "query", "side", "user", "client_id")
"""One client of one job."""
SEEN_AS: Final = {
    "3": "user + client-id",
    "2": "user",
    "1": "client-id",
    "0": "not seen",
}
"""By the numbers of `seen_as`."""
_SHAPES: Final = (
    (("user", "client_id"), ('user!=""', 'client_id!=""')),
    (("user",), ('user!=""', 'client_id=""')),
    (("client_id",), ('user=""', 'client_id!=""')),
)
"""The labels that an entity has, and the matchers of such entities; the strongest first."""
_SIDES: Final = {
    "read": "fetch|request",
    "write": "produce|request",
    "admin": "controller_mutation|request",
}
"""The quotas that a client of that side runs into."""

View = Callable[..., str]
"""Some number of the brokers' for each entity, restricted by matchers."""


def waits(scope: Scope, *chosen: str) -> str:
    """How long each client of the chosen jobs waits."""
    return scope.by("max", waiting(*chosen), *CLIENT)


def of_jobs(view: View, *chosen: str) -> str:
    """The brokers' numbers for the entities of the chosen jobs."""
    return _any(both(view(*matchers), _jobs(on, chosen), on) for on, matchers in _SHAPES)


def behind(scope: Scope, view: View) -> str:
    """How long the clients of jobs wait that are entities of a view."""
    return both(waits(scope), beside(scope, view), CLIENT)


def beside(scope: Scope, view: View, *chosen: str) -> str:
    """The brokers' numbers with the labels of the jobs' clients; none for clients that brokers do not measure."""
    return _any(
        _beside(scope, view(*matchers, _of(side)), on, (*chosen, _is(side)))
        for on, matchers in _SHAPES
        for side in _SIDES
    )


def seen_as(scope: Scope, *chosen: str) -> str:
    """Whether brokers measure each client of the chosen jobs as a user, client-id or pair: a number of `SEEN_AS`."""
    found = [
        _beside(scope, _present(scope, (*matchers, _of(side)), code), on, (*chosen, _is(side)))
        for code, (on, matchers) in zip((3, 2, 1), _SHAPES, strict=True)
        for side in _SIDES
    ]
    return _any([*found, _zero(scope, (), chosen)])


def keyed(expression: str) -> str:
    """Joins all labels of a client into one, by which Grafana merges rows; see `expressions.row_key`."""
    names = ", ".join(f'"{label}"' for label in CLIENT)
    return f'label_join({expression}, "client", " / ", {names})'


def _present(scope: Scope, matchers: tuple[str, ...], code: int) -> str:
    return f"{code} + 0 * {grouped(utilization(scope, *matchers))}"


def _beside(scope: Scope, view: str, on: tuple[str, ...], chosen: tuple[str, ...]) -> str:
    """One number for each combination of the labels in `on`, for every client that has them."""
    best = aggregate("max", on, view)
    zero = _zero(scope, on, chosen)
    return f"{zero} + on ({', '.join(on)}) group_left () {best}"


def _zero(scope: Scope, on: tuple[str, ...], chosen: tuple[str, ...]) -> str:
    return f"0 * {scope.by('max', _jobs(on, chosen), *CLIENT)}"


def _jobs(on: tuple[str, ...], chosen: tuple[str, ...]) -> str:
    return select(catalog.SPARK_THROTTLE_MAX_SECONDS, *chosen, *_named(on))


def _of(side: str) -> str:
    return f'quota_type=~"{_SIDES[side]}"'


def _is(side: str) -> str:
    return f'side="{side}"'


def _named(on: tuple[str, ...]) -> list[str]:
    return [f'{label}!=""' for label in on]


def _any(expressions: Iterable[str]) -> str:
    return reduce(either, expressions)
