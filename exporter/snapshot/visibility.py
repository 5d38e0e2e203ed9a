"""The entities that the nodes of a snapshot would show: only what could have been seen is called absent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from quotascope.metrics.catalog import REQUEST_THROTTLED_SECONDS, THROTTLING_ERRORS
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

from ..coverage import EntityKind
from ..limits import Limits
from ..limits.model import SETTINGS_OF
from .snapshot import NodeUsage, Snapshot

_MUTATION: Final = QuotaType.CONTROLLER_MUTATION
_KEPT_SECONDS: Final = 3_600.0
"""How long Kafka keeps what it measures of a client that sends nothing (``ClientSensors`` expire)."""
_OF_BROKERS: Final = [quota_type for quota_type in QuotaType if quota_type is not _MUTATION]


class Visibility:
    """
    Judges absence at one moment, by the nodes that are read and the configured quotas.

    Evidence that a node would show an entity: its answer has one of the same kind, or its source leaves none out
    (`Coverage.would_show`). Evidence that it hides some: series that could not be placed, and throttled connections
    without any entity beside them. Without either, nothing is certain.
    """

    def __init__(self, nodes: Sequence[NodeUsage], limits: Limits | None) -> None:
        self._nodes, self._limits = nodes, limits
        self._hidden: dict[tuple[QuotaType, EntityKind], tuple[str, ...]] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> Visibility:
        """Return the visibility on the nodes of a snapshot."""
        return cls(snapshot.nodes, snapshot.limits)

    @cached_property
    def _brokers(self) -> list[NodeUsage]:
        """
        Return the nodes that are brokers, or may be.

        The Admin API has no settings of a node that is only a controller.
        """
        limits, nodes = self._limits, self._nodes
        if limits is None or not limits.nodes:
            return list(nodes)
        return [
            node
            for node in nodes
            if node.broker in limits.nodes or f"{SETTINGS_OF}{node.broker}" in limits.missing or throttled_unseen(node)
        ]

    @cached_property
    def _controllers(self) -> list[NodeUsage]:
        """Return the nodes that measure controller mutations, or may."""
        nodes, limits = self._nodes, self._limits
        leading = [node for node in nodes if node.active_controller]
        if leading or limits is None or limits.active_controller is None:
            return leading or list(nodes)
        return [node for node in nodes if node.broker == limits.active_controller]

    def measuring(self, quota_type: QuotaType) -> list[NodeUsage]:
        """Return the nodes read that may measure clients of a quota type under the configured quotas."""
        nodes = self._controllers if quota_type is _MUTATION else self._brokers
        return [node for node in nodes if not node.quota_callback]

    def hidden_on(self, quota_type: QuotaType, kind: EntityKind) -> tuple[str, ...]:
        """
        Return the nodes on which clients of this kind may be measured without being shown.

        Return no node where their absence is certain.
        """
        brokers = self._hidden.get((quota_type, kind))
        if brokers is None:
            brokers = self._hidden[quota_type, kind] = tuple(
                node.broker
                for node in self.measuring(quota_type)
                if node.overruled or node.coverage is None or not node.coverage.would_show(quota_type, kind)
            )
            # the active controller, if it is not read
            limits, nodes = self._limits, {node.broker for node in self._nodes}
            leader = None if limits is None else limits.active_controller
            if quota_type is _MUTATION and leader is not None and not self._controllers and leader not in nodes:
                brokers = self._hidden[quota_type, kind] = (leader,)
        return brokers

    def shown_on(self, quota_type: QuotaType, kind: EntityKind) -> frozenset[str]:
        """
        Return the brokers that would show any client of this kind that they measure now.

        The result is empty while the brokers of the cluster are unknown.
        """
        limits = self._limits
        brokers = set[str]() if limits is None else {*limits.nodes, *limits.releases}
        measuring = {node.broker for node in self.measuring(quota_type)}
        return frozenset(brokers & measuring - {*self.hidden_on(quota_type, kind)})

    def without_memory(self, now: float) -> frozenset[str]:
        """
        Return the nodes that were started within the hour before a Unix time in seconds.

        Kafka keeps the metrics of a client for an hour after its last request, or until a restart. So these nodes may
        have measured clients before that they do not show. A node that does not report its start is left out.
        """
        return frozenset(
            node.broker for node in self._nodes if node.started_at is not None and now - node.started_at < _KEPT_SECONDS
        )

    def hidden_under(self, quota_type: QuotaType, rule: QuotaEntity) -> tuple[str, ...]:
        """Return the nodes on which clients of a rule may be measured without being shown."""
        return self.hidden_on(quota_type, EntityKind.of_rule(rule))

    @cached_property
    def connections_hidden_on(self) -> tuple[str, ...]:
        """Return the brokers whose agents show no new connections, which hides the connections of limited addresses."""
        return tuple(node.broker for node in self._brokers if node.coverage is None or not node.coverage.connections)

    @cached_property
    def absence_is_certain(self) -> bool:
        """
        Return whether it is certain that no client is measured where no client is shown.

        It is if every kind of client that the configured quotas measure would be shown.
        """
        limits = self._limits
        kinds: Iterable[tuple[QuotaType, EntityKind]]
        if limits is None:
            kinds = [(quota_type, kind) for quota_type in _OF_BROKERS for kind in EntityKind]
        else:
            kinds = {(kind, EntityKind.of_rule(rule)) for kind, rules in limits.rules.items() for rule in rules}
        nodes = self._nodes
        may_hide_clients = any(self.hidden_on(quota_type, kind) for quota_type, kind in kinds)
        return bool(nodes) and not may_hide_clients and not any(map(throttled_unseen, nodes))

    def shows_clients(self, node: NodeUsage) -> bool | None:
        """
        Return whether the source of a node shows clients, or would show them; None if that is unknown.

        It is also unknown if the node has no client to show. False needs a reason to expect clients:
        throttled connections, series that could not be placed, or, on a broker, configured quotas.
        """
        coverage, limits = node.coverage, self._limits
        if coverage is None:
            return None
        if throttled_unseen(node):
            return False
        if coverage.has_entities or coverage.usages:
            return True
        if coverage.unplaced is not None:
            return False
        if all(coverage.would_show(quota_type, kind) for quota_type in _OF_BROKERS for kind in EntityKind):
            return True
        is_broker = limits is not None and node.broker in limits.nodes
        ruled = limits is not None and any(len(limits.rules.get(quota_type, ())) for quota_type in _OF_BROKERS)
        return False if is_broker and ruled and not node.quota_callback else None

    @cached_property
    def hiding(self) -> tuple[str, ...]:
        """Return the nodes that are likely to have clients that they do not show."""
        return tuple(
            node.broker
            for node in self._nodes
            if self.shows_clients(node) is False or (node.coverage is not None and node.coverage.unplaced is not None)
        )


def throttled_unseen(node: NodeUsage) -> Mapping[QuotaType, float]:
    """Return the sizes of delay queues, by quota type, whose connections the node's answer shows no entity for."""
    coverage = node.coverage
    if coverage is None or coverage.tagged:
        return {}
    shown_types = coverage.usages | coverage.throttle_times
    return {
        quota_type: size
        for quota_type, size in node.delay_queue_size.items()
        if size > 0 and quota_type not in shown_types
    }


def throttled_before(node: NodeUsage) -> bool:
    """Return whether the node delayed a response or refused a request over a quota since it was started."""
    throttled_seconds = node.by_name(REQUEST_THROTTLED_SECONDS).values()
    refusals = node.by_name(THROTTLING_ERRORS).values()
    return any(seconds > 0 for seconds in throttled_seconds) or any(count > 0 for count in refusals)
