"""Finds the nodes in the series of a Prometheus server, and the id of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quotascope.clients.errors import ClientError
from quotascope.clients.quota_admin import Node, QuotaAdmin

from ..config import PrometheusConfig
from ..errors import DiscoveryError, SourceError, SourceUnreadable
from ..sources.dialects import TextDialect
from ..sources.prometheus_live import NAMES_SECONDS, LivePrometheus, PrometheusNodeSource, PrometheusReading
from ..sources.prometheus_nodes import NodeSeries, labelled_id, labels_of_duplicates, page_of_node, starts_of
from ..sources.prometheus_text import TextReader
from ..sources.source import NodeId, Source
from ..threads import BlockingCalls
from ..untrusted import shown
from .build import server_of
from .target import FoundNodes

_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusNode:
    """A node that a server has: a `FoundSource`."""

    label: str
    live: LivePrometheus
    instance: str
    node_id: str | None
    """Id of the node; None if its page reports it."""
    forced: TextDialect | None

    def open(self) -> Source:
        """Return the source that reads it."""
        return PrometheusNodeSource(self.label, self.live, self.instance, self.node_id, self.forced)


class PrometheusFinder:
    """
    Finds the nodes of one cluster in one server.

    The id of a node is the first that is known of these: under ``nodes`` in the configuration, in a label node_id of
    its target, on its page, and that of a broker on the same host by the Admin API. A node whose page reports another
    id than the configuration or its target cannot be read.

    Args:
        config: The server, and which of its series are of the cluster.
        open_admin: Opens the Admin API, where it is configured.

    """

    interval_seconds = NAMES_SECONDS

    def __init__(self, config: PrometheusConfig, open_admin: Callable[[], QuotaAdmin] | None = None) -> None:
        self.name = f"prometheus {config.label}"
        self._config = config
        self._live, self._forced = server_of(config)
        self._open_admin = open_admin
        self._admin: QuotaAdmin | None = None
        self._calls = BlockingCalls("quotascope-discovery", DiscoveryError)

    async def find(self) -> FoundNodes:
        """Return a source for each node. Raises ``DiscoveryError``."""
        try:
            reading = await self._live.reading(newer_than=self._live.clock() - self.interval_seconds)
            await self._live.refuse_clusters(reading)
        except SourceError as error:
            raise DiscoveryError(str(error)) from error
        problems: list[str] = []
        ids, ids_by_page = self._known_ids(reading, problems)
        missing = [instance for instance, node_id in ids.items() if node_id is None]
        if missing:
            by_host = await self._ids_by_host(problems)
            for instance in missing:
                host = _host(instance)
                if host in by_host:
                    ids[instance] = by_host[host]
        self._refuse_shared_ids(reading, ids)
        unidentified = [instance for instance, node_id in ids.items() if node_id is None]
        if unidentified:
            names = ", ".join(map(shown, unidentified[:_MOST_NAMED]))
            more = f" and {len(unidentified) - _MOST_NAMED} more" if len(unidentified) > _MOST_NAMED else ""
            problems.append(
                f"the node id of {names}{more} is unknown: their agents do not report it; give it under `nodes` of "
                "this source, or as a label node_id of the target in Prometheus"
            )
        sources = tuple(
            PrometheusNode(
                label=f"{self._config.label}/{instance}",
                live=self._live,
                instance=instance,
                node_id=None if instance in ids_by_page else str(ids[instance]),
                forced=self._forced,
            )
            for instance in reading.nodes
            if ids.get(instance) is not None
        )
        return FoundNodes(targets=(), sources=sources, problem="; ".join(problems) or None)

    async def close(self) -> None:
        """End the connections."""
        await self._live.close()
        if self._admin is not None:
            await self._calls.close(self._admin.close)

    def _known_ids(self, reading: PrometheusReading, problems: list[str]) -> tuple[dict[str, int | None], set[str]]:
        """
        Return the ids of nodes by instance, None for unknown ones, and the instances whose page reports that id.

        Nodes that have each series twice are left out, with a problem.
        """
        ids: dict[str, int | None] = {}
        reported: set[str] = set()
        unseen = self._config.nodes.keys() - reading.nodes.keys()
        if unseen:
            problems.append(f"`nodes` names {shown(min(unseen))}, of which there is no series")
        for instance, node in reading.nodes.items():
            if labels := labels_of_duplicates(node):
                problems.append(_duplicates_problem(node, labels))
                continue
            page_id = self._reported_id(node, reading)
            configured_id = self._config.nodes.get(instance, labelled_id(node.series))
            ids[instance] = page_id if configured_id is None else configured_id
            if page_id is not None and configured_id in {None, page_id}:
                reported.add(instance)
        return ids, reported

    def _reported_id(self, node: NodeSeries, reading: PrometheusReading) -> int | None:
        """Return the id that a node's page reports, None if it reports none."""
        starts = starts_of(node)
        if not starts:
            return None
        page = page_of_node(NodeSeries(instance=node.instance, series=starts), self._live.grouping, reading.comments)
        reader = TextReader()
        try:
            return int(NodeId(None).of(reader.read(page).layout))
        except SourceUnreadable:
            return None
        finally:
            reader.close()

    async def _ids_by_host(self, problems: list[str]) -> Mapping[str, int]:
        """Return the ids of brokers by host, without hosts that several brokers share."""
        if self._open_admin is None:
            return {}
        try:
            nodes = await self._calls.run(self._describe)
        except (ClientError, DiscoveryError) as error:
            problems.append(f"the Admin API cannot say whose hosts they are: {error}")
            return {}
        hosts = [node.host.lower() for node in nodes]
        return {node.host.lower(): node.node_id for node in nodes if hosts.count(node.host.lower()) == 1}

    def _describe(self) -> Sequence[Node]:
        """Return the brokers by the Admin API, which the first call opens; blocks."""
        if self._admin is None and self._open_admin is not None:
            self._admin = self._open_admin()
        return () if self._admin is None else self._admin.describe_brokers().nodes

    def _refuse_shared_ids(self, reading: PrometheusReading, ids: Mapping[str, int | None]) -> None:
        """Raise ``DiscoveryError`` where two nodes have the same id: then they belong to two clusters."""
        instances: dict[int, str] = {}
        for instance, node_id in ids.items():
            if node_id is None:
                continue
            earlier = instances.setdefault(node_id, instance)
            if earlier != instance:
                label = _differing(reading.nodes[earlier], reading.nodes[instance], self._config.instance_label)
                raise DiscoveryError(
                    f"{shown(earlier)} and {shown(instance)} are both node {node_id}: are they of two clusters? "
                    f"Name one of them in selector{label}"
                )


