"""Finds nodes through the Admin API: registered brokers, and the controllers of the quorum."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from quotascope.clients.errors import ClientError
from quotascope.clients.quota_admin import Node, QuotaAdmin

from ..config import KafkaDiscoveryConfig
from ..errors import DiscoveryError
from ..expiry import Expiring
from ..threads import BlockingCalls
from ..untrusted import shown
from .ports import NODE, PortSearch
from .target import FoundNodes, NodeTarget, target_of

_KEPT_SECONDS: Final = 3600.0
"""
Time that a broker of an old cluster is kept after it was last seen.

Only Kafka 4.0 and later report which brokers are registered but down (KIP-1073). In an older cluster a broker that
crashed looks like one that was removed.
"""


class KafkaFinder:
    """
    Finds the nodes of one cluster.

    Brokers come from ``DescribeCluster`` with those that are down (KIP-1073), controllers from ``DescribeQuorum``
    (KIP-595), which returns their addresses since KIP-853. ``DescribeCluster`` for controllers (KIP-919) would have to
    be sent to a controller, with which brokers' clients cannot connect.

    Args:
        config: Addresses of agents, and of controllers in clusters that do not report them.
        admin: The cluster.
        clock: A steady time in seconds.
        search: Finds the addresses of agents; None if the configuration has them.

    """

    name = "kafka"

    def __init__(
        self,
        config: KafkaDiscoveryConfig,
        admin: QuotaAdmin,
        clock: Callable[[], float] = time.monotonic,
        search: PortSearch | None = None,
    ) -> None:
        self._config = config
        self._search = search
        self._listed_controllers = [_listed_controller(text) for text in config.controllers]
        self.interval_seconds = config.refresh_interval_seconds
        self._admin = admin
        self._clock = clock
        self._calls = BlockingCalls("quotascope-discovery", DiscoveryError)
        self._brokers_seen: Expiring[int, Node] = Expiring(_KEPT_SECONDS)

    async def find(self) -> FoundNodes:
        """Return the brokers and controllers. Raises ``DiscoveryError``."""
        try:
            nodes = await self._calls.run(self._find)
        except ClientError as error:
            raise DiscoveryError(str(error)) from error
        return nodes if self._search is None else await self._search.locate(nodes)

    async def close(self) -> None:
        """End the connection."""
        await self._calls.close(self._admin.close)

    def _find(self) -> FoundNodes:
        """Ask the cluster for its brokers and controllers; blocks. Raises ``ClientError``."""
        problems: list[str] = []
        answer, now_seconds = self._admin.describe_brokers(), self._clock()
        brokers: Sequence[Node] = answer.nodes
        if not answer.with_fenced:  # the answer lacks brokers that are down
            for node in answer.nodes:
                self._brokers_seen.see(node.node_id, node, now_seconds)
            self._brokers_seen.expire(now_seconds)
            brokers = self._brokers_seen.values()
        controllers = [*self._controllers(brokers, problems), *self._listed_controllers]
        targets = tuple(self._targets(brokers, controllers, problems))
        return FoundNodes(targets=targets, problem="; ".join(problems) or None)

    def _controllers(self, brokers: Sequence[Node], problems: list[str]) -> Sequence[Node]:
        """Return the controllers whose addresses the cluster reports; add a problem about the others."""
        try:
            answer = self._admin.describe_voters()
        except ClientError as error:
            if not self._listed_controllers:
                problems.append(f"the controllers cannot be found: {error}")
            return ()
        reachable = {node.node_id for node in (*brokers, *answer.nodes, *self._listed_controllers)}
        unknown = sorted(set(answer.node_ids) - reachable)
        if unknown:
            problems.append(
                f"the cluster does not report where its controllers {unknown} are: list them under "
                "discovery.kafka.controllers"
            )
        return answer.nodes

    def _targets(
        self, brokers: Iterable[Node], controllers: Iterable[Node], problems: list[str]
    ) -> Iterator[NodeTarget]:
        """
        Yield a target for each node, only one for a node that is both broker and controller.

        Add a problem for a node whose host or rack cannot be part of a URL.
        """
        url = NODE if self._search is not None else self._config.url
        seen: set[int] = set()
        for nodes, template in (
            (brokers, url),
            (controllers, self._config.controller_url or url),
        ):
            for node in sorted(nodes, key=lambda node: node.node_id):
                if node.node_id in seen:
                    continue
                seen.add(node.node_id)
                needs_brackets = ":" in node.host and not node.host.startswith("[")  # an IPv6 address
                values = {
                    "host": f"[{node.host}]" if needs_brackets else node.host,
                    "node_id": str(node.node_id),
                    "rack": node.rack or "",
                }
                try:
                    yield target_of(template, values, node.node_id)
                except ValueError as error:
                    problems.append(f"node {node.node_id}: {shown(error)}")


def _listed_controller(text: str) -> Node:
    """Return a configured controller of the form ``NODE_ID@HOST``; a port after it is ignored."""
    node_id, _, address = text.partition("@")
    bracket = address.rfind("]")
    host = address[: bracket + 1] or address.partition(":")[0]
    return Node(node_id=int(node_id), host=host, port=0)
