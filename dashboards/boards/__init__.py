"""The dashboards: a file for each, a function for each row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..scope import Scope
from . import brokers, entity, exporter, mutations, overview, shadow, spark, teams


def boards(scope: Scope) -> Iterator[dict[str, Any]]:
    """Yield all dashboards."""
    for module in (overview, entity, teams, mutations, brokers, shadow, spark, exporter):
        yield module.board(scope)
