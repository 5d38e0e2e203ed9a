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
from quotascope.exporter.snapshot import EntityUsage, LimitedRate, NodeUsage, Snapshot
from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.metrics.catalog import families

Key = tuple[str, tuple[tuple[str, str], ...]]
Sample = tuple[str, tuple[tuple[str, str], ...], float]
Row = tuple[str, dict[str, str], float | None]

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
LABEL = {
    PRODUCE: "produce",
    FETCH: "fetch",
    REQUEST: "request",
    MUTATION: "controller_mutation",
}
KEYS = {
    PRODUCE: "producer_byte_rate",
    FETCH: "consumer_byte_rate",
    REQUEST: "request_percentage",
    MUTATION: "controller_mutation_rate",
}
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
    """The series by name and labels, in the order in which they are read."""
    found: dict[Key, float] = {}
    more = {} if cluster is None else {"cluster": cluster}
    for name, labels, value in _rows(shown, now):
        if value is not None and isfinite(value):
            pairs = {key: _utf8(text) for key, text in {**labels, **more}.items()}
            key = name, tuple(sorted(pairs.items()))
            found.setdefault(key, float(value) + 0.0)  # -0 is 0
    return found


def on_page(page: bytes) -> list[Sample]:
    """The samples of a page in Prometheus's text format."""
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
        for usage in shadow.entities:
            entity = usage.entity
            of = {
                "shadow": shadow.name,
                "quota_type": LABEL[entity.quota_type],
                "broker": entity.broker,
                "user": entity.user,
                "client_id": entity.client_id,
            }
            assert usage.usage is not None
            assert entity.limit is not None
            ratio, delay = usage.usage / entity.limit, usage.throttle_time_seconds
            yield "kafka_quota_shadow_utilization_ratio", of, ratio
            yield "kafka_quota_shadow_throttle_time_seconds", of, delay
        for (kind, broker), number in shadow.throttled.items():
            of = {"shadow": shadow.name, "quota_type": LABEL[kind], "broker": broker}
            yield "kafka_quota_shadow_throttled_entities", of, float(number)
        for (kind, broker, reason), number in shadow.unevaluated.items():
            of = {"shadow": shadow.name, "quota_type": LABEL[kind], "broker": broker}
            of["reason"] = reason
            yield "kafka_quota_shadow_unevaluated_entities", of, float(number)


def _of_entity(usage: EntityUsage, row: int, shown: Snapshot) -> Iterator[Row]:
    entity = usage.entity
    kind = entity.quota_type
    name = {"user": entity.user, "client_id": entity.client_id}
    here = {**name, "broker": entity.broker}
    typed = {**here, "quota_type": LABEL[kind]}
    yield f"kafka_quota_{USED[kind]}", here, usage.usage
    yield "kafka_quota_throttle_time_seconds", typed, usage.throttle_time_seconds
    yield "kafka_quota_throttled_seconds_total", typed, usage.throttled_seconds_total
    yield "kafka_quota_throttled_requests_total", typed, usage.throttled_requests_total
    yield f"kafka_quota_{LIMIT[kind]}", name, entity.limit
    peaks = shown.peaks
    if peaks is not None:
        most = float(peaks.utilization[row])
        yield "kafka_quota_utilization_max_ratio", typed, most
    if kind is MUTATION:
        mutation = "kafka_quota_controller_mutation"
        rejected = usage.rejected_mutations_total
        yield f"{mutation}_tokens", here, usage.tokens
        yield "kafka_quota_rejected_mutations_total", here, rejected
        yield f"{mutation}_burst_tokens", name, entity.burst_tokens
        if peaks is not None:
            most = float(peaks.burst_used[row])
            yield f"{mutation}_burst_used_max_ratio", here, most
    if not usage.detailed:
        return
    if usage.usage is not None and entity.limit is not None and entity.limit > 0:
        yield "kafka_quota_utilization_ratio", typed, usage.usage / entity.limit
    yield "kafka_quota_reported_utilization_ratio", typed, usage.reported_utilization
    burst = entity.burst_tokens
    if kind is MUTATION and usage.tokens is not None and burst is not None:
        used = 1 - usage.tokens / burst if burst > 0 else None
        yield "kafka_quota_controller_mutation_burst_used_ratio", here, used
    if usage.cause is not None:
        cause = {**typed, "cause": usage.cause.value}
        yield "kafka_quota_throttle_cause_info", cause, 1.0
    if entity.resolution is not None and entity.resolution.entity is not None:
        rule = {**name, "quota_type": LABEL[kind], **_rule(entity.resolution.entity)}
        yield "kafka_quota_rule_info", rule, 1.0


