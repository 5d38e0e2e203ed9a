"""From what a cluster says of its nodes to where their agents answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from quotascope.clients.quota_admin import Node

from ..untrusted import shown
from .target import Target, UrlTemplate, in_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """Where agents answer, by what the node is."""

    broker: UrlTemplate
    controller: UrlTemplate


def targets_of(
    brokers: Iterable[Node],
    controllers: Iterable[Node],
    templates: Templates,
    problems: list[str],
) -> Iterator[Target]:
    """
    A target for each node; one that is broker and controller is one node.

    A node whose host or rack cannot be part of a URL is left out and told in ``problems``.
    """
    seen: set[int] = set()
    for nodes, template in (
        (brokers, templates.broker),
        (controllers, templates.controller),
    ):
        for node in sorted(nodes, key=lambda node: node.node_id):
            if node.node_id in seen:
                continue
            seen.add(node.node_id)
            try:
                yield template.target(_values(node), node.node_id)
            except ValueError as error:
                problems.append(f"node {node.node_id}: {shown(error)}")


def _values(node: Node) -> Mapping[str, str]:
    return {
        "host": in_url(node.host),
        "node_id": str(node.node_id),
        "rack": node.rack or "",
    }


class LastSeen:
    """
    Brokers that were there a while ago.

    Only Kafka 4.0 and later tell which brokers are registered but down (KIP-1073). Of an older cluster a broker that
    crashed looks like one that was removed, so each is kept for ``seconds`` after it was last seen.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[int, tuple[Node, float]] = {}

    def with_missing(self, nodes: Iterable[Node], at: float) -> list[Node]:
        """These nodes and those that were seen lately; ``at`` is any steady time in seconds."""
        self._seen |= {node.node_id: (node, at) for node in nodes}
        self._seen = {
            node_id: (node, seen)
            for node_id, (node, seen) in self._seen.items()
            if at - seen <= self._seconds
        }
        return [node for node, _ in self._seen.values()]
