"""Panels in a few words: what nearly all of a kind have in common is filled in."""

from __future__ import annotations

from .expressions import row_key
from .model import Column, Graph, Link, Query, Stat, Step, Table
from .scope import Scope

WHO = "{{user}} / {{client_id}}"


def line(expr: str, legend: str) -> Query:
    """Usage, or whatever is looked at."""
    return Query(expr=expr, legend=legend)


def limit(expr: str, legend: str = "limit") -> Query:
    """What usage is compared with."""
    return Query(expr=expr, legend=legend, is_limit=True)


def graph(  # a panel has as many properties
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    steps: tuple[Step, ...] = (),
    stacked: bool = False,
    links: tuple[Link, ...] = (),
) -> Graph:
    """Lines over time."""
    return Graph(
        title=title,
        description=description,
        unit=unit,
        queries=queries,
        steps=steps,
        stacked=stacked,
        links=links,
    )


def stat(  # noqa: PLR0913  # a panel has as many properties
    scope: Scope,
    title: str,
    description: str,
    unit: str,
    expr: str,
    *links: Link,
    steps: tuple[Step, ...],
    nothing: str = "no data",
) -> Stat:
    """One number now, for each cluster."""
    return Stat(
        title=title,
        description=description,
        unit=unit,
        query=Query(expr=expr, legend=f"{{{{{scope.cluster}}}}}"),
        steps=steps,
        nothing=nothing,
        links=links,
    )


def table(
    title: str,
    description: str,
    exprs: tuple[str, ...],
    *cells: Column,
    sort: str,
    links: tuple[Link, ...] = (),
) -> Table:
    """Rows about users and client-ids: the first expression chooses them, the others add columns."""
    return Table(
        title=title,
        description=description,
        queries=tuple(Query(expr=row_key(expr)) for expr in exprs),
        columns=cells,
        sort=sort,
        links=links,
    )
