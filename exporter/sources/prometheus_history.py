"""
The series of clients that a Prometheus server has of a period: which entity and quota type each is about.

The dialects' readers say it: the series of each node are read as a page of its agent, whose numbers are the places of
the series. The families of an exporter of ours are read by their own labels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from quotascope.metrics import catalog
from quotascope.metrics.catalog.family import OVERFLOW
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.sanitizer import desanitize

from ..errors import SourceUnreadable
from ..mapping import MILLISECONDS, Bean, Meaning, attribute_of
from ..untrusted import shown
from .dialects import TextDialect, own_labels
from .prometheus_api import Labels, Series
from .prometheus_limits import KINDS, OWN_LIMIT, OWN_RULE, own_label, own_value
from .prometheus_nodes import (
    EXPORTER_MARKS,
    NAME,
    NODE_ID_LABEL,
    Grouping,
    NodeSeries,
    Replica,
    beat_names,
    labelled_id,
    page_of_node,
    query_of,
    refuse_clusters,
    wanted_names,
)
from .prometheus_text import TextReader
from .source import reported_ids
from .spellings import Role, is_scrape_label, quota_name, roles_of

_MOST_NAMED: Final = 5
_OWN_USAGE: Final = {family.name: kind for kind, family in catalog.USAGE.items()}
_OWN_THROTTLE: Final = catalog.THROTTLE_TIME_SECONDS.name
OWN_NAMES: Final = (*_OWN_USAGE, _OWN_THROTTLE, *OWN_LIMIT, OWN_RULE)
"""The families of an exporter of ours that have usage, throttles, limits and rules of entities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSeries:
    """A series of an entity's usage or throttle time on one node."""

    name: str
    labels: Labels = field(repr=False)
    """All labels as the server has them, without the name."""
    node: str
    """Node id where it is known, else the label that tells nodes apart."""
    replica: str
    """The Prometheus server that scraped it, or the exporter; empty for the only one."""
    quota_type: QuotaType
    is_throttle: bool
    """True for a throttle time in seconds, False for a usage in Kafka's unit."""
    user: str
    """Decoded name; empty where the broker measures without it."""
    client_id: str
    factor: float
    """A sample times this is in Kafka's unit, or in seconds."""
    user_label: str | None
    client_label: str | None
    part_labels: tuple[str, ...]
    """
    Labels that tell series of one entity apart.

    The first is the label of the node; then come server or exporter, quota type and attribute.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The series whose samples are the scrapes of a node, as selectors, and the labels that tell nodes apart."""

    selectors: Sequence[str]
    """One for each metric: Prometheus refuses counts of two metrics whose labels are the same."""
    names: Sequence[str]
    """The names of these metrics."""
    by: tuple[str, ...]
    """The label of the node, then those of exporters and servers."""
    node_of: Mapping[tuple[str, ...], str]
    """Nodes by the values of these labels."""
    count: int
    """Number of the series that these selectors find."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All series of the clients of one cluster in a period."""

    series: Sequence[MeasuredSeries]
    beat: Beat
    by_exporter: bool
    """True if they are families of an exporter of ours, which have limits, too."""
    listed: Sequence[Series] = field(repr=False)
    """All series from which this was read: the same come to the same inventory again."""
    caveats: tuple[str, ...] = ()
    """Sentences about parts of the cluster that no readable series has."""


class Listing(Protocol):
    """A server, or a table of its samples, that lists its series (`PrometheusApi`)."""

    async def names(self, selector: str, start: float, end: float) -> list[str]:
        """Return the names of the metrics of a period."""

    async def series(self, selector: str, start: float, end: float) -> list[Series]:
        """Return the series of a selector in a period."""


