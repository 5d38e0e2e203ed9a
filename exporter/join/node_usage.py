"""What a node says of itself, apart from its entities."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Final, TypeVar

from quotascope.metrics import QuotaType

from ..limits import Limits, NodeSettings
from ..mapping import MILLISECONDS, PERCENT, Meaning
from ..snapshot import NodeUsage
from .histogram_sums import HistogramSums
from .neighbours import Connections, remote_storage, replication
from .plan import Numbers

Key = TypeVar("Key")

_REPEATS_OF_FETCH: Final = {"FetchConsumer", "FetchFollower"}
_FORWARDED: Final = {"CreateTopics", "CreatePartitions", "DeleteTopics"}
"""
Requests whose throttles Kafka's histogram leaves out under KRaft, where brokers forward them: it stays at 0 although clients
wait. (With ZooKeeper it counts them.)
"""
_EVENTS: Final = "controller events"


class NodeUsages:
    """Makes the nodes' part of snapshots."""

    def __init__(self) -> None:
        self._sums: dict[str, HistogramSums] = {}
        self._connections = Connections()

    def of(
        self,
        numbers: Numbers,
        limits: Limits | None,
        stale_entities: Mapping[QuotaType, int],
    ) -> NodeUsage:
        """The usage of one node."""
        node_id, node, values = numbers.plan.node_id, numbers.plan.node, numbers.values
        settings = limits.nodes.get(node_id) if limits else None
        known = settings or NodeSettings()
        exempt = finite(values[node.exempt_request_time])
        sums = self._sums_of(numbers)
        leads = told_to_lead(numbers)
        events = _controller_events(numbers) if leads else None
        return NodeUsage(
            broker=node_id,
            delay_queue_size=_finite(
                {kind: values[at] for kind, at in node.delay_queue_size.items()}
            ),
            exempt_request_threads=None if exempt is None else exempt / PERCENT,
            request_capacity_threads=settings.request_capacity_threads
            if settings
            else None,
            request_throttled_seconds=_throttled_seconds(numbers, sums),
            throttling_errors=_finite(numbers.of_node(Meaning.THROTTLING_ERRORS)),
            stale_entities=stale_entities,
            quota_callback=_uses_callback(numbers, settings),
            active_controller=leads,
            controller_events=None if events is None else events[1],
            controller_event_queue_seconds=None
            if events is None
            else sums.sum_ms(_EVENTS, *events) / MILLISECONDS,
            connections=self._connections.of(numbers, limits),
            replication=replication(numbers, known),
            remote_storage=remote_storage(numbers, known),
        )

    def forget(self, node_id: str) -> None:
        """Drop what is remembered of a node."""
        self._sums.pop(node_id, None)

    def _sums_of(self, numbers: Numbers) -> HistogramSums:
        sums = self._sums.setdefault(numbers.plan.node_id, HistogramSums())
        sums.began(finite(numbers.values[numbers.plan.node.started_at]))
        return sums


def _uses_callback(numbers: Numbers, settings: NodeSettings | None) -> bool | None:
    if numbers.plan.callbacks:
        return True
    return None if settings is None else settings.quota_callback_class is not None


def _throttled_seconds(numbers: Numbers, sums: HistogramSums) -> dict[str, float]:
    counts = _finite(numbers.of_node(Meaning.REQUEST_THROTTLE_COUNT))
    means = _finite(numbers.of_node(Meaning.REQUEST_THROTTLE_MEAN))
    totals = {
        request: sums.sum_ms(request, means[request], counts[request]) / MILLISECONDS
        for request in means
        if request not in _REPEATS_OF_FETCH and counts.get(request, 0) > 0
    }
    return {
        request: total
        for request, total in totals.items()
        if total > 0 or request not in _FORWARDED
    }


def _controller_events(numbers: Numbers) -> tuple[float, float] | None:
    """Mean wait in ms and count of the controller's events, None where the node does not tell."""
    means = _finite(numbers.of_node(Meaning.CONTROLLER_EVENT_MEAN))
    counts = _finite(numbers.of_node(Meaning.CONTROLLER_EVENT_COUNT))
    return next(zip(means.values(), counts.values(), strict=False), None)


def told_to_lead(numbers: Numbers) -> bool | None:
    """Whether the node says that it is the active controller; None when it does not say."""
    count = finite(numbers.values[numbers.plan.node.active_controller])
    return None if count is None else count > 0


def finite(value: float) -> float | None:
    """The value, or None when the node gave no number."""
    return value if isfinite(value) else None


def _finite(values: Mapping[Key, float]) -> dict[Key, float]:
    return {key: value for key, value in values.items() if isfinite(value)}
