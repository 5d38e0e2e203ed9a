"""
Finds the clients that agents do not show, and the rules that the agents lack.

A client counts as absent only if the answers would have shown it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics import catalog
from quotascope.metrics.catalog import THROTTLE_TIME_SECONDS
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.words import counted

from ..coverage import EntityKind
from ..snapshot import NodeUsage, Snapshot, SourceHealth
from ..snapshot.visibility import Visibility, throttled_before, throttled_unseen
from ..untrusted import shown
from .catalog import Catalog, Finding, FindingSeverity
from .units import digits, type_name

Series: TypeAlias = tuple[QuotaType, EntityKind]
"""The quota type and the kind of entity of some clients' series."""

_TAGS: Final = {
    EntityKind.USER: "user=*",
    EntityKind.CLIENT_ID: "client-id=*",
    EntityKind.PAIR: "user=*,client-id=*",
}
_KINDS: Final = {
    EntityKind.USER: "users alone",
    EntityKind.CLIENT_ID: "client-ids alone",
    EntityKind.PAIR: "pairs of user and client-id",
}
_EXAMPLES: Final = 3
_LONGEST_WAIT: Final = 30.0
"""Seconds: the usual request.timeout.ms of clients."""
_REASONS: Final = {
    "jolokia": "its policy leaves them out",
    "strimzi": "its allowList has none",
    "embedded": "the engine has none",
}
"""Reasons why a source shows no client, by dialect; all other dialects lack rules."""


def unseen_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings on series that cannot be read, on throttled clients that are not shown, and on absent clients."""
    visibility, sources = Visibility.of(snapshot), sources_by_node(snapshot)
    reported_nodes = set[str]()
    for node in snapshot.nodes:
        source = sources.get(node.broker) or _unknown_source(node)
        if node.foreign_labels:
            reported_nodes.add(node.broker)
            yield Catalog.CALLBACK_SUSPECTED.found(node.broker, labels=", ".join(map(shown, node.foreign_labels)))
        elif node.coverage is not None and (unplaced := node.coverage.unplaced) is not None:
            reported_nodes.add(node.broker)
            yield Catalog.SERIES_UNPLACED.found(source.name, dialect=source.dialect, lines=unplaced.text)
        if queues := throttled_unseen(node):
            reported_nodes.add(node.broker)
            yield Catalog.CLIENTS_NOT_SHOWN.found(
                source.name,
                dialect=source.dialect,
                node=shown(node.broker),
                queues=", ".join(f"{type_name(quota_type)} {size:.0f}" for quota_type, size in queues.items()),
                of=" of these quotas" if node.coverage is not None and node.coverage.has_entities else "",
                reason=_REASONS.get(source.dialect, "its rules have none for user and client-id"),
                rule=lacking(source.dialect, [(quota_type, EntityKind.PAIR) for quota_type in queues]),
            )
    # an entity without names may be one whose names an agent's rules left out
    measured = snapshot.measured
    named = any(entity.user or entity.client_id for entity in measured.columns.layout.entities[measured.rows])
    if snapshot.columns.tagged or named or (measured and visibility.absence_is_certain):
        yield from _partly_shown(snapshot, visibility, sources, reported_nodes)
    elif not reported_nodes:
        yield from _none_shown(snapshot, visibility, sources)


def unit_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """
    Yield a finding for each node with throttle times that are in seconds only by the name of their metric.

    The finding is a warning if they are longer than clients wait for a response.
    """
    columns = snapshot.measured.columns
    for node in snapshot.nodes:
        if node.coverage is None or not node.coverage.in_seconds:
            continue
        node_number = columns.layout.nodes.index(node.broker) if node.broker in columns.layout.nodes else -1
        longest = np.nan_to_num(columns.throttle_time[columns.layout.node_numbers == node_number]).max(initial=0.0)
        is_long = longest > _LONGEST_WAIT
        text = f", up to {longest:,.0f} s" if is_long else ""
        finding = Catalog.UNIT_BY_NAME.found(node.broker, name=shown(node.coverage.in_seconds), longest=text)
        yield replace(finding, severity=FindingSeverity.WARNING) if is_long else finding


def label_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings on labels that are taken for labels of agents, and may be tags of a custom quota callback."""
    for node in snapshot.nodes:
        labels = () if node.coverage is None else node.coverage.labels_of_page
        if labels and node.quota_callback is not False:
            yield Catalog.LABEL_LEFT_OUT.found(node.broker, labels=", ".join(map(shown, labels)))


def lacking_if_any(dialect: str, series: Sequence[Series]) -> str:
    """Return the same advice as `lacking`, on clients of which it is unknown whether there are any."""
    advice = lacking(dialect, series)
    return f"If such clients send requests: {advice[0].lower()}{advice[1:]}"


