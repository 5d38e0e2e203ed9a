"""Brokers: delay queues, request capacity, and the throttles beside those of clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.kafka.entities import QuotaType

from .. import steps
from ..expressions import counter_rate, occurred, occurred_nowhere, ratio, total
from ..links import runbooks
from ..panels import Line, Row, dashboard, graph, limit, side_by_side
from ..promql import operation
from ..recorded import BROKER_CAPACITY_USED, BROKER_HANDLERS_IDLE, BROKER_REQUEST, share_of_pools
from ..scope import Scope
from ..variables import common, one_of, values

CHOSEN = one_of("broker")
_MUTED: Final = ((catalog.DELAY_QUEUE_SIZE, ""), (catalog.DELAY_QUEUE_SIZE_MAX, ", peak"))


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard about the nodes."""
    return dashboard(
        scope,
        Dashboard.BROKERS,
        title="Kafka quotas / Brokers",
        description=(
            "Where clients wait, how much of the brokers' request threads is used and by what, and the limits on "
            "connections, replication and remote storage."
        ),
        variables=(
            *common(scope),
            values(
                # not all agents report delay queues, and not all nodes have clients
                (catalog.THROTTLE_TIME_SECONDS, catalog.DELAY_QUEUE_SIZE),
                "broker",
                "Broker",
                scope.chosen,
            ),
        ),
        rows=(
            waiting(scope),
            load(scope),
            request_capacity(scope),
            connections(scope),
            addresses(scope),
            replication(scope),
            remote_storage(scope),
            leftovers(scope),
        ),
    )


def waiting(scope: Scope) -> Row:
    """Return the row of brokers that delay clients."""
    muted = graph(
        scope,
        "Connections waiting, by broker",
        "Connections that each broker has muted at that moment, by quota, and the most of the last minute where the "
        "exporter samples between scrapes. Quotas that muted none are left out; a broker without any has a line of 0.",
        "short",
        *(_occurred(scope, family, "broker", "quota_type", end=end) for family, end in _MUTED),
        _none(scope, *(family for family, _ in _MUTED)),
        steps=steps.MUTED_BY_BROKER,
        links=runbooks(scope.site, "KafkaQuotaDelayQueueGrowing"),
        axis="connections",
    )
    labels = ("broker", "request")
    delays = occurred(
        scope,
        catalog.REQUEST_THROTTLED_SECONDS,
        total(scope, catalog.REQUEST_THROTTLED_SECONDS, *labels, matchers=(CHOSEN,)),
        *labels,
        matchers=(CHOSEN,),
    )
    delayed = graph(
        scope,
        "Throttle time, by broker",
        "Seconds of delay per second, by request: about the number of connections that do nothing but wait. "
        "Requests that had none are left out; a broker without any has a line of 0.",
        "short",
        Line(delays, "{{request}} on {{broker}}"),
        _none(scope, catalog.REQUEST_THROTTLED_SECONDS),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaThrottleSpike"),
        axis="s of delay per s",
    )
    return Row(title="Clients that wait", panels=side_by_side(muted, delayed))


def load(scope: Scope) -> Row:
    """Return the row of idle threads and the wait for them."""
    if scope.recorded:
        handlers = scope.recorded_of(BROKER_HANDLERS_IDLE, CHOSEN)
    else:
        by_pool, of_all = (
            scope.by("min", counter_rate(scope, family, CHOSEN), "broker")
            for family in (
                catalog.REQUEST_HANDLER_POOL_IDLE_SECONDS,
                catalog.REQUEST_HANDLER_IDLE_SECONDS,
            )
        )
        handlers = share_of_pools(by_pool, of_all)
    idle = graph(
        scope,
        "Idle request handlers",
        "Share of time in which the request handlers of the busiest pool had no request. Near 0, every request waits "
        "for a handler.",
        "percentunit",
        Line(handlers, "broker {{broker}}"),
        steps=steps.IDLE,
        links=runbooks(scope.site, "KafkaQuotaBrokerSaturated"),
    )
    other_threads = graph(
        scope,
        "Idle network and controller threads",
        "Share of time in which network threads, and the thread of the controller's events, had nothing to do.",
        "percentunit",
        _of(scope, catalog.NETWORK_PROCESSOR_IDLE, "broker", end=", network"),
        _of(scope, catalog.CONTROLLER_EVENT_IDLE, "broker", end=", controller"),
    )
    worst = (CHOSEN, 'percentile="99"')
    waits = scope.by("max", scope.of(catalog.REQUEST_QUEUE_SECONDS, *worst), "broker", "request")
    queue = graph(
        scope,
        "Wait for a request handler",
        "The 99th percentile of the last requests, mostly of 5 minutes, by request. Requests that never waited are "
        "left out; a broker without any has a line of 0.",
        "s",
        Line(
            occurred(scope, catalog.REQUEST_QUEUE_SECONDS, waits, "broker", "request", matchers=worst),
            _legend(("broker", "request")),
        ),
        _none(scope, catalog.REQUEST_QUEUE_SECONDS, matchers=worst[1:]),
    )
    return Row(title="Load", panels=side_by_side(idle, other_threads, queue))


