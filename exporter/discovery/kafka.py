"""Nodes from the Admin API: registered brokers, and the controllers of the quorum."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from quotascope.clients.errors import ClientError
from quotascope.clients.quota_admin import Node, QuotaAdmin

from ..errors import DiscoveryError
from ..threads import BlockingCalls
from .nodes import LastSeen, Templates, targets_of
from .target import Found

_KEPT_SECONDS: Final = 3600.0


class KafkaFinder:
    """
    Asks one cluster for its nodes.

    Brokers come from ``DescribeCluster`` with those that are down (KIP-1073), controllers from ``DescribeQuorum`` (KIP-595), whose
    answer has their addresses since KIP-853. ``DescribeCluster`` for controllers (KIP-919) would have to be sent to a
    controller, with which brokers' clients cannot connect.

    Args:
        admin: The cluster.
        templates: Where agents answer.
        listed: Controllers as configured, for clusters that do not tell where they are.
        interval_seconds: Pause between two looks.
        clock: A steady time in seconds.

    """

    name = "kafka"

    def __init__(
        self,
        admin: QuotaAdmin,
        templates: Templates,
        listed: Sequence[Node],
        interval_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._templates = templates
        self._listed = listed
        self.interval_seconds = interval_seconds
        self._clock = clock
        self._calls = BlockingCalls("quotascope-discovery", DiscoveryError)
        self._last_seen = LastSeen(_KEPT_SECONDS)

    async def find(self) -> Found:
        """The brokers and controllers. Raises ``DiscoveryError``."""
        try:
            return await self._calls.run(self._find)
        except ClientError as error:
            raise DiscoveryError(str(error)) from error

    async def close(self) -> None:
        """End the connection."""
        await self._calls.close(self._admin.close)

    def _find(self) -> Found:
        problems: list[str] = []
        brokers = self._brokers()
        controllers = [*self._controllers(brokers, problems), *self._listed]
        targets = tuple(targets_of(brokers, controllers, self._templates, problems))
        return Found(targets=targets, problem="; ".join(problems) or None)

    def _brokers(self) -> Sequence[Node]:
        told = self._admin.describe_brokers()
        if told.with_fenced:
            return told.nodes
        return self._last_seen.with_missing(told.nodes, self._clock())

    def _controllers(
        self, brokers: Sequence[Node], problems: list[str]
    ) -> Sequence[Node]:
        try:
            told = self._admin.describe_voters()
        except ClientError as error:
            if not self._listed:
                problems.append(f"the controllers cannot be found: {error}")
            return ()
        known = {node.node_id for node in (*brokers, *told.nodes, *self._listed)}
        unknown = sorted(set(told.node_ids) - known)
        if unknown:
            problems.append(
                f"the cluster does not tell where its controllers {unknown} are: list them under discovery.kafka.controllers"
            )
        return told.nodes
