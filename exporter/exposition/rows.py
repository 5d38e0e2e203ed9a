"""What is exposed series by series: the cause of a throttle, the nodes, the configured rules, and the exporter itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from itertools import chain
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics import DefaultType, QuotaEntity, QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..limits import QUOTA_KEYS
from ..mapping import in_base_unit
from ..snapshot import CAUSES, Columns, LimitedRate, NodeUsage, Snapshot
from ..snapshot.layout import node_order

Row: TypeAlias = tuple[tuple[str, ...], float | None]
"""Label values in the family's order, and the value; None for one that is unknown."""
_Rows: TypeAlias = Iterator[tuple[Family, tuple[str, ...], float | None]]

_RULES: Final = {
    QuotaType.PRODUCE: catalog.RULE_PRODUCE_LIMIT,
    QuotaType.FETCH: catalog.RULE_FETCH_LIMIT,
    QuotaType.REQUEST: catalog.RULE_REQUEST_LIMIT,
    QuotaType.CONTROLLER_MUTATION: catalog.RULE_CONTROLLER_MUTATION_LIMIT,
}
_OF_NODES: Final[Mapping[Family, Callable[[NodeUsage], float | None]]] = {
    catalog.EXEMPT_REQUEST_THREADS: attrgetter("exempt_request_threads"),
    catalog.REQUEST_CAPACITY_THREADS: attrgetter("request_capacity_threads"),
    catalog.CONTROLLER_EVENT_QUEUE_SECONDS: attrgetter("controller_event_queue_seconds"),
    catalog.CONTROLLER_EVENTS: attrgetter("controller_events"),
    catalog.UTILIZATION_DISAGREEMENTS: attrgetter("utilization_disagreements"),
    catalog.CALLBACK_DETECTED: attrgetter("quota_callback"),
    catalog.CALLBACK_THROTTLE_FACTOR: attrgetter("throttle_factor"),
    catalog.BROKER_CONNECTIONS_PER_SECOND: attrgetter("connections.broker.rate"),
    catalog.BROKER_CONNECTION_LIMIT: attrgetter("connections.broker.limit"),
    catalog.REQUEST_HANDLER_IDLE: attrgetter("load.handlers_idle"),
    catalog.REQUEST_HANDLER_IDLE_SECONDS: attrgetter("load.handlers_idle_seconds"),
    catalog.NETWORK_PROCESSOR_IDLE: attrgetter("load.network_idle"),
    catalog.CONTROLLER_EVENT_IDLE: attrgetter("load.controller_idle"),
    catalog.REQUEST_QUEUE_SIZE: attrgetter("load.request_queue_size"),
}
"""Numbers of a node."""
_BY_NAME: Final[Mapping[Family, Callable[[NodeUsage], Mapping[str, float]]]] = {
    catalog.REQUEST_THROTTLED_SECONDS: attrgetter("request_throttled_seconds"),
    catalog.THROTTLING_ERRORS: attrgetter("throttling_errors"),
    catalog.IP_CONNECTION_THROTTLE_SECONDS: attrgetter("connections.ip_throttle_time_seconds"),
    catalog.REQUEST_HANDLER_POOL_IDLE: attrgetter("load.pools_idle"),
    catalog.REQUEST_HANDLER_POOL_IDLE_SECONDS: attrgetter("load.pools_idle_seconds"),
}
"""Numbers of a node by request, listener or pool."""
_RATES: Final[Mapping[tuple[Family, ...], Callable[[NodeUsage], Mapping[str, LimitedRate]]]] = {
    (
        catalog.LISTENER_CONNECTIONS_PER_SECOND,
        catalog.LISTENER_CONNECTION_LIMIT,
        catalog.LISTENER_CONNECTION_THROTTLE_SECONDS,
    ): attrgetter("connections.listeners"),
    (catalog.IP_CONNECTIONS_PER_SECOND, catalog.IP_CONNECTION_LIMIT): attrgetter("connections.ips"),
    (catalog.REPLICATION_BYTES_PER_SECOND, catalog.REPLICATION_LIMIT): attrgetter("replication"),
    (
        catalog.REMOTE_STORAGE_BYTES_PER_SECOND,
        catalog.REMOTE_STORAGE_LIMIT,
        catalog.REMOTE_STORAGE_THROTTLE_SECONDS,
    ): attrgetter("remote_storage"),
}
"""Of the quotas of a node beside the client quotas: rate, limit and, where there is one, throttle time."""


