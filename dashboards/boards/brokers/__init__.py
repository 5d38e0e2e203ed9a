"""Brokers: delay queues, request capacity, and the throttles beside those of clients."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog

from ... import steps
from ...expressions import total
from ...model import Board, Graph, Row
from ...scope import Scope
from ...shortcuts import graph, line
from ...variables import common, values
from ..changes import limit_changes
from .capacity import request_capacity
from .connections import addresses, connections
from .series import CHOSEN, of
from .transfers import remote_storage, replication


def board(scope: Scope) -> Board:
    """The dashboard about the nodes."""
    return Board(
        uid=Dashboard.BROKERS.uid,
        title="Kafka quotas / Brokers",
        description="Where clients wait, how much of the brokers' request threads is used and by what, and the limits on connections, replication and remote storage.",
        variables=(
            *common(scope),
            values(catalog.DELAY_QUEUE_SIZE, "broker", "Broker", scope.chosen),
        ),
        annotation=limit_changes(scope),
        rows=(
            waiting(scope),
            request_capacity(scope),
            connections(scope),
            addresses(scope),
            replication(scope),
            remote_storage(scope),
            leftovers(scope),
        ),
    )


def waiting(scope: Scope) -> Row:
    """Who makes clients wait."""
    return Row(
        title="Clients that wait", panels=((12, _muted(scope)), (12, _told(scope)))
    )


def _muted(scope: Scope) -> Graph:
    return graph(
        "Connections waiting, by broker",
        "Connections that each broker has muted at that moment, by quota, and the most of the last minute where the exporter samples between scrapes.",
        "short",
        of(scope, catalog.DELAY_QUEUE_SIZE, "broker", "quota_type"),
        line(
            scope.by(
                "max",
                scope.of(catalog.DELAY_QUEUE_SIZE_MAX, CHOSEN),
                "broker",
                "quota_type",
            ),
            "{{quota_type}} on {{broker}}, peak",
        ),
        steps=steps.MUTED,
    )


def _told(scope: Scope) -> Graph:
    return graph(
        "Time that clients were told to wait, by broker",
        "Seconds of delay per second, by request: about the number of connections that do nothing but wait.",
        "short",
        line(
            total(
                scope,
                catalog.REQUEST_THROTTLED_SECONDS,
                "broker",
                "request",
                matchers=(CHOSEN,),
            ),
            "{{request}} on {{broker}}",
        ),
        stacked=True,
    )


def leftovers(scope: Scope) -> Row:
    """What brokers still tell of earlier rules."""
    stale = graph(
        "Left over from earlier rules",
        catalog.STALE_ENTITIES.help,
        "short",
        of(scope, catalog.STALE_ENTITIES, "broker", "quota_type"),
    )
    return Row(title="Leftovers", panels=((24, stale),), collapsed=True)
