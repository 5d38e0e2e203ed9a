"""PromQL as the parser sees it: what the rules of pint look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import promql_parser as parser

from quotascope.metrics.catalog import Family, families, job_families

FAMILIES: Final[dict[str, Family]] = {family.name: family for family in (*families(), *job_families())}
OF_PROMETHEUS: Final = ("instance", "job")
"""Labels that every scraped series has, whatever its family declares."""


def parsed(expression: str) -> Any:
    """The tree of an expression. Raises ``ValueError`` when Prometheus would not take it."""
    return parser.parse(expression)


def nodes(node: Any) -> Iterator[Any]:
    """A node and everything in it."""
    yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector", "args"):
        inner = getattr(node, name, None)
        for each in inner if isinstance(inner, list) else [inner]:
            if each is not None and type(each).__module__.startswith("promql_parser"):
                yield from nodes(each)


def selectors(expression: str) -> Iterator[parser.VectorSelector]:
    """Every place where an expression reads series."""
    yield from (node for node in nodes(parsed(expression)) if isinstance(node, parser.VectorSelector))


def matched_labels(selector: Any) -> set[str]:
    """The labels that a selector asks for."""
    return {matcher.name for matcher in selector.matchers.matchers if matcher.name != "__name__"}
