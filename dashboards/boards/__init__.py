"""The dashboards, one file each, one function per row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..scope import Scope
from . import brokers, entity, exporter, mutations, overview, shadow, spark


def boards(scope: Scope) -> Iterator[dict[str, Any]]:
    """All dashboards."""
    for each in (overview, entity, mutations, brokers, shadow, spark, exporter):
        yield each.board(scope)