async def inventory(  # noqa: PLR0913 - the parts of a configuration
    api: Listing,
    grouping: Grouping,
    selector: str,
    period: tuple[float, float],
    *,
    node_ids: Mapping[str, str] | None = None,
    forced: TextDialect | None = None,
    by_exporter: bool | None = None,
) -> Inventory:
    """
    Return the series of a period (Unix times in seconds) by the entity that they are about.

    Args:
        api: the server.
        grouping: the labels that tell nodes apart.
        selector: matchers of the cluster's series.
        period: begin and end.
        node_ids: node ids by the label that tells nodes apart, where agents report none.
        forced: the dialect of the agents, or None to detect it.
        by_exporter: whether families of an exporter of ours are read; None if there are any.

    Raises:
        SourceError: the server does not answer, has no such series, has those of several clusters, a node's cannot
            be read, or its agent says another id than ``node_ids`` or the label node_id of its target.

    """
    names = wanted_names(await api.names(selector, *period))
    if not names:
        matching = f" with {{{selector}}}" if selector else ""
        raise SourceUnreadable(
            f"it has no metric of Kafka's brokers{matching} in this period: does it scrape their agents, is selector "
            "right, and does it keep samples for so long?"
        )
    series = await api.series(query_of(dict.fromkeys((*names, *OWN_NAMES)), selector), *period)
    exporters = {one.labels.get(grouping.instance_label, "") for one in series if one.labels[NAME] in EXPORTER_MARKS}
    groups = grouping.groups(series)
    own_series = [one for one in series if one.labels.get(grouping.instance_label, "") in exporters]
    has_own = any(one.labels[NAME] in _OWN_USAGE for one in own_series)
    if by_exporter and not has_own:
        raise SourceUnreadable("it has no usage that an exporter of quotascope shows: is the exporter scraped?")
    if by_exporter or (by_exporter is None and has_own):
        return _exporter_inventory(own_series, grouping, selector)
    if not groups:
        raise SourceUnreadable("it has series of quotascope's exporter only, and those of agents were asked for")
    return _agent_inventory(groups, grouping, selector, node_ids or {}, forced)


def _agent_inventory(
    groups: Mapping[str, Mapping[Replica, Sequence[Series]]],
    grouping: Grouping,
    selector: str,
    node_ids: Mapping[str, str],
    forced: TextDialect | None,
) -> Inventory:
    """Return the series of agents, by node. Raises ``SourceUnreadable``."""
    nodes = [
        NodeSeries(instance=instance, series=[one for part in replicas.values() for one in part])
        for instance, replicas in groups.items()
    ]
    refuse_clusters(nodes, selector, grouping.instance_label)
    measured: list[MeasuredSeries] = []
    caveats: dict[str, list[str]] = defaultdict(list)  # nodes by the caveat
    instances: dict[str, str] = {}  # by node id
    for instance, replicas in groups.items():
        pages = [
            page for replica, part in replicas.items() for page in _pages(instance, replica, part, grouping, forced)
        ]
        reported = sorted({node_id for page in pages for node_id in page.node_ids}, key=int)
        if len(reported) > 1:
            raise SourceUnreadable(
                f"{shown(instance)} was the address of several nodes in this period: {_listed(reported)}. Name what "
                "tells their series apart in selector, such as pod, or take a period in which it was of one node "
                "(--begin, --end, --days)"
            )
        node = _node_id(instance, reported, node_ids.get(instance), replicas)
        first_instance = instances.setdefault(node, instance)
        if first_instance != instance:
            raise SourceUnreadable(
                f"{shown(first_instance)} and {shown(instance)} both are node {shown(node)}: name the series of one "
                "cluster in selector; of a node whose address changed, name both addresses in turn"
            )
        for page in pages:
            measured.extend(replace(one, node=node) for one in page.series)
            for caveat in page.caveats:
                caveats[caveat].append(node)
    labels = (grouping.instance_label, *grouping.replica_labels)
    # a label that a series lacks is empty, as in the results of queries
    node_of = {
        (instance, *(dict(replica).get(label, "") for label in grouping.replica_labels)): node
        for node, instance in instances.items()
        for replica in groups[instance]
    }
    beats = beat_names(groups)
    count = sum(one.labels[NAME] in beats for node in nodes for one in node.series)
    sentences = [f"Node {_listed(nodes_with_caveat)}: {text}" for text, nodes_with_caveat in caveats.items()]
    unseen = sorted(node_ids.keys() - groups.keys())
    if unseen:
        sentences.append(f"`nodes` names {_listed(unseen)}, of which there is no series in this period.")
    return Inventory(
        series=measured,
        beat=Beat(
            selectors=[query_of([name], selector) for name in beats],
            names=beats,
            by=labels,
            node_of=node_of,
            count=count,
        ),
        by_exporter=False,
        listed=[one for node in nodes for one in node.series],
        caveats=tuple(sentences),
    )


