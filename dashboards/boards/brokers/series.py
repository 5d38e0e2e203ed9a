"""Series of the chosen brokers."""

from __future__ import annotations

from quotascope.metrics.catalog import Family

from ...model import Query
from ...scope import Scope
from ...shortcuts import limit, line
from ...variables import one_of

CHOSEN = one_of("broker")


def of(scope: Scope, family: Family, *labels: str) -> Query:
    """The highest for each combination of labels, the broker first among them."""
    return line(scope.by("max", scope.of(family, CHOSEN), *labels), _name(labels))


def limit_of(scope: Scope, family: Family, *labels: str) -> Query:
    """As ``of``, drawn as a limit."""
    selected = scope.by("max", scope.of(family, CHOSEN), *labels)
    of_what = "limit" if len(labels) == 1 else "limit of"
    return limit(selected, f"{of_what} {_name(labels)}")


def _name(labels: tuple[str, ...]) -> str:
    first, *more = labels
    return " ".join((*(f"{{{{{label}}}}}" for label in more), f"on {{{{{first}}}}}"))
