"""The past of a cluster that commands ask, of a server or of a table of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quotascope.exporter.sources.prometheus_limits import ExporterLimits
    from quotascope.pipeline.prometheus.advice import Present
    from quotascope.pipeline.prometheus.evidence import Entity
    from quotascope.pipeline.prometheus.past import Past


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPast:
    """A server or table that is asked about the past of a cluster."""

    past: Past
    limits: Callable[[], tuple[Past, dict[Entity, Present]]]
    """
    Reads today's limits as exporters of ours show them; none where there is no exporter.

    The past has caveats about limits on which exporters disagree.
    """
    gaps: Callable[[], list[tuple[str, float, float]]]
    """Reads the times without a sample of a node: its name, begin and end."""


def _state(limit: float | None) -> str:
    """Return the state of a limit, as in `Present.state`."""
    if limit is None:
        return "unknown"
    return "set" if limit < float("inf") else "unlimited"


def with_limits(past: Past, answer: ExporterLimits | None) -> tuple[Past, dict[Entity, Present]]:
    """Return a past with the caveats about the limits that exporters show, and these limits; none without exporters."""
    from quotascope.pipeline.prometheus.advice import Present

    if answer is None:
        return past, {}
    presents = {
        (kind, user or None, client_id or None): Present(
            state=_state(row.limit),
            limit=row.limit,
            rule=row.rule,
        )
        for (kind, user, client_id), row in answer.limits.items()
    }
    return replace(past, caveats=(*past.caveats, *answer.caveats)), presents
