"""The series of a snapshot, read from it without any code of the exposition: the family, the labels and the field of each stand here once more."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

from quotascope.exporter.snapshot import EntityUsage, LimitedRate, NodeUsage, Snapshot
from quotascope.metrics import QuotaEntity, QuotaType

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
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    more = {} if cluster is None else {"cluster": cluster}
    for name, labels, value in _rows(shown, now):
        if value is not None and isfinite(value):
            pairs = {key: _utf8(text) for key, text in {**labels, **more}.items()}
            found.setdefault((name, tuple(sorted(pairs.items()))), float(value))
    return {(*key, value) for key, value in found.items()}


def on_page(page: bytes) -> list[Sample]:
    """The samples of a page in Prometheus's text format."""
    return [
        (sample.name, tuple(sorted(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    ]


def _rows(shown: Snapshot, now: float) -> Iterator[Row]:
    ordered = sorted(
        shown.entities,
        key=lambda usage: (
            usage.entity.user,
            usage.entity.client_id,
            _node(usage.entity.broker),
        ),
    )
    for usage in ordered:
        yield from _of_entity(usage, shown)
    for node in shown.nodes:
        yield from _of_node(node, shown)
    yield from _of_callbacks(shown)
    yield from _of_limits(shown)
    yield from _of_exporter(shown, now)


def _of_entity(usage: EntityUsage, shown: Snapshot) -> Iterator[Row]:
    entity = usage.entity
    kind = entity.quota_type
    name = {"user": entity.user, "client_id": entity.client_id}
    here = {**name, "broker": entity.broker}
    typed = {**here, "quota_type": LABEL[kind]}
    known = usage.throttle_time_seconds if usage.throttle_known else None
    yield f"kafka_quota_{USED[kind]}", here, usage.usage
    yield "kafka_quota_throttle_time_seconds", typed, known
    yield "kafka_quota_throttled_seconds_total", typed, usage.throttled_seconds_total
    yield "kafka_quota_throttled_requests_total", typed, usage.throttled_requests_total
    yield f"kafka_quota_{LIMIT[kind]}", name, entity.limit
    peaks = shown.peaks
    if peaks is not None:
        most = peaks.utilization.get(id(entity))
        yield "kafka_quota_utilization_max_ratio", typed, most
    if kind is MUTATION:
        mutation = "kafka_quota_controller_mutation"
        rejected = usage.rejected_mutations_total
        yield f"{mutation}_tokens", here, usage.tokens
        yield "kafka_quota_rejected_mutations_total", here, rejected
        yield f"{mutation}_burst_tokens", name, entity.burst_tokens
        if peaks is not None:
            most = peaks.burst_used.get(id(entity))
            yield f"{mutation}_burst_used_max_ratio", here, most
    if not usage.detailed:
        return
    if usage.usage is not None and entity.limit is not None and entity.limit > 0:
        yield "kafka_quota_utilization_ratio", typed, usage.usage / entity.limit
    yield "kafka_quota_told_utilization_ratio", typed, usage.told_utilization
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


def _of_node(node: NodeUsage, shown: Snapshot) -> Iterator[Row]:
    here = {"broker": node.broker}
    for kind, label in LABEL.items():
        typed = {**here, "quota_type": label}
        size = node.delay_queue_size.get(kind)
        yield "kafka_quota_delay_queue_size", typed, size
        yield "kafka_quota_stale_entities", typed, node.stale_entities.get(kind)
        if shown.peaks is not None:
            most = shown.peaks.delay_queue_size.get((node.broker, kind))
            yield "kafka_quota_delay_queue_size_max", typed, most
    for request, seconds in node.request_throttled_seconds.items():
        of = {**here, "request": request}
        yield "kafka_quota_request_throttled_seconds_total", of, seconds
    for request, count in node.throttling_errors.items():
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
    connections = node.connections
    broker = connections.broker
    yield "kafka_quota_broker_connections_per_second", here, broker.rate
    yield "kafka_quota_broker_connection_limit_per_second", here, broker.limit
    for listener, seconds in connections.ip_throttle_time_seconds.items():
        of = {**here, "listener": listener}
        yield "kafka_quota_ip_connection_throttle_seconds", of, seconds
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
    here: dict[str, str],
    label: str,
    rates: object,
    rate: str,
    limit: str,
    throttle: str | None = None,
) -> Iterator[Row]:
    assert isinstance(rates, dict)
    for name, each in rates.items():
        assert isinstance(each, LimitedRate)
        of = {**here, label: name}
        yield f"kafka_quota_{rate}", of, each.rate
        yield f"kafka_quota_{limit}", of, each.limit
        if throttle is not None:
            yield f"kafka_quota_{throttle}", of, each.throttle_time_seconds


def _of_callbacks(shown: Snapshot) -> Iterator[Row]:
    labels = shown.callbacks.labels
    for usage in shown.callbacks.usages:
        tags = dict(zip(labels, usage.tags, strict=True))
        here, kind = {"broker": usage.broker, **tags}, usage.quota_type
        typed = {**here, "quota_type": LABEL[kind]}
        seconds = usage.throttle_time_seconds
        yield f"kafka_quota_callback_{USED[kind]}", here, usage.usage
        yield "kafka_quota_callback_throttle_time_seconds", typed, seconds


def _of_limits(shown: Snapshot) -> Iterator[Row]:
    limits, health = shown.limits, shown.limits_health
    connections = "connection_creation_rate"
    if limits is not None:
        for kind, key in KEYS.items():
            rules = limits.rules.get(kind)
            bounds = {} if rules is None else dict(rules)
            yield "kafka_quota_rules", {"quota_key": key}, len(bounds)
            for entity, bound in bounds.items():
                value = bound / 100 if kind is REQUEST else bound
                yield f"kafka_quota_rule_{LIMIT[kind]}", _rule(entity), value
        rates = limits.connection_limits
        yield "kafka_quota_rules", {"quota_key": connections}, len(rates)
        for ip, rate in rates.items():
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
    own = len(shown.entities) - folds.stand_ins
    states = {
        "exported": own + len(callbacks.usages) - callbacks.stand_ins,
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
    user, client_id = (
        "" if name is None else name if isinstance(name, str) else "<default>"
        for name in names
    )
    level = entity.level.value
    return {"level": level, "rule_user": user, "rule_client_id": client_id}


def _node(node_id: str) -> tuple[int, str]:
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