def _of_queue(node: NodeUsage, kind: QuotaType, shown: Snapshot) -> Iterator[Row]:
    typed = {"broker": node.broker, "quota_type": LABEL[kind]}
    yield "kafka_quota_delay_queue_size", typed, node.delay_queue_size.get(kind)
    yield "kafka_quota_stale_entities", typed, node.stale_entities.get(kind)
    if shown.peaks is not None:
        most = shown.peaks.delay_queue_size.get((node.broker, kind))
        yield "kafka_quota_delay_queue_size_max", typed, most


def _of_node(node: NodeUsage) -> Iterator[Row]:
    here = {"broker": node.broker}
    for request, seconds in sorted(node.request_throttled_seconds.items()):
        of = {**here, "request": request}
        yield "kafka_quota_request_throttled_seconds_total", of, seconds
    for request, count in sorted(node.throttling_errors.items()):
        of = {**here, "request": request}
        yield "kafka_quota_throttling_errors_total", of, count
    events, waited = node.controller_events, node.controller_event_queue_seconds
    differ, capacity = node.utilization_disagreements, node.request_capacity_threads
    yield "kafka_quota_exempt_request_threads", here, node.exempt_request_threads
    yield "kafka_quota_request_capacity_threads", here, capacity
    yield "kafka_quota_controller_event_queue_seconds_total", here, waited
    yield "kafka_quota_controller_events_total", here, events
    yield "quotascope_utilization_disagreements", here, differ
    yield "quotascope_callback_detected", here, node.quota_callback
    factor = node.throttle_factor
    yield "kafka_quota_callback_throttle_factor_ratio", here, factor
    connections = node.connections
    broker = connections.broker
    yield "kafka_quota_broker_connections_per_second", here, broker.rate
    yield "kafka_quota_broker_connection_limit_per_second", here, broker.limit
    for listener, seconds in sorted(connections.ip_throttle_time_seconds.items()):
        of = {**here, "listener": listener}
        yield "kafka_quota_ip_connection_throttle_seconds", of, seconds
    load = node.load
    for name, value in {
        "request_handler_idle_ratio": load.handlers_idle,
        "request_handler_idle_time_seconds_total": load.handlers_idle_seconds,
        "network_processor_idle_ratio": load.network_idle,
        "controller_event_idle_ratio": load.controller_idle,
        "request_queue_size": load.request_queue_size,
    }.items():
        yield f"kafka_quota_{name}", here, value
    for name, pools in {
        "ratio": load.pools_idle,
        "time_seconds_total": load.pools_idle_seconds,
    }.items():
        for pool, value in sorted(pools.items()):
            of = {**here, "pool": pool}
            yield f"kafka_quota_request_handler_pool_idle_{name}", of, value
    for (request, percentile), seconds in sorted(load.request_queue_seconds.items()):
        of = {**here, "request": request, "percentile": percentile}
        yield "kafka_quota_request_queue_seconds", of, seconds
    yield from _named(here, "listener", connections.listeners, *_NAMES["listener"])
    yield from _named(here, "ip", connections.ips, *_NAMES["ip"])
    yield from _named(here, "direction", node.replication, *_NAMES["replication"])
    yield from _named(here, "direction", node.remote_storage, *_NAMES["remote"])


_NAMES = {
    "listener": (
        "listener_connections_per_second",
        "listener_connection_limit_per_second",
        "listener_connection_throttle_seconds",
    ),
    "ip": ("ip_connections_per_second", "ip_connection_limit_per_second"),
    "replication": (
        "replication_bytes_per_second",
        "replication_limit_bytes_per_second",
    ),
    "remote": (
        "remote_storage_bytes_per_second",
        "remote_storage_limit_bytes_per_second",
        "remote_storage_throttle_time_seconds",
    ),
}
"""Rate, limit and throttle of the quotas beside the client quotas."""


def _named(
    here: dict[str, str], label: str, rates: object, rate: str, limit: str, throttle: str | None = None
) -> Iterator[Row]:
    assert isinstance(rates, dict)
    for name, each in sorted(rates.items()):
        assert isinstance(each, LimitedRate)
        of = {**here, label: name}
        yield f"kafka_quota_{rate}", of, each.rate
        yield f"kafka_quota_{limit}", of, each.limit
        if throttle is not None:
            yield f"kafka_quota_{throttle}", of, each.throttle_time_seconds


def _of_callbacks(shown: Snapshot) -> Iterator[Row]:
    ordered = sorted(
        shown.shown.tagged,
        key=lambda usage: (
            _node(usage.entity.broker),
            LABEL[usage.entity.quota_type],
            usage.entity.tags,
        ),
    )
    for usage in ordered:
        entity, kind = usage.entity, usage.entity.quota_type
        tags = dict(zip(shown.callbacks.labels, entity.tags or (), strict=True))
        here = {"broker": entity.broker, **tags}
        typed = {**here, "broker": entity.broker, "quota_type": LABEL[kind]}
        yield f"kafka_quota_callback_{USED[kind]}", here, usage.usage
        yield "kafka_quota_callback_throttle_time_seconds", typed, usage.throttle_time_seconds
        if kind is not MUTATION:
            yield f"kafka_quota_callback_{LIMIT[kind]}", here, entity.limit
        yield "kafka_quota_callback_utilization_ratio", typed, usage.utilization


