"""New connections, and the limits on them."""

from __future__ import annotations

from quotascope.metrics import catalog

from ... import steps
from ...model import Graph, Row
from ...scope import Scope
from ...shortcuts import graph
from .series import limit_of, of


def connections(scope: Scope) -> Row:
    """New connections, of the broker and of its listeners."""
    return Row(
        title="New connections",
        panels=(
            (8, _of_brokers(scope)),
            (8, _of_listeners(scope)),
            (8, _waiting_listeners(scope)),
        ),
    )


def _of_brokers(scope: Scope) -> Graph:
    return graph(
        "New connections per second, by broker",
        f"{catalog.BROKER_CONNECTIONS_PER_SECOND.help} Against max.connection.creation.rate.",
        "cps",
        of(scope, catalog.BROKER_CONNECTIONS_PER_SECOND, "broker"),
        limit_of(scope, catalog.BROKER_CONNECTION_LIMIT, "broker"),
    )


def _of_listeners(scope: Scope) -> Graph:
    return graph(
        "New connections per second, by listener",
        f"{catalog.LISTENER_CONNECTIONS_PER_SECOND.help} Against the limit of the listener.",
        "cps",
        of(scope, catalog.LISTENER_CONNECTIONS_PER_SECOND, "broker", "listener"),
        limit_of(scope, catalog.LISTENER_CONNECTION_LIMIT, "broker", "listener"),
    )


def _waiting_listeners(scope: Scope) -> Graph:
    return graph(
        "Wait for the next connection",
        catalog.LISTENER_CONNECTION_THROTTLE_SECONDS.help,
        "s",
        of(scope, catalog.LISTENER_CONNECTION_THROTTLE_SECONDS, "broker", "listener"),
        steps=steps.LISTENER_DELAY,
    )


def addresses(scope: Scope) -> Row:
    """New connections of IP addresses that have a limit."""
    pace = graph(
        "New connections per second, by address",
        catalog.IP_CONNECTIONS_PER_SECOND.help,
        "cps",
        of(scope, catalog.IP_CONNECTIONS_PER_SECOND, "broker", "ip"),
        limit_of(scope, catalog.IP_CONNECTION_LIMIT, "broker", "ip"),
    )
    refused = graph(
        "Delay of refused connections",
        catalog.IP_CONNECTION_THROTTLE_SECONDS.help,
        "s",
        of(scope, catalog.IP_CONNECTION_THROTTLE_SECONDS, "broker", "listener"),
    )
    return Row(title="Connections of addresses", panels=((12, pace), (12, refused)))
