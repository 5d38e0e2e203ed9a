"""The series of a snapshot, read from it without any code of the exposition: the family, the labels and the field of each stand here once more."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from math import isfinite

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from quotascope.exporter.exposition import OPENMETRICS, TEXT, Renderer, TextFormat
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Snapshot
from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.metrics.catalog import families

Key = tuple[str, tuple[tuple[str, str], ...]]
Sample = tuple[str, tuple[tuple[str, str], ...], float]
Row = tuple[str, dict[str, str], float | None]

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
USED = {
    PRODUCE: "produce_bytes_per_second",
    FETCH: "fetch_bytes_per_second",
    REQUEST: "request_threads",
    MUTATION: "controller_mutations_per_second",
}
LIMIT = {
    PRODUCE: "produce_limit_bytes_per_second",
    FETCH: "fetch_limit_bytes_per_second",
    REQUEST: "request_limit_threads",
    MUTATION: "controller_mutation_limit_per_second",
}


def samples(shown: Snapshot, now: float, cluster: str | None = None) -> set[Sample]:
    """What a page at ``now`` has to hold; of series that are alike the first by user, client-id and node counts."""
    return {(name, labels, value) for (name, labels), value in series_of(shown, now, cluster).items()}


def page(shown: Snapshot, now: float, text_format: TextFormat = TEXT, cluster: str | None = None) -> bytes:
    """The same as prometheus_client writes it: families as the catalog lists them, series in the order in which they are read here."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(series_of(shown, now, cluster)))
    openmetrics = text_format is OPENMETRICS
    return (generate_openmetrics if openmetrics else generate_latest)(registry)


def lines(snapshot: Snapshot, beginning: str) -> list[str]:
    """The series whose names begin so, as text: what prometheus_client writes, and the renderer as well."""
    text = page(snapshot, snapshot.taken_at)
    assert Renderer().render(snapshot, snapshot.taken_at) == text
    return [line for line in text.decode().splitlines() if line.startswith(beginning)]


class _Collected(Collector):
    def __init__(self, series: dict[Key, float]) -> None:
        self._series = series

    def collect(self) -> Iterator[Metric]:
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for (name, labels), value in self._series.items():
            found.setdefault(name, []).append((dict(labels), value))
        for family in families():
            metric = Metric(
                family.name.removesuffix("_total").removesuffix("_info"),
                family.documentation,
                "info" if family.name.endswith("_info") else family.type.value,
                family.declared_unit,
            )
            for each, value in found.pop(family.name, ()):
                metric.add_sample(family.name, each, value)
            if metric.samples:
                yield metric
        assert not found


def series_of(shown: Snapshot, now: float, cluster: str | None) -> dict[Key, float]:
    found: dict[Key, float] = {}
    more = {} if cluster is None else {"cluster": cluster}
    for name, labels, value in _rows(shown, now):
        if value is not None and isfinite(value):
            pairs = {key: _utf8(text) for key, text in {**labels, **more}.items()}
            key = name, tuple(sorted(pairs.items()))
            found.setdefault(key, float(value) + 0.0)  # -0 is 0
    return found


