"""How much of the request threads is used, and by what."""

from __future__ import annotations

from quotascope.alerts.promql import either
from quotascope.alerts.recorded import BROKER_CAPACITY_USED, BROKER_REQUEST
from quotascope.metrics import catalog

from ... import steps
from ...expressions import ratio, total
from ...model import Graph, Row
from ...scope import Scope
from ...shortcuts import graph, limit, line
from .series import CHOSEN


def request_capacity(scope: Scope) -> Row:
    """How much of the broker is used, and by what."""
    panels = ((12, _share(scope)), (12, _threads(scope)))
    return Row(title="Request capacity", panels=panels)


def _share(scope: Scope) -> Graph:
    return graph(
        "Share of the request threads that is busy",
        "Request time of clients under a quota and of what no quota counts, of all I/O and network threads. Near 1 every request waits in the queue.",
        "percentunit",
        line(_used(scope), "broker {{broker}}"),
        steps=steps.CAPACITY,
    )


def _threads(scope: Scope) -> Graph:
    return graph(
        "Request time, in threads",
        "What clients and the broker itself use; the dashed line is what there is.",
        "short",
        line(_of_clients(scope), "clients on {{broker}}"),
        line(_exempt(scope), "counted by no quota on {{broker}}"),
        limit(_capacity(scope), "threads of {{broker}}"),
    )


def _used(scope: Scope) -> str:
    if scope.recorded:
        return scope.recorded_of(BROKER_CAPACITY_USED, CHOSEN)
    threads = scope.of(catalog.REQUEST_THREADS, CHOSEN)
    clients = scope.by("max", threads, "broker", "user", "client_id")
    everything = scope.by("sum", either(clients, _exempt(scope)), "broker")
    return ratio(everything, _capacity(scope), scope.keys("broker"))


def _of_clients(scope: Scope) -> str:
    if scope.recorded:
        return scope.recorded_of(BROKER_REQUEST, CHOSEN)
    return total(scope, catalog.REQUEST_THREADS, "broker", matchers=(CHOSEN,))


def _exempt(scope: Scope) -> str:
    return scope.by("max", scope.of(catalog.EXEMPT_REQUEST_THREADS, CHOSEN), "broker")


def _capacity(scope: Scope) -> str:
    return scope.by("max", scope.of(catalog.REQUEST_CAPACITY_THREADS, CHOSEN), "broker")