@dataclass(eq=False)
class Exposed:
    """A snapshot, and the Unix time in seconds at which it is exposed."""

    snapshot: Snapshot
    now: float

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The series of the families that are not columns, by the family's name."""
        rows = defaultdict(list)
        rows[catalog.THROTTLE_CAUSE_INFO.name] = list(_causes(self.snapshot.shown))
        for family, labels, value in chain(
            _of_shadows(self.snapshot),
            _of_nodes(self.snapshot),
            _of_limits(self.snapshot),
            _of_sources(self.snapshot, self.now),
            _of_exporter(self.snapshot, self.now),
        ):
            rows[family.name].append((labels, value))
        for name, value in self.snapshot.process.items():
            rows[name].append(((), value))
        return rows


def _causes(shown: Columns) -> Iterator[Row]:
    rows = np.flatnonzero(shown.causes[shown.layout.own])
    if shown.detailed is not None:
        rows = rows[shown.detailed[rows]]
    numbers = shown.causes[rows].tolist()
    for entity, number in zip(shown.layout.entities[rows], numbers, strict=True):
        if (cause := CAUSES[number]) is not None:
            label = entity.quota_type.label
            yield (label, entity.broker, entity.user, entity.client_id, cause.value), 1


def _of_shadows(shown: Snapshot) -> _Rows:
    """What shadows would do."""
    for shadow in shown.shadows:
        for usage in shadow.entities:
            of = usage.entity
            labels = shadow.name, of.quota_type.label, of.broker, of.user, of.client_id
            yield catalog.SHADOW_UTILIZATION, labels, usage.utilization
            yield catalog.SHADOW_THROTTLE_TIME, labels, usage.throttle_time_seconds
        for (kind, broker), count in shadow.throttled.items():
            place = shadow.name, kind.label, broker
            yield catalog.SHADOW_THROTTLED_ENTITIES, place, count
        for (kind, broker, reason), count in shadow.unevaluated.items():
            place_and_reason = shadow.name, kind.label, broker, reason
            yield catalog.SHADOW_UNEVALUATED_ENTITIES, place_and_reason, count


def _of_nodes(shown: Snapshot) -> _Rows:
    """What brokers and controllers report of themselves, and of the quotas beside the client quotas."""
    # 2 before 10
    nodes = sorted(shown.nodes, key=lambda node: node_order(node.broker))
    greatest = shown.peaks.delay_queue_size if shown.peaks else {}
    for kind in QuotaType:
        for node in nodes:
            queue = kind.label, node.broker
            yield catalog.DELAY_QUEUE_SIZE, queue, node.delay_queue_size.get(kind)
            most = greatest.get((node.broker, kind))
            yield catalog.DELAY_QUEUE_SIZE_MAX, queue, most
            yield catalog.STALE_ENTITIES, queue, node.stale_entities.get(kind)
    for node in nodes:
        yield from _of_node(node)


def _of_node(node: NodeUsage) -> _Rows:
    broker = node.broker
    for family, number_of in _OF_NODES.items():
        yield family, (broker,), number_of(node)
    for family, numbers_of in _BY_NAME.items():
        for name, number in sorted(numbers_of(node).items()):
            yield family, (broker, name), number
    for queued, wait in sorted(node.load.request_queue_seconds.items()):
        yield catalog.REQUEST_QUEUE_SECONDS, (broker, *queued), wait
    for families, rates_of in _RATES.items():
        for name, rate in sorted(rates_of(node).items()):
            fields = rate.rate, rate.limit, rate.throttle_time_seconds
            for family, value in zip(families, fields, strict=False):
                yield family, (broker, name), value


