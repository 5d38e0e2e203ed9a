"""Series of brokers."""

from __future__ import annotations

from quotascope.metrics import catalog

from .. import recorded
from ..levels import Levels
from ..promql import above, aggregate, grouped, operation, rate, select, series
from ..rule import Group, Record


def brokers(levels: Levels) -> Group:
    """Request time, delay queues and throttle time of every broker."""
    return Group(
        name="quotascope-brokers",
        rules=(
            *_request_time(levels),
            _delay_queue(levels),
            _throttled(levels),
        ),
    )


def _request_time(levels: Levels) -> tuple[Record, ...]:
    return (
        _exempt(levels),
        _of_clients(levels),
        _capacity(levels),
        _capacity_used(levels),
    )


def _exempt(levels: Levels) -> Record:
    return Record(
        name=recorded.BROKER_EXEMPT,
        expr=aggregate("max", levels.broker, select(catalog.EXEMPT_REQUEST_THREADS)),
        meaning="Request time that no quota counts, in threads.",
    )


def _of_clients(levels: Levels) -> Record:
    once = aggregate(
        "max", levels.of("broker", "user", "client_id"), select(catalog.REQUEST_THREADS)
    )
    return Record(
        name=recorded.BROKER_REQUEST,
        expr=aggregate("sum", levels.broker, once),
        meaning="Request time of all clients, in threads.",
    )


def _capacity(levels: Levels) -> Record:
    return Record(
        name=recorded.BROKER_CAPACITY,
        expr=aggregate("max", levels.broker, select(catalog.REQUEST_CAPACITY_THREADS)),
        meaning="Threads that can serve requests.",
    )


def _capacity_used(levels: Levels) -> Record:
    used = operation(
        series(recorded.BROKER_REQUEST),
        "+",
        series(recorded.BROKER_EXEMPT),
        levels.broker,
    )
    return Record(
        name=recorded.BROKER_CAPACITY_USED,
        expr=operation(
            grouped(used),
            "/",
            grouped(above(series(recorded.BROKER_CAPACITY), 0)),
            levels.broker,
        ),
        meaning="Share of these threads that clients and the broker use.",
    )


def _delay_queue(levels: Levels) -> Record:
    return Record(
        name=recorded.BROKER_DELAY_QUEUE,
        expr=aggregate(
            "max", levels.of("quota_type", "broker"), select(catalog.DELAY_QUEUE_SIZE)
        ),
        meaning="Connections that the broker has muted, by quota type.",
    )


def _throttled(levels: Levels) -> Record:
    once = aggregate(
        "max",
        levels.of("broker", "request"),
        rate(catalog.REQUEST_THROTTLED_SECONDS, "5m"),
    )
    return Record(
        name=recorded.BROKER_THROTTLED_RATE,
        expr=aggregate("sum", levels.broker, once),
        meaning="Throttle time of clients per second: about the number of connections that only wait.",
    )