def _of_limits(shown: Snapshot) -> Iterator[Row]:
    limits, health = shown.limits, shown.limits_health
    connections = "connection_creation_rate"
    if limits is not None:
        for kind, key in KEYS.items():
            rules = limits.rules.get(kind)
            bounds = {} if rules is None else dict(rules)
            yield "kafka_quota_rules", {"quota_key": key}, len(bounds)
            scaled = [
                (
                    tuple(_rule(entity).items()),
                    bound / 100 if kind is REQUEST else bound,
                )
                for entity, bound in bounds.items()
            ]
            for labels, value in sorted(scaled):
                yield f"kafka_quota_rule_{LIMIT[kind]}", dict(labels), value
        rates = limits.connection_limits
        yield "kafka_quota_rules", {"quota_key": connections}, len(rates)
        for ip, rate in sorted(rates.items()):
            yield "kafka_quota_rule_connection_limit_per_second", {"ip": ip}, rate
    if health.configured:
        for key in (*KEYS.values(), connections):
            changes = health.changes_total.get(key, 0)
            yield "quotascope_limit_changes_total", {"quota_key": key}, changes


def _of_exporter(shown: Snapshot, now: float) -> Iterator[Row]:
    for source in shown.sources:
        here = {"source": source.name}
        dialect = {**here, "dialect": source.dialect}
        yield "quotascope_source_up", here, source.up
        yield "quotascope_source_duration_seconds", here, source.duration_seconds
        yield "quotascope_source_readings", here, source.readings
        yield "quotascope_source_dialect_info", dialect, 1
        if source.up and source.read_at is not None:
            age = max(0.0, now - source.read_at)
            yield "quotascope_source_age_seconds", here, age
        if source.stand_by_of is not None:
            other = {**here, "broker": source.stand_by_of}
            yield "quotascope_source_stand_by", other, 1
    for each in shown.discoveries:
        here = {"discovery": each.name}
        yield "quotascope_discovered_sources", here, each.targets
        yield "quotascope_discovery_errors_total", here, each.errors_total
    yield from _of_books(shown)
    health, reload, folds = shown.limits_health, shown.reload, shown.folds
    yield "quotascope_limits_refresh_errors_total", {}, health.errors_total
    if health.read_at is not None:
        yield "quotascope_limits_age_seconds", {}, max(0.0, now - health.read_at)
    if reload is not None:
        at = reload.succeeded_at
        ok = reload.error is None
        yield "quotascope_config_last_reload_successful", {}, ok
        yield "quotascope_config_last_reload_success_timestamp_seconds", {}, at
    for task, count in shown.restarts.items():
        yield "quotascope_background_restarts_total", {"task": task}, count
    yield "quotascope_snapshot_age_seconds", {}, max(0.0, now - shown.taken_at)
    callbacks = shown.callbacks
    every = [*shown.entities, *shown.shown.tagged]
    states = {
        "exported": sum(not usage.entity.stands_in for usage in every),
        "overflow": folds.overflow + callbacks.folded,
        "excluded": folds.excluded,
        "idle": folds.idle,
        "stale": sum(sum(node.stale_entities.values()) for node in shown.nodes),
    }
    for state, count in states.items():
        yield "quotascope_entities", {"state": state}, count
    for reason in ("overflow", "excluded", "idle", "detail"):
        dropped = folds.series_dropped.get(reason, 0)
        yield "quotascope_series_dropped", {"reason": reason}, dropped
    yield "quotascope_build_info", {"version": version("quotascope")}, 1


def _of_books(shown: Snapshot) -> Iterator[Row]:
    if shown.sampling is not None:
        yield "quotascope_samples_total", {}, shown.sampling.samples
        yield "quotascope_samples_missed_total", {}, shown.sampling.missed
    if shown.push is not None:
        for outcome, count in shown.push.exports_total.items():
            yield "quotascope_otlp_exports_total", {"outcome": outcome}, count
        for outcome, count in shown.push.points_total.items():
            yield "quotascope_otlp_points_total", {"outcome": outcome}, count


def _rule(entity: QuotaEntity) -> dict[str, str]:
    names = (entity.user, entity.client_id)
    user, client_id = ("" if name is None else name if isinstance(name, str) else "<default>" for name in names)
    level = entity.level.value
    rule = {"rule": entity.rule, "level": level}
    return {**rule, "rule_user": user, "rule_client_id": client_id}


def _node(node_id: str) -> tuple[int, str]:
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