def on_page(page: bytes) -> list[Sample]:
    return [
        (sample.name, tuple(sorted(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    ]


def _rows(shown: Snapshot, now: float) -> Iterator[Row]:
    ordered = sorted(
        enumerate(shown.entities),
        key=lambda each: (
            list(QuotaType).index(each[1].entity.quota_type),
            each[1].entity.user,
            each[1].entity.client_id,
            _node(each[1].entity.broker),
        ),
    )
    for row, usage in ordered:
        yield from _of_entity(usage, row, shown)
    yield from _of_shadows(shown)
    nodes = sorted(shown.nodes, key=lambda node: _node(node.broker))
    for kind in QuotaType:
        for node in nodes:
            yield from _of_queue(node, kind, shown)
    for node in nodes:
        yield from _of_node(node)
    yield from _of_callbacks(shown)
    yield from _of_limits(shown)
    yield from _of_exporter(shown, now)
    yield from ((name, {}, value) for name, value in shown.process.items())


def _of_shadows(shown: Snapshot) -> Iterator[Row]:
    for shadow in shown.shadows:
        name = {"shadow": shadow.name}
        for usage in shadow.entities:
            entity = usage.entity
            of = {"quota_type": entity.quota_type.label, "broker": entity.broker}
            of |= {"user": entity.user, "client_id": entity.client_id, **name}
            assert usage.usage is not None
            assert entity.limit is not None
            yield "kafka_quota_shadow_utilization_ratio", of, usage.usage / entity.limit
            yield "kafka_quota_shadow_throttle_time_seconds", of, usage.throttle_time_seconds
        for (kind, broker), number in shadow.throttled.items():
            of = {"quota_type": kind.label, "broker": broker, **name}
            yield "kafka_quota_shadow_throttled_entities", of, float(number)
        for (kind, broker, reason), number in shadow.unevaluated.items():
            of = {"quota_type": kind.label, "broker": broker, "reason": reason, **name}
            yield "kafka_quota_shadow_unevaluated_entities", of, float(number)


def _of_entity(usage: EntityUsage, row: int, shown: Snapshot) -> Iterator[Row]:
    entity, peaks = usage.entity, shown.peaks
    kind, limit, burst = entity.quota_type, entity.limit, entity.burst_tokens
    name = {"user": entity.user, "client_id": entity.client_id}
    here = {**name, "broker": entity.broker}
    typed = {**here, "quota_type": kind.label}
    yield f"kafka_quota_{USED[kind]}", here, usage.usage
    yield "kafka_quota_throttle_time_seconds", typed, usage.throttle_time_seconds
    yield "kafka_quota_throttled_seconds_total", typed, usage.throttled_seconds_total
    yield "kafka_quota_throttled_requests_total", typed, usage.throttled_requests_total
    yield f"kafka_quota_{LIMIT[kind]}", name, limit
    if peaks is not None:
        yield "kafka_quota_utilization_max_ratio", typed, float(peaks.utilization[row])
    if kind is MUTATION:
        mutation = "kafka_quota_controller_mutation"
        yield f"{mutation}_tokens", here, usage.tokens
        yield "kafka_quota_refused_mutations_total", here, usage.refused_mutations_total
        yield f"{mutation}_burst_tokens", name, burst
        if peaks is not None:
            yield f"{mutation}_burst_used_max_ratio", here, float(peaks.burst_used[row])
    if not usage.detailed:
        return
    if usage.usage is not None and limit is not None and limit > 0:
        yield "kafka_quota_utilization_ratio", typed, usage.usage / limit
    yield "kafka_quota_reported_utilization_ratio", typed, usage.reported_utilization
    if kind is MUTATION and usage.tokens is not None and burst is not None and burst > 0:
        yield "kafka_quota_controller_mutation_burst_used_ratio", here, 1 - usage.tokens / burst
    if usage.cause is not None:
        yield "kafka_quota_throttle_cause_info", {**typed, "cause": usage.cause.value}, 1.0
    if entity.resolution is not None and entity.resolution.entity is not None:
        rule = {**name, "quota_type": kind.label, **_rule(entity.resolution.entity)}
        yield "kafka_quota_rule_info", rule, 1.0


def _of_queue(node: NodeUsage, kind: QuotaType, shown: Snapshot) -> Iterator[Row]:
    typed = {"broker": node.broker, "quota_type": kind.label}
    yield "kafka_quota_delay_queue_size", typed, node.delay_queue_size.get(kind)
    yield "kafka_quota_stale_entities", typed, node.stale_entities.get(kind)
    if shown.peaks is not None:
        most = shown.peaks.delay_queue_size.get((node.broker, kind))
        yield "kafka_quota_delay_queue_size_max", typed, most


def _of_node(node: NodeUsage) -> Iterator[Row]:
    here, load, connections = {"broker": node.broker}, node.load, node.connections
    for request, seconds in sorted(node.request_throttled_seconds.items()):
        yield "kafka_quota_request_throttled_seconds_total", {**here, "request": request}, seconds
    for request, count in sorted(node.throttling_errors.items()):
        yield "kafka_quota_throttling_errors_total", {**here, "request": request}, count
    yield "kafka_quota_exempt_request_threads", here, node.exempt_request_threads
    yield "kafka_quota_request_capacity_threads", here, node.request_capacity_threads
    yield "kafka_quota_controller_event_queue_seconds_total", here, node.controller_event_queue_seconds
    yield "kafka_quota_controller_events_total", here, node.controller_events
    yield "quotascope_utilization_disagreements", here, node.utilization_disagreements
    yield "quotascope_callback_detected", here, node.quota_callback
    yield "kafka_quota_callback_throttle_factor_ratio", here, node.throttle_factor
    yield "kafka_quota_broker_connections_per_second", here, connections.broker.rate
    yield "kafka_quota_broker_connection_limit_per_second", here, connections.broker.limit
    for listener, seconds in sorted(connections.ip_throttle_time_seconds.items()):
        yield "kafka_quota_ip_connection_throttle_seconds", {**here, "listener": listener}, seconds
    yield "kafka_quota_request_handler_idle_ratio", here, load.handlers_idle
    yield "kafka_quota_request_handler_idle_time_seconds_total", here, load.handlers_idle_seconds
    yield "kafka_quota_network_processor_idle_ratio", here, load.network_idle
    yield "kafka_quota_controller_event_idle_ratio", here, load.controller_idle
    yield "kafka_quota_request_queue_size", here, load.request_queue_size
    for name, pools in ("ratio", load.pools_idle), ("time_seconds_total", load.pools_idle_seconds):
        for pool, value in sorted(pools.items()):
            yield f"kafka_quota_request_handler_pool_idle_{name}", {**here, "pool": pool}, value
    for (request, percentile), seconds in sorted(load.request_queue_seconds.items()):
        yield "kafka_quota_request_queue_seconds", {**here, "request": request, "percentile": percentile}, seconds
    for label, rates, beginning, unit, throttle in (
        ("listener", connections.listeners, "listener_connection", "per_second", "throttle_seconds"),
        ("ip", connections.ips, "ip_connection", "per_second", None),
        ("direction", node.replication, "replication", "bytes_per_second", None),
        ("direction", node.remote_storage, "remote_storage", "bytes_per_second", "throttle_time_seconds"),
    ):
        plural = "s" if unit == "per_second" else ""
        for name, each in sorted(rates.items()):
            of = {**here, label: name}
            yield f"kafka_quota_{beginning}{plural}_{unit}", of, each.rate
            yield f"kafka_quota_{beginning}_limit_{unit}", of, each.limit
            if throttle is not None:
                yield f"kafka_quota_{beginning}_{throttle}", of, each.throttle_time_seconds


def _of_callbacks(shown: Snapshot) -> Iterator[Row]:
    def place(usage: EntityUsage) -> tuple[object, ...]:
        entity = usage.entity
        return _node(entity.broker), entity.quota_type.label, entity.tags

    for usage in sorted(shown.shown.tagged, key=place):
        entity, kind = usage.entity, usage.entity.quota_type
        tags = dict(zip(shown.callbacks.labels, entity.tags or (), strict=True))
        here = {"broker": entity.broker, **tags}
        typed = {**here, "quota_type": kind.label}
        yield f"kafka_quota_callback_{USED[kind]}", here, usage.usage
        yield "kafka_quota_callback_throttle_time_seconds", typed, usage.throttle_time_seconds
        if kind is not MUTATION:
            yield f"kafka_quota_callback_{LIMIT[kind]}", here, entity.limit
        yield "kafka_quota_callback_utilization_ratio", typed, usage.utilization


def _of_limits(shown: Snapshot) -> Iterator[Row]:
    limits, health = shown.limits, shown.limits_health
    connections = "connection_creation_rate"
    if limits is not None:
        for kind in QuotaType:
            bounds = dict(limits.rules.get(kind, {}))
            yield "kafka_quota_rules", {"quota_key": kind.quota_key}, len(bounds)
            unit = 100 if kind is REQUEST else 1
            for labels, value in sorted((tuple(_rule(each).items()), bound / unit) for each, bound in bounds.items()):
                yield f"kafka_quota_rule_{LIMIT[kind]}", dict(labels), value
        rates = limits.connection_limits
        yield "kafka_quota_rules", {"quota_key": connections}, len(rates)
        for ip, rate in sorted(rates.items()):
            yield "kafka_quota_rule_connection_limit_per_second", {"ip": ip}, rate
    if health.configured:
        for key in (*(kind.quota_key for kind in QuotaType), connections):
            yield "quotascope_limit_changes_total", {"quota_key": key}, health.changes_total.get(key, 0)


def _of_exporter(shown: Snapshot, now: float) -> Iterator[Row]:
    for source in shown.sources:
        here = {"source": source.name}
        yield "quotascope_source_up", here, source.up
        yield "quotascope_source_duration_seconds", here, source.duration_seconds
        yield "quotascope_source_readings", here, source.readings
        yield "quotascope_source_dialect_info", {**here, "dialect": source.dialect}, 1
        if source.up and source.read_at is not None:
            yield "quotascope_source_age_seconds", here, max(0.0, now - source.read_at)
        if source.stand_by_of is not None:
            yield "quotascope_source_stand_by", {**here, "broker": source.stand_by_of}, 1
    yield from _of_books(shown)
    health, folds = shown.limits_health, shown.folds
    yield "quotascope_limits_refresh_errors_total", {}, health.errors_total
    if health.read_at is not None:
        yield "quotascope_limits_age_seconds", {}, max(0.0, now - health.read_at)
    yield "quotascope_snapshot_age_seconds", {}, max(0.0, now - shown.taken_at)
    every = [*shown.entities, *shown.shown.tagged]
    states = {
        "exported": sum(not usage.entity.stands_in for usage in every),
        "overflow": folds.overflow + shown.callbacks.folded,
        "excluded": folds.excluded,
        "idle": folds.idle,
        "stale": sum(sum(node.stale_entities.values()) for node in shown.nodes),
    }
    for state, count in states.items():
        yield "quotascope_entities", {"state": state}, count
    for reason in ("overflow", "excluded", "idle", "detail"):
        yield "quotascope_series_dropped", {"reason": reason}, folds.series_dropped.get(reason, 0)
    yield "quotascope_build_info", {"version": version("quotascope")}, 1


def _of_books(shown: Snapshot) -> Iterator[Row]:
    for each in shown.discoveries:
        if each.found_at is not None:
            yield "quotascope_discovered_sources", {"discovery": each.name}, each.targets
        yield "quotascope_discovery_errors_total", {"discovery": each.name}, each.errors_total
    if shown.sampling is not None:
        yield "quotascope_samples_total", {}, shown.sampling.samples
        yield "quotascope_samples_missed_total", {}, shown.sampling.missed
    if shown.push is not None:
        for outcome, count in shown.push.exports_total.items():
            yield "quotascope_otlp_exports_total", {"outcome": outcome}, count
        for outcome, count in shown.push.points_total.items():
            yield "quotascope_otlp_points_total", {"outcome": outcome}, count
    if shown.reload is not None:
        yield "quotascope_config_last_reload_successful", {}, shown.reload.error is None
        yield "quotascope_config_last_reload_success_timestamp_seconds", {}, shown.reload.succeeded_at
    for task, count in shown.restarts.items():
        yield "quotascope_background_restarts_total", {"task": task}, count


def _rule(entity: QuotaEntity) -> dict[str, str]:
    names = (entity.user, entity.client_id)
    user, client_id = ("" if name is None else name if isinstance(name, str) else "<default>" for name in names)
    return {"rule": entity.rule, "level": entity.level.value, "rule_user": user, "rule_client_id": client_id}


def _node(node_id: str) -> tuple[int, str]:
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