def _node_id(
    instance: str, reported: Sequence[str], configured: str | None, replicas: Mapping[Replica, Sequence[Series]]
) -> str:
    """
    Return the id of a node: by configuration, by its target, or by its agent; without any of them, its instance label.

    Raises ``SourceUnreadable`` where its agent reports another one.
    """
    labelled = labelled_id(one for part in replicas.values() for one in part)
    known_id = configured or (None if labelled is None else str(labelled))
    if known_id is None:
        return reported[0] if reported else instance
    if reported and known_id != reported[0]:
        origin = "`nodes` of this source" if configured else f"the label {NODE_ID_LABEL} of its target"
        raise SourceUnreadable(
            f"the agent of {shown(instance)} says that it is node {shown(reported[0])}, but {origin} says "
            f"{shown(known_id)}: correct it, or leave it out"
        )
    return known_id


def _listed(nodes: Sequence[str]) -> str:
    """Return the first nodes in words, and the number of the others."""
    more = f" and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
    return ", ".join(map(shown, nodes[:_MOST_NAMED])) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """The series of the clients on one page of a node."""

    series: Sequence[MeasuredSeries]
    node_ids: Sequence[str]
    """Ids of nodes that the page reports: one, or none."""
    caveats: Sequence[str]


def _pages(
    instance: str, replica: Replica, series: Iterable[Series], grouping: Grouping, forced: TextDialect | None
) -> Iterable[_Page]:
    """
    Read the series of a node, page by page.

    A page has the series with the same labels of the target: a pod or job that was renamed in the period has two.
    """
    parts: dict[tuple[tuple[str, str], ...], list[Series]] = defaultdict(list)
    for one in series:
        target = ((label, value) for label, value in one.labels.items() if is_scrape_label(label))
        parts[tuple(sorted(target))].append(one)
    for part in parts.values():
        if any(quota_name(one.labels[NAME]) is not None or own_labels(one.labels[NAME]) for one in part):
            yield _page(instance, replica, part, grouping, forced)


def _page(
    instance: str, replica: Replica, series: Sequence[Series], grouping: Grouping, forced: TextDialect | None
) -> _Page:
    """
    Read the series of one page by the reader of its dialect. Raises ``SourceUnreadable``.

    The page is read twice: with 1 as every number, which gives the factors to Kafka's units, and with the places of the
    series as numbers, which gives the series of each column.
    """
    node = NodeSeries(instance=instance, series=[replace(one, samples=[(0.0, "1")]) for one in series])
    numbered = [replace(one, samples=[(0.0, str(place))]) for place, one in enumerate(series, start=1)]
    try:
        reader = TextReader(forced)
        page = reader.read(page_of_node(node, grouping, {}))
        factors = dict(zip(page.layout.columns, page.values, strict=True))
        reader.close()
        reader = TextReader(forced)
        page = reader.read(page_of_node(replace(node, series=numbered), grouping, {}))
    except SourceUnreadable as error:
        raise SourceUnreadable(f"{shown(instance)}: {error}") from None
    finally:
        reader.close()
    measured: list[MeasuredSeries] = []
    callbacks = 0
    for column, value in zip(page.layout.columns, page.values, strict=True):
        attribute = attribute_of(column)
        if attribute is None or attribute.quota_type is None or "user" not in attribute.free:
            continue
        if attribute.meaning not in {Meaning.USAGE, Meaning.THROTTLE_TIME}:
            continue
        if attribute.open:
            callbacks += 1
            continue
        # the number of a column is the place of its series, from 1 on, times the factor
        original = series[round(value / factors[column]) - 1]
        is_throttle = attribute.meaning is Meaning.THROTTLE_TIME
        user, client_id = _names(column.bean)
        roles = roles_of(tuple(label for label in original.labels if label != NAME))
        measured.append(
            MeasuredSeries(
                name=original.labels[NAME],
                labels=_without_name(original.labels),
                node=instance,
                replica=",".join(value for _, value in replica),
                quota_type=attribute.quota_type,
                is_throttle=is_throttle,
                user=user,
                client_id=client_id,
                factor=factors[column] / (MILLISECONDS if is_throttle else 1.0),
                user_label=roles.get(Role.USER),
                client_label=roles.get(Role.CLIENT_ID),
                part_labels=_part_labels(roles, original.labels, grouping),
            )
        )
    caveats = [text for text in (page.remark, page.hint if not measured else None) if text]
    if callbacks:
        caveats.append("its custom quota callback measures by tags of its own, which are left out")
    if page.coverage.unplaced is not None:
        caveats.append(f"series that look like quotas cannot be read: {page.coverage.unplaced.text}")
    return _Page(series=measured, node_ids=reported_ids(page.layout), caveats=caveats)


