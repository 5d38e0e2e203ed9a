"""Brokers: delay queues, request capacity, and the throttles beside those of clients."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import either
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import steps
from ..expressions import counter_rate, ratio
from ..model import Board, Graph, Query, Row
from ..scope import Scope
from ..shortcuts import graph, limit, line
from ..variables import common, one_of, values
from .changes import limit_changes

_CHOSEN = one_of("broker")


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
    muted = graph(
        "Connections waiting, by broker",
        "Connections that each broker has muted at that moment, by quota.",
        "short",
        _line(scope, catalog.DELAY_QUEUE_SIZE, "broker", "quota_type"),
        steps=steps.MUTED,
    )
    told = graph(
        "Time that clients were told to wait, by broker",
        "Seconds of delay per second, by request: about the number of connections that do nothing but wait.",
        "short",
        line(
            scope.by(
                "sum",
                counter_rate(scope, catalog.REQUEST_THROTTLED_SECONDS, _CHOSEN),
                "broker",
                "request",
            ),
            "{{request}} on {{broker}}",
        ),
        stacked=True,
    )
    return Row(title="Clients that wait", panels=((12, muted), (12, told)))


def request_capacity(scope: Scope) -> Row:
    """How much of the broker is used, and by what."""
    clients = scope.by("sum", scope.of(catalog.REQUEST_THREADS, _CHOSEN), "broker")
    exempt = scope.by(
        "max", scope.of(catalog.EXEMPT_REQUEST_THREADS, _CHOSEN), "broker"
    )
    capacity = scope.by(
        "max", scope.of(catalog.REQUEST_CAPACITY_THREADS, _CHOSEN), "broker"
    )
    everything = scope.by("sum", _both_kinds(scope), "broker")
    share = graph(
        "Share of the request threads that is busy",
        "Request time of clients under a quota and of what no quota counts, of all I/O and network threads. Near 1 every request waits in the queue.",
        "percentunit",
        line(ratio(everything, capacity, scope.keys("broker")), "broker {{broker}}"),
        steps=steps.CAPACITY,
    )
    threads = graph(
        "Request time, in threads",
        "What clients and the broker itself use; the dashed line is what there is.",
        "short",
        line(clients, "clients on {{broker}}"),
        line(exempt, "counted by no quota on {{broker}}"),
        limit(capacity, "threads of {{broker}}"),
    )
    return Row(title="Request capacity", panels=((12, share), (12, threads)))


def _both_kinds(scope: Scope) -> str:
    clients = scope.by(
        "max", scope.of(catalog.REQUEST_THREADS, _CHOSEN), "broker", "user", "client_id"
    )
    exempt = scope.by(
        "max", scope.of(catalog.EXEMPT_REQUEST_THREADS, _CHOSEN), "broker"
    )
    return either(clients, exempt)


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
        _line(scope, catalog.BROKER_CONNECTIONS_PER_SECOND, "broker"),
        _limit(scope, catalog.BROKER_CONNECTION_LIMIT, "broker"),
    )


def _of_listeners(scope: Scope) -> Graph:
    return graph(
        "New connections per second, by listener",
        f"{catalog.LISTENER_CONNECTIONS_PER_SECOND.help} Against the limit of the listener.",
        "cps",
        _line(scope, catalog.LISTENER_CONNECTIONS_PER_SECOND, "broker", "listener"),
        _limit(scope, catalog.LISTENER_CONNECTION_LIMIT, "broker", "listener"),
    )


def _waiting_listeners(scope: Scope) -> Graph:
    return graph(
        "Wait for the next connection",
        catalog.LISTENER_CONNECTION_THROTTLE_SECONDS.help,
        "s",
        _line(
            scope, catalog.LISTENER_CONNECTION_THROTTLE_SECONDS, "broker", "listener"
        ),
        steps=steps.LISTENER_DELAY,
    )


def addresses(scope: Scope) -> Row:
    """New connections of IP addresses that have a limit."""
    pace = graph(
        "New connections per second, by address",
        catalog.IP_CONNECTIONS_PER_SECOND.help,
        "cps",
        _line(scope, catalog.IP_CONNECTIONS_PER_SECOND, "broker", "ip"),
        _limit(scope, catalog.IP_CONNECTION_LIMIT, "broker", "ip"),
    )
    refused = graph(
        "Delay of refused connections",
        catalog.IP_CONNECTION_THROTTLE_SECONDS.help,
        "s",
        _line(scope, catalog.IP_CONNECTION_THROTTLE_SECONDS, "broker", "listener"),
    )
    return Row(title="Connections of addresses", panels=((12, pace), (12, refused)))


def replication(scope: Scope) -> Row:
    """Replication under a throttle, and the throttle that was left on."""
    moved = graph(
        "Throttled replication",
        f"{catalog.REPLICATION_BYTES_PER_SECOND.help} A limit that stays after a reassignment slows down recovery.",
        "Bps",
        _line(scope, catalog.REPLICATION_BYTES_PER_SECOND, "broker", "direction"),
        _limit(scope, catalog.REPLICATION_LIMIT, "broker", "direction"),
    )
    return Row(title="Replication", panels=((24, moved),))


def remote_storage(scope: Scope) -> Row:
    """Tiered storage."""
    moved = graph(
        "Remote storage",
        catalog.REMOTE_STORAGE_BYTES_PER_SECOND.help,
        "Bps",
        _line(scope, catalog.REMOTE_STORAGE_BYTES_PER_SECOND, "broker", "direction"),
        _limit(scope, catalog.REMOTE_STORAGE_LIMIT, "broker", "direction"),
    )
    delay = graph(
        "Delay of remote storage",
        catalog.REMOTE_STORAGE_THROTTLE_SECONDS.help,
        "s",
        _line(scope, catalog.REMOTE_STORAGE_THROTTLE_SECONDS, "broker", "direction"),
    )
    return Row(title="Remote storage", panels=((12, moved), (12, delay)))


def leftovers(scope: Scope) -> Row:
    """What brokers still tell of earlier rules."""
    stale = graph(
        "Left over from earlier rules",
        catalog.STALE_ENTITIES.help,
        "short",
        _line(scope, catalog.STALE_ENTITIES, "broker", "quota_type"),
    )
    return Row(title="Leftovers", panels=((24, stale),), collapsed=True)


def _line(scope: Scope, family: Family, *labels: str) -> Query:
    return line(scope.by("max", scope.of(family, _CHOSEN), *labels), _name(labels))


def _limit(scope: Scope, family: Family, *labels: str) -> Query:
    selected = scope.by("max", scope.of(family, _CHOSEN), *labels)
    return limit(selected, f"limit of {_name(labels)}")


def _name(labels: tuple[str, ...]) -> str:
    first, *more = labels
    return " ".join((*(f"{{{{{label}}}}}" for label in more), f"on {{{{{first}}}}}"))