def _duplicates_problem(node: NodeSeries, labels: Sequence[str]) -> str:
    """Return the problem of a node with the series of several scrapes: no order tells which one is right."""
    names = ", ".join(map(shown, labels[:_MOST_NAMED]))
    return (
        f"{shown(node.instance)} has each series twice, with other values of {names}: where several Prometheus servers "
        "scrape the same agents, name the label that tells them apart under `replica_labels` of this source; else name "
        "one value in `selector`"
    )


def _differing(one: NodeSeries, other: NodeSeries, instance_label: str) -> str:
    """Return the labels, beside that of the instance, by which two nodes differ, as a part of a message."""
    of_one_alone = _common_labels(one) - _common_labels(other)
    labels = sorted({label for label, _ in of_one_alone} - {instance_label, "__name__"})
    if not labels:
        return f" by {instance_label}"
    names = ", ".join(map(shown, labels[:_MOST_NAMED]))
    return f": they differ in {names}"


def _common_labels(node: NodeSeries) -> set[tuple[str, str]]:
    """Return the labels, with their values, that all series of a node have."""
    return set.intersection(*({*series.labels.items()} for series in node.series))


def _host(instance: str) -> str:
    """Return the host of ``HOST:PORT``, in lower case."""
    host, _, port = instance.rpartition(":")
    has_port = bool(host) and port.isdecimal()
    return (host if has_port else instance).strip("[]").lower()