def lacking(dialect: str, series: Sequence[Series]) -> str:
    """Return the advice to make an agent of a dialect show the series of some clients."""
    beans = [f"kafka.server:type={quota_type.group},{_TAGS[kind]}" for quota_type, kind in series[:_EXAMPLES]]
    names = f"{', '.join(beans)}{' and so on' if len(series) > _EXAMPLES else ''}"
    if dialect == "jolokia":
        return f"Let the agent's policy (jolokia-access.xml) read {names}."
    if dialect == "strimzi":
        names = ", ".join(dict.fromkeys(f"kafka_server_{quota_type.group.lower()}_.*" for quota_type, _ in series))
        return f"Add {names} to the allowList of metricsConfig."
    families = dict.fromkeys(catalog.USAGE[quota_type].name for quota_type, _ in series)
    family_names = ", ".join([*families, THROTTLE_TIME_SECONDS.name])
    return (
        f"The agent lacks a rule for {names}, or a filter leaves these out: add the rules for {family_names} of "
        "`quotascope rules jmx-exporter`."
    )


def sources_by_node(snapshot: Snapshot) -> Mapping[str, SourceHealth]:
    """Return the source in use for each node."""
    return {
        source.node_id: source
        for source in snapshot.sources
        if source.node_id is not None and source.stand_by_of is None
    }


def source_names(snapshot: Snapshot, nodes: Iterable[str]) -> str:
    """Return the sources of nodes with their dialects in a text, such as ``'broker-1' (strimzi)``."""
    sources = sources_by_node(snapshot)
    names = []
    for node in nodes:
        source = sources.get(node)
        names.append(f"that of node {shown(node)}" if source is None else f"{source.name!r} ({source.dialect})")
    return _first_examples([shown(name) for name in names])


def _first_examples(texts: Sequence[str]) -> str:
    """Return the first texts as a list, with an ellipsis for the others."""
    return ", ".join([*texts[:_EXAMPLES], *(["…"] if len(texts) > _EXAMPLES else [])])


def lacking_on(snapshot: Snapshot, hidden: Mapping[Series, Sequence[str]]) -> str:
    """
    Return the advice of `lacking_if_any` for the first node that may hide series; empty if no node may.

    Args:
        snapshot: The snapshot, which has the dialects of the nodes.
        hidden: The nodes that may hide series, by the series.

    """
    first_node = next((nodes[0] for nodes in hidden.values() if nodes), None)
    if first_node is None:
        return ""
    source = sources_by_node(snapshot).get(first_node)
    hidden_series = [series for series, nodes in hidden.items() if first_node in nodes]
    return lacking_if_any("" if source is None else source.dialect, hidden_series)


def _partly_shown(
    snapshot: Snapshot, visibility: Visibility, sources: Mapping[str, SourceHealth], reported_nodes: set[str]
) -> Iterator[Finding]:
    """Yield findings on nodes that show no client, or none of a kind, although other nodes show such clients."""
    showing_nodes = {
        (quota_type, kind): [node.broker for node in visibility.measuring(quota_type) if shows(node, quota_type, kind)]
        for quota_type in QuotaType
        for kind in EntityKind
    }
    for node in snapshot.nodes:
        hidden = [
            series for series, nodes in showing_nodes.items() if nodes and node.broker in visibility.hidden_on(*series)
        ]
        if not hidden or node.broker in reported_nodes or node.coverage is None or node.overruled:
            continue
        source = sources.get(node.broker) or _unknown_source(node)
        rule = lacking_if_any(source.dialect, hidden)
        if not node.coverage.has_entities:
            finding = Catalog.SOURCE_SHOWS_NO_CLIENT.found(
                source.name,
                dialect=source.dialect,
                node=shown(node.broker),
                count=counted(len(snapshot.measured), "quota entity"),
                rule=rule,
            )
        else:
            finding = Catalog.KINDS_PARTLY_SHOWN.found(
                source.name, dialect=source.dialect, node=shown(node.broker), kinds=kinds_text(hidden), rule=rule
            )
        # agents of one dialect usually have the same rules: where others show such clients, this node has none
        same_dialect = {name for name, health in sources.items() if health.dialect == source.dialect} - {node.broker}
        shown_by_same_dialect = all(same_dialect.intersection(showing_nodes[series]) for series in hidden)
        is_quiet = shown_by_same_dialect and not throttled_before(node)
        yield _note(finding) if is_quiet else finding


def shows(node: NodeUsage, quota_type: QuotaType, kind: EntityKind) -> bool:
    """Return whether the answer of a node has an entity of this kind."""
    return node.coverage is not None and kind in node.coverage.kinds.get(quota_type, ())