def _of_limits(shown: Snapshot) -> _Rows:
    """The configured rules, and how often they changed."""
    limits, health = shown.limits, shown.limits_health
    if limits is not None:
        for kind, rules in limits.rules.items():
            bounds = [(rule_labels(entity), in_base_unit(kind, bound)) for entity, bound in rules.items()]
            for labels, bound in sorted(bounds):
                yield _RULES[kind], labels, bound
        for ip, rate in sorted(limits.connection_limits.items()):
            yield catalog.RULE_CONNECTION_LIMIT, (ip,), rate
        for key in QUOTA_KEYS:
            yield catalog.RULES, (key,), limits.count(key)
    for key in QUOTA_KEYS if health.configured else ():
        yield catalog.LIMIT_CHANGES, (key,), health.changes_total.get(key, 0)
    yield catalog.LIMITS_REFRESH_ERRORS, (), health.errors_total


def _of_sources(shown: Snapshot, now: float) -> _Rows:
    """How the reads of each source go, and what discovery finds."""
    for source in shown.sources:
        name = source.name
        yield catalog.SOURCE_UP, (name,), source.up
        yield catalog.SOURCE_DURATION_SECONDS, (name,), source.duration_seconds
        yield catalog.SOURCE_READINGS, (name,), source.readings
        yield catalog.SOURCE_DIALECT_INFO, (name, source.dialect), 1
        if source.up and source.read_at is not None:
            age = max(0.0, now - source.read_at)
            yield catalog.SOURCE_AGE_SECONDS, (name,), age
        if source.stand_by_of is not None:
            yield catalog.SOURCE_STAND_BY, (name, source.stand_by_of), 1
    for each in shown.discoveries:
        yield catalog.DISCOVERED_SOURCES, (each.name,), None if each.found_at is None else each.targets
        yield catalog.DISCOVERY_ERRORS, (each.name,), each.errors_total


def _of_exporter(shown: Snapshot, now: float) -> _Rows:
    """The exporter itself, and its push over OTLP."""
    yield catalog.BUILD_INFO, (own_version(),), 1
    yield catalog.SNAPSHOT_AGE_SECONDS, (), max(0.0, now - shown.taken_at)
    if (limits_age := shown.limits_health.age_seconds(now)) is not None:
        yield catalog.LIMITS_AGE_SECONDS, (), limits_age
    if (reload := shown.reload) is not None:
        yield catalog.CONFIG_LAST_RELOAD_SUCCESSFUL, (), reload.error is None
        at = reload.succeeded_at
        yield catalog.CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS, (), at
    if shown.sampling is not None:
        yield catalog.SAMPLES, (), shown.sampling.samples
        yield catalog.SAMPLES_MISSED, (), shown.sampling.missed
    for task, count in shown.restarts.items():
        yield catalog.BACKGROUND_RESTARTS, (task,), count
    folds, layout = shown.folds, shown.shown.layout
    for state, count in {
        "exported": len(layout) - int(layout.stand_ins.sum()),
        "overflow": folds.overflow + shown.callbacks.folded,
        "excluded": folds.excluded,
        "idle": folds.idle,
        "stale": sum(chain(*(node.stale_entities.values() for node in shown.nodes))),
    }.items():
        yield catalog.ENTITIES, (state,), count
    for reason in ("overflow", "excluded", "idle", "detail"):
        yield catalog.SERIES_DROPPED, (reason,), folds.series_dropped.get(reason, 0)
    if shown.push is not None:
        for outcome, count in shown.push.exports_total.items():
            yield catalog.OTLP_EXPORTS, (outcome,), count
        for outcome, count in shown.push.points_total.items():
            yield catalog.OTLP_POINTS, (outcome,), count


def rule_labels(entity: QuotaEntity) -> tuple[str, str, str, str]:
    """The labels ``rule``, ``level``, ``rule_user`` and ``rule_client_id`` of a configured entity: empty for a dimension that it has not."""
    user, client_id = (
        "<default>" if isinstance(name, DefaultType) else name or "" for name in (entity.user, entity.client_id)
    )
    return entity.rule, entity.level.value, user, client_id


@cache
def own_version() -> str:
    """The version of the installed package."""
    return version("quotascope")


def label_names(family: Family, snapshot: Snapshot) -> tuple[str, ...]:
    """The labels of a family's series: those of the catalog, then the tags of a custom quota callback where these belong to it."""
    if family.open_labels:
        return (*family.labels, *snapshot.callbacks.labels)
    return family.labels


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON may hold but UTF-8 may not, spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