def request_capacity(scope: Scope) -> Row:
    """Return the row of the used share of the request threads, and of its causes."""
    exempt = scope.by("max", scope.of(catalog.EXEMPT_REQUEST_THREADS, CHOSEN), "broker")
    capacity = scope.by("max", scope.of(catalog.REQUEST_CAPACITY_THREADS, CHOSEN), "broker")
    if scope.recorded:
        of_clients = scope.recorded_of(BROKER_REQUEST, CHOSEN)
        used = scope.recorded_of(BROKER_CAPACITY_USED, CHOSEN)
    else:
        of_clients = total(scope, catalog.USAGE[QuotaType.REQUEST], "broker", matchers=(CHOSEN,))
        everything = operation(of_clients, "+", exempt, scope.keys("broker"))
        used = ratio(everything, capacity, scope.keys("broker"))
    share = graph(
        scope,
        "Share of the request threads that is busy",
        "Share of the I/O and network threads' time that clients under a quota and work that no quota counts take. "
        "Near 1, every request waits in the queue.",
        "percentunit",
        Line(used, "broker {{broker}}"),
        steps=steps.CAPACITY,
        links=runbooks(scope.site, "KafkaQuotaRequestTimeNearCapacity"),
    )
    in_percent = graph(
        scope,
        "Request time, percent of a thread",
        "Time of threads that clients and the broker itself use: 100 % is one thread busy all the time. The dashed "
        "line is all threads.",
        "percentunit",
        Line(of_clients, "clients on {{broker}}"),
        Line(exempt, "counted by no quota on {{broker}}"),
        limit(capacity, "all threads of {{broker}}"),
        links=runbooks(scope.site, "KafkaQuotaExemptRequestTimeHigh"),
    )
    return Row(title="Request capacity", panels=side_by_side(share, in_percent))


def connections(scope: Scope) -> Row:
    """Return the row of new connections of brokers and listeners."""
    of_brokers = graph(
        scope,
        "New connections, by broker",
        f"{catalog.BROKER_CONNECTIONS_PER_SECOND.help} Against max.connection.creation.rate.",
        "cps",
        _of(scope, catalog.BROKER_CONNECTIONS_PER_SECOND, "broker"),
        _limit_of(scope, catalog.BROKER_CONNECTION_LIMIT, "broker"),
    )
    of_listeners = graph(
        scope,
        "New connections, by listener",
        f"{catalog.LISTENER_CONNECTIONS_PER_SECOND.help} Against the limit of the listener.",
        "cps",
        _of(scope, catalog.LISTENER_CONNECTIONS_PER_SECOND, "broker", "listener"),
        _limit_of(scope, catalog.LISTENER_CONNECTION_LIMIT, "broker", "listener"),
    )
    delay = graph(
        scope,
        "Wait for the next connection",
        catalog.LISTENER_CONNECTION_THROTTLE_SECONDS.help,
        "s",
        _of(scope, catalog.LISTENER_CONNECTION_THROTTLE_SECONDS, "broker", "listener"),
        steps=steps.LISTENER_DELAY,
        links=runbooks(scope.site, "KafkaQuotaConnectionsThrottled"),
    )
    panels = side_by_side(of_brokers, of_listeners, delay)
    return Row(title="New connections", panels=panels, collapsed=True)