def kinds_text(series: Iterable[Series]) -> str:
    """Return kinds with their quota types, such as ``users alone (produce, fetch)``."""
    by_kind: dict[EntityKind, list[str]] = {}
    for quota_type, kind in series:
        by_kind.setdefault(kind, []).append(type_name(quota_type))
    return ", ".join(f"{_KINDS[kind]} ({', '.join(types)})" for kind, types in by_kind.items())


def _none_shown(snapshot: Snapshot, visibility: Visibility, sources: Mapping[str, SourceHealth]) -> Iterator[Finding]:
    """Yield findings on the reasons why no entity is shown, if nothing proves that there are entities."""
    limits = snapshot.limits
    rules = None
    if limits is not None and not all(node.overruled for node in snapshot.nodes):
        rules = sum(limits.count(quota_type.quota_key) for quota_type in QuotaType)
    stale = sum(sum(node.stale_entities.values()) for node in snapshot.nodes)
    if rules == 0:
        yield Catalog.NO_QUOTA.found()
        return
    if stale:
        yield Catalog.ONLY_STALE_BEANS.found(count=stale)
        return
    if not snapshot.nodes:
        return  # nothing was read, and the sources' errors say so
    configured_rules = "" if rules is None else f" (configured for clients: {counted(rules, 'rule')})"
    throttled_nodes = [node for node in snapshot.nodes if throttled_before(node)]
    hiding = [node for node in snapshot.nodes if visibility.shows_clients(node) is not True]
    for node in throttled_nodes[:_EXAMPLES]:
        source = sources.get(node.broker) or _unknown_source(node)
        yield Catalog.CLIENTS_WERE_THROTTLED.found(
            node.broker,
            requests=_throttles(node),
            source=source.name,
            dialect=source.dialect,
            rule=lacking_if_any(source.dialect, [(QuotaType.PRODUCE, EntityKind.PAIR)]),
        )
    if not throttled_nodes and visibility.absence_is_certain:
        yield Catalog.NOTHING_MEASURED.found() if limits is None else Catalog.NO_TRAFFIC.found(rules=configured_rules)
        return
    if not throttled_nodes:
        nodes = [node.broker for node in hiding or snapshot.nodes]
        dialects = {(sources.get(node) or _UNKNOWN).dialect for node in nodes}
        only_dialect = min(dialects) if len(dialects) == 1 else None
        rule = "" if only_dialect is None else lacking_if_any(only_dialect, [(QuotaType.PRODUCE, EntityKind.PAIR)])
        shows_some = " with its name" if snapshot.measured else ""
        # an agent whose rules name quota metrics may show no client because there is none
        is_quiet = dialects.isdisjoint(_WITHOUT_QUOTAS)
        finding = Catalog.NO_CLIENT_SHOWN.found(
            named=shows_some, rules=configured_rules, sources=source_names(snapshot, nodes), rule=rule
        )
        yield _note(finding) if is_quiet else finding
    for source in snapshot.sources:
        if source.up and source.hint is not None:
            finding = Catalog.SOURCE_WITHOUT_ENTITIES.found(source.name, dialect=source.dialect, hint=source.hint)
            is_quiet = not throttled_nodes and source.dialect not in _WITHOUT_QUOTAS
            yield _note(finding) if is_quiet else finding


def _throttles(node: NodeUsage) -> str:
    """Return the requests of a node that were throttled, by the longest sum, and then the refused ones, in a text."""
    throttled = sorted(node.by_name(catalog.REQUEST_THROTTLED_SECONDS).items(), key=lambda item: -item[1])
    texts = [f"{shown(request)} {digits(seconds)} s" for request, seconds in throttled if seconds > 0]
    texts += [
        f"{shown(request)} refused {count:.0f} times"
        for request, count in node.by_name(catalog.THROTTLING_ERRORS).items()
        if count
    ]
    return _first_examples(texts)


def _note(finding: Finding) -> Finding:
    """Return the finding as a note, since a broker may simply have no such client."""
    return replace(finding, severity=FindingSeverity.NOTE)


_WITHOUT_QUOTAS: Final = {"prometheus", "unknown"}
"""The dialects of agents that have named no quota metric so far, so that their rules may lack them."""
_UNKNOWN: Final = SourceHealth(name="", dialect="unknown", up=True, duration_seconds=0.0)


def _unknown_source(node: NodeUsage) -> SourceHealth:
    """Return a source for a node whose source is unknown, as from an exporter of an earlier release."""
    return SourceHealth(name=f"node {node.broker}", dialect="unknown", up=True, duration_seconds=0.0)