def _names(bean: Bean) -> tuple[str, str]:
    """Return the decoded user and the client-id of an entity's bean; empty for an absent name."""
    user = bean.get("user") or ""
    try:
        return desanitize(user), bean.get("client-id") or ""
    except MalformedName:  # a tag that Kafka would not write stays as it is
        return user, bean.get("client-id") or ""


def _part_labels(roles: Mapping[Role, str], labels: Labels, grouping: Grouping) -> tuple[str, ...]:
    """Return the labels that tell series of one entity apart: of node, server, quota type and attribute."""
    server_labels = [label for label in grouping.replica_labels if label in labels]
    quota_labels = [roles[role] for role in (Role.TYPE, Role.ATTRIBUTE) if role in roles]
    return (grouping.instance_label, *server_labels, *quota_labels)


def _without_name(labels: Labels) -> Labels:
    """Return the labels of a series without the label that has the metric's name."""
    return {label: value for label, value in labels.items() if label != NAME}


def _exporter_inventory(series: Sequence[Series], grouping: Grouping, selector: str) -> Inventory:
    """Return the families of exporters of ours. Raises ``SourceUnreadable``."""
    by_instance: dict[str, list[Series]] = defaultdict(list)
    for one in series:
        by_instance[one.labels.get(grouping.instance_label, "")].append(one)
    nodes = [NodeSeries(instance=instance, series=part) for instance, part in by_instance.items()]
    refuse_clusters(nodes, selector, grouping.instance_label)
    measured: list[MeasuredSeries] = []
    overflow = False
    for one in series:
        name, labels = one.labels[NAME], one.labels
        kind = _OWN_USAGE.get(name)
        is_throttle = name == _OWN_THROTTLE
        if is_throttle:
            kind = KINDS.get(own_value(labels, "quota_type"))
        if kind is None:  # neither usage nor a throttle time
            continue
        user, client_id = own_value(labels, "user"), own_value(labels, "client_id")
        if OVERFLOW in {user, client_id}:
            overflow = True
            continue
        node_label = own_label(labels, "broker")
        servers = (label for label in grouping.replica_labels if label in labels)
        types = (own_label(labels, "quota_type"),) if is_throttle else ()
        replica = [labels.get(label, "") for label in (grouping.instance_label, *grouping.replica_labels)]
        measured.append(
            MeasuredSeries(
                name=name,
                labels=_without_name(labels),
                node=own_value(labels, "broker"),
                replica=",".join(filter(None, replica)),
                quota_type=kind,
                is_throttle=is_throttle,
                user=user,
                client_id=client_id,
                factor=1.0 if is_throttle else kind.in_kafka_unit(1.0),
                user_label=own_label(labels, "user"),
                client_label=own_label(labels, "client_id"),
                part_labels=(node_label, grouping.instance_label, *servers, *types),
            )
        )
    caveats = ["The samples are the families of an exporter of quotascope; --series agents takes those of the agents."]
    if overflow:
        caveats.append("The exporter shows clients beyond its cap as one (overflow): these are left out.")
    return Inventory(
        series=measured,
        beat=_own_beat(series, grouping, selector),
        by_exporter=True,
        listed=series,
        caveats=tuple(caveats),
    )


def _own_beat(series: Iterable[Series], grouping: Grouping, selector: str) -> Beat:
    """Return the series of usage, which an exporter has of each node that it could read, by node and exporter."""
    node_of: dict[tuple[str, ...], str] = {}
    node_label, count = "broker", 0
    names: dict[str, None] = {}  # a set that keeps the order
    exporter_labels = (grouping.instance_label, *grouping.replica_labels)
    for one in series:
        if one.labels[NAME] in _OWN_USAGE:
            count += 1
            names[one.labels[NAME]] = None
            node_label = own_label(one.labels, "broker")
            node = own_value(one.labels, "broker")
            node_of[node, *(one.labels.get(label, "") for label in exporter_labels)] = node
    selectors = [query_of([name], selector) for name in names]
    return Beat(selectors=selectors, names=[*names], by=(node_label, *exporter_labels), node_of=node_of, count=count)
