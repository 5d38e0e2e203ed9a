"""The dashboards, one file each, one function per row."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Board
from ..runbooks import with_runbooks
from ..scope import Scope
from . import brokers, entity, exporter, mutations, overview, spark

_ALL = (overview, entity, mutations, brokers, spark, exporter)


def boards(scope: Scope) -> Iterator[Board]:
    """All dashboards."""
    for module in _ALL:
        yield with_runbooks(module.board(scope), scope.site)
