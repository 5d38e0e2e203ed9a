"""What many exporters do without: finding brokers, pushing to a collector, and reading the configuration again."""

from __future__ import annotations

from quotascope.metrics import catalog

from ...expressions import counter_rate
from ...model import Graph, Row
from ...scope import Scope
from ...shortcuts import graph, line


def around(scope: Scope) -> Row:
    """The way in and the way out besides scrapes."""
    graphs = _found(scope), _failed_looks(scope), _pushes(scope), _configuration(scope)
    panels = tuple((6, each) for each in graphs)
    title = "Discovery, push over OTLP, and configuration"
    return Row(title=title, panels=panels, collapsed=True)


def _found(scope: Scope) -> Graph:
    return graph(
        "Nodes found, by discovery",
        catalog.DISCOVERED_SOURCES.help,
        "short",
        line(
            scope.by("max", scope.of(catalog.DISCOVERED_SOURCES), "discovery"),
            "{{discovery}}",
        ),
    )


def _failed_looks(scope: Scope) -> Graph:
    failed = counter_rate(scope, catalog.DISCOVERY_ERRORS)
    return graph(
        "Failed looks for brokers",
        "Per second, by discovery: new brokers are not read meanwhile, and those that are gone are not forgotten. The exporter's log says why.",
        "cps",
        line(scope.by("sum", failed, "discovery"), "{{discovery}}"),
    )


def _pushes(scope: Scope) -> Graph:
    pushes = counter_rate(scope, catalog.OTLP_EXPORTS)
    return graph(
        "Pushes, by outcome",
        "Per second: success, partial when the collector refused some points, or failure. The exporter's log says why.",
        "cps",
        line(scope.by("sum", pushes, "outcome"), "{{outcome}}"),
        stacked=True,
    )


def _configuration(scope: Scope) -> Graph:
    return graph(
        "Configuration can be used",
        "1 while the exporter works with its configuration as it was last read; 0 when it was refused, and the one before is in force. The exporter's log names file, line and field.",
        "short",
        line(
            scope.by("min", scope.of(catalog.CONFIG_LAST_RELOAD_SUCCESSFUL)),
            "configuration",
        ),
    )