def addresses(scope: Scope) -> Row:
    """Return the row of new connections of IP addresses with a limit."""
    pace = graph(
        scope,
        "New connections, by address",
        catalog.IP_CONNECTIONS_PER_SECOND.help,
        "cps",
        _of(scope, catalog.IP_CONNECTIONS_PER_SECOND, "broker", "ip"),
        _limit_of(scope, catalog.IP_CONNECTION_LIMIT, "broker", "ip"),
    )
    refused = graph(
        scope,
        "Delay of refused connections",
        catalog.IP_CONNECTION_THROTTLE_SECONDS.help,
        "s",
        _of(scope, catalog.IP_CONNECTION_THROTTLE_SECONDS, "broker", "listener"),
        links=runbooks(scope.site, "KafkaQuotaConnectionsOfAddressRefused"),
    )
    panels = side_by_side(pace, refused)
    return Row(title="Connections of addresses", panels=panels, collapsed=True)


def replication(scope: Scope) -> Row:
    """Return the row of replication under a throttle."""
    moved = graph(
        scope,
        "Throttled replication",
        f"{catalog.REPLICATION_BYTES_PER_SECOND.help} A limit that stays after a reassignment slows down recovery.",
        "Bps",
        _of(scope, catalog.REPLICATION_BYTES_PER_SECOND, "broker", "direction"),
        _limit_of(scope, catalog.REPLICATION_LIMIT, "broker", "direction"),
        links=runbooks(scope.site, "KafkaQuotaReplicationThrottleLeftOn"),
    )
    return Row(title="Replication", panels=side_by_side(moved), collapsed=True)


def remote_storage(scope: Scope) -> Row:
    """Return the row of tiered storage."""
    moved = graph(
        scope,
        "Remote storage",
        catalog.REMOTE_STORAGE_BYTES_PER_SECOND.help,
        "Bps",
        _of(scope, catalog.REMOTE_STORAGE_BYTES_PER_SECOND, "broker", "direction"),
        _limit_of(scope, catalog.REMOTE_STORAGE_LIMIT, "broker", "direction"),
    )
    delay = graph(
        scope,
        "Delay of remote storage",
        catalog.REMOTE_STORAGE_THROTTLE_SECONDS.help,
        "s",
        _of(scope, catalog.REMOTE_STORAGE_THROTTLE_SECONDS, "broker", "direction"),
    )
    panels = side_by_side(moved, delay)
    return Row(title="Remote storage", panels=panels, collapsed=True)


def leftovers(scope: Scope) -> Row:
    """Return the row of beans that no rule explains any more."""
    stale = graph(
        scope,
        "Left over from earlier rules",
        f"{catalog.STALE_ENTITIES.help} Quotas without any are left out; a broker without any has a line of 0.",
        "short",
        _occurred(scope, catalog.STALE_ENTITIES, "broker", "quota_type"),
        _none(scope, catalog.STALE_ENTITIES),
        axis="entities",
    )
    return Row(title="Leftovers", panels=side_by_side(stale), collapsed=True)


def _of(scope: Scope, family: Family, *labels: str, end: str = "", matchers: Sequence[str] = ()) -> Line:
    """Return the highest series for each combination of labels, of which the first is the broker."""
    selected = scope.by("max", scope.of(family, CHOSEN, *matchers), *labels)
    return Line(selected, f"{_legend(labels)}{end}")


def _occurred(scope: Scope, family: Family, *labels: str, end: str = "") -> Line:
    """Return the line of ``_of`` without the series that are 0 in the whole range."""
    line = _of(scope, family, *labels, end=end)
    return line._replace(expr=occurred(scope, family, line.expr, *labels, matchers=(CHOSEN,)))


def _none(scope: Scope, *families: Family, matchers: Sequence[str] = ()) -> Line:
    """Return the line of 0 of brokers on which no quota or request has a line of ``occurred``."""
    return Line(
        occurred_nowhere(scope, *families, label="broker", matchers=(CHOSEN, *matchers)), f"none {_legend(('broker',))}"
    )


def _limit_of(scope: Scope, family: Family, *labels: str) -> Line:
    """Return the line of ``_of``, drawn as a limit."""
    selected = scope.by("max", scope.of(family, CHOSEN), *labels)
    of_what = "limit" if len(labels) == 1 else "limit of"
    return limit(selected, f"{of_what} {_legend(labels)}")


def _legend(labels: tuple[str, ...]) -> str:
    """Return the legend of a line by its labels, of which the broker is the first: `{{request}} on {{broker}}`."""
    broker, *narrower = (f"{{{{{label}}}}}" for label in labels)
    return " ".join((*narrower, f"on {broker}"))
