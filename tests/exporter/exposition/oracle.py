"""
The series of a snapshot, read from it without any code of the exposition.

The family, the labels and the field of each stand here once more.
"""

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
from quotascope.exporter.snapshot.visibility import Visibility
from quotascope.metrics.catalog import families
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

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


def samples(state: Snapshot, now_seconds: float, cluster: str | None = None) -> set[Sample]:
    """Return the samples of a page at ``now_seconds``; of equal series the first by user, client-id and node counts."""
    return {(name, labels, value) for (name, labels), value in series_of(state, now_seconds, cluster).items()}


def page(state: Snapshot, now_seconds: float, text_format: TextFormat = TEXT, cluster: str | None = None) -> bytes:
    """Return the page as prometheus_client writes it, with families in the catalog's order."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(series_of(state, now_seconds, cluster)))
    openmetrics = text_format is OPENMETRICS
    return (generate_openmetrics if openmetrics else generate_latest)(registry)


def lines(snapshot: Snapshot, beginning: str) -> list[str]:
    """Return the series whose names begin with a prefix, as prometheus_client and the renderer write them."""
    text = page(snapshot, snapshot.taken_at)
    assert Renderer().render(snapshot, snapshot.taken_at) == text
    return [line for line in text.decode().splitlines() if line.startswith(beginning)]


class _Collected(Collector):
    def __init__(self, series: dict[Key, float]) -> None:
        self._series = series

    def collect(self) -> Iterator[Metric]:
        samples_by_name: dict[str, list[tuple[dict[str, str], float]]] = {}
        for (name, labels), value in self._series.items():
            samples_by_name.setdefault(name, []).append((dict(labels), value))
        for family in families():
            metric = Metric(
                family.name.removesuffix("_total").removesuffix("_info"),
                family.documentation,
                "info" if family.name.endswith("_info") else family.type.value,
                family.declared_unit,
            )
            for sample_labels, value in samples_by_name.pop(family.name, ()):
                metric.add_sample(family.name, sample_labels, value)
            if metric.samples:
                yield metric
        assert not samples_by_name


def series_of(state: Snapshot, now_seconds: float, cluster: str | None) -> dict[Key, float]:
    series: dict[Key, float] = {}
    common_labels = {} if cluster is None else {"cluster": cluster}
    for name, labels, value in _rows(state, now_seconds):
        if value is not None and isfinite(value):
            pairs = {key: _utf8(text) for key, text in {**labels, **common_labels}.items()}
            key = name, tuple(sorted(pairs.items()))
            series.setdefault(key, float(value) + 0.0)  # -0 is 0
    return series


def on_page(page: bytes) -> list[Sample]:
    return [
        (sample.name, tuple(sorted(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    ]


def _rows(state: Snapshot, now_seconds: float) -> Iterator[Row]:
    ordered = sorted(
        enumerate(state.entities),
        key=lambda entity_usage: (
            list(QuotaType).index(entity_usage[1].entity.quota_type),
            entity_usage[1].entity.user,
            entity_usage[1].entity.client_id,
            _node(entity_usage[1].entity.broker),
        ),
    )
    for row, usage in ordered:
        yield from _of_entity(usage, row, state)
    yield from _of_teams(state)
    yield from _of_shadows(state)
    nodes = sorted(state.nodes, key=lambda node: _node(node.broker))
    for kind in QuotaType:
        for node in nodes:
            yield from _of_queue(node, kind, state)
    for node in nodes:
        yield from _of_node(node)
    yield from _of_callbacks(state)
    yield from _of_limits(state)
    yield from _of_exporter(state, now_seconds)
    yield from ((name, {}, value) for name, value in state.process.items())


def _of_teams(state: Snapshot) -> Iterator[Row]:
    sums = state.teams
    for kind in QuotaType:
        for place, name in enumerate(sums.names if sums else ()):
            assert sums is not None
            team = {"team": name}
            usage = float(sums.usage[kind][place])
            yield f"kafka_quota_team_{USED[kind]}", team, usage
            yield f"kafka_quota_team_allowed_{USED[kind]}", team, float(sums.allowed[kind][place])
            if kind is not QuotaType.CONTROLLER_MUTATION:
                yield f"kafka_quota_team_stranded_{USED[kind]}", team, float(sums.stranded[kind][place])
            if kind in sums.bytes:
                moved = "produced" if kind is QuotaType.PRODUCE else "fetched"
                yield f"kafka_quota_team_{moved}_bytes_total", team, float(sums.bytes[kind][place])
            of_type = {"quota_type": kind.label, **team}
            yield "kafka_quota_team_fairness_ratio", of_type, float(sums.fairness[kind][place])
            yield "kafka_quota_team_throttled_entities", of_type, float(sums.throttled[kind][place])
            budget = sums.teams[place].budgets.get(kind) if place < len(sums.teams) else None
            yield "kafka_quota_team_budget_ratio", of_type, budget and usage / budget
    if sums and sums.seen_seconds is not None:
        yield "kafka_quota_team_seen_seconds_total", {}, sums.seen_seconds
    for (kind, broker), sold in state.sold.items():
        labels = {"quota_type": kind.label, "broker": broker, "capacity": sold.origin.value}
        yield "kafka_quota_sold_ratio", labels, sold.limits / sold.capacity


def _of_shadows(state: Snapshot) -> Iterator[Row]:
    for shadow in state.shadows:
        name = {"shadow": shadow.name}
        for usage in shadow.entities:
            entity = usage.entity
            entity_labels = {"quota_type": entity.quota_type.label, "broker": entity.broker}
            entity_labels |= {"user": entity.user, "client_id": entity.client_id, **name}
            assert usage.usage is not None
            assert entity.limit is not None
            yield "kafka_quota_shadow_utilization_ratio", entity_labels, usage.usage / entity.limit
            yield "kafka_quota_shadow_throttle_time_seconds", entity_labels, usage.throttle_time_seconds
            yield "kafka_quota_shadow_throttle_change_seconds", entity_labels, usage.change_seconds
        for (kind, broker), changes in shadow.changes.items():
            for change, number in changes.items():
                entity_labels = {"quota_type": kind.label, "broker": broker, "change": str(change), **name}
                yield "kafka_quota_shadow_throttled_entities", entity_labels, float(number)
        for (kind, broker, reason), number in shadow.unevaluated.items():
            entity_labels = {"quota_type": kind.label, "broker": broker, "reason": reason, **name}
            yield "kafka_quota_shadow_unevaluated_entities", entity_labels, float(number)


def _of_entity(usage: EntityUsage, row: int, state: Snapshot) -> Iterator[Row]:
    entity, peaks = usage.entity, state.peaks
    kind, limit, burst = entity.quota_type, entity.limit, entity.burst_tokens
    name = {"user": entity.user, "client_id": entity.client_id}
    labels = {**name, "broker": entity.broker}
    typed = {**labels, "quota_type": kind.label}
    yield f"kafka_quota_{USED[kind]}", labels, usage.usage
    yield "kafka_quota_throttle_time_seconds", typed, usage.throttle_time_seconds
    yield f"kafka_quota_{LIMIT[kind]}", name, limit
    if peaks is not None:
        yield "kafka_quota_utilization_max_ratio", typed, float(peaks.utilization[row])
    if kind is MUTATION:
        mutation = "kafka_quota_controller_mutation"
        yield f"{mutation}_tokens", labels, usage.tokens
        yield f"{mutation}_burst_tokens", name, burst
        if peaks is not None:
            yield f"{mutation}_burst_used_max_ratio", labels, float(peaks.burst_used[row])
    if not usage.detailed:
        return
    if usage.usage is not None and limit is not None and limit > 0:
        yield "kafka_quota_utilization_ratio", typed, usage.usage / limit
    yield "kafka_quota_reported_utilization_ratio", typed, usage.reported_utilization
    if kind is MUTATION and usage.tokens is not None and burst is not None and burst > 0:
        yield "kafka_quota_controller_mutation_burst_used_ratio", labels, 1 - usage.tokens / burst
    if usage.cause is not None:
        decider, by = usage.decided_by, {"by_broker": "", "by_user": "", "by_client_id": ""}
        if decider is not None and any(entity_usage.entity == decider for entity_usage in state.entities):
            by = {"by_broker": decider.broker, "by_user": decider.user, "by_client_id": decider.client_id}
        yield "kafka_quota_throttle_cause_info", {**typed, "cause": usage.cause.value, **by}, 1.0
    if entity.resolution is not None and entity.resolution.entity is not None:
        rule = {**name, "quota_type": kind.label, **_rule(entity.resolution.entity)}
        yield "kafka_quota_rule_info", rule, 1.0


def _of_queue(node: NodeUsage, kind: QuotaType, state: Snapshot) -> Iterator[Row]:
    typed = {"broker": node.broker, "quota_type": kind.label}
    yield "kafka_quota_delay_queue_size", typed, node.delay_queue_size.get(kind)
    yield "kafka_quota_stale_entities", typed, node.stale_entities.get(kind)
    if state.peaks is not None:
        longest = state.peaks.delay_queue_size.get((node.broker, kind))
        yield "kafka_quota_delay_queue_size_max", typed, longest


_LABELS = {
    "kafka_quota_request_throttled_seconds_total": ("request",),
    "kafka_quota_throttling_errors_total": ("request",),
    "kafka_quota_exempt_request_threads": (),
    "kafka_quota_request_capacity_threads": (),
    "kafka_quota_controller_event_queue_seconds_total": (),
    "kafka_quota_controller_events_total": (),
    "quotascope_utilization_disagreements": (),
    "kafka_quota_callback_throttle_factor_ratio": (),
    "kafka_quota_broker_connections_per_second": (),
    "kafka_quota_broker_connection_limit_per_second": (),
    "kafka_quota_ip_connection_throttle_seconds": ("listener",),
    "kafka_quota_request_handler_idle_ratio": (),
    "kafka_quota_request_handler_idle_time_seconds_total": (),
    "kafka_quota_network_processor_idle_ratio": (),
    "kafka_quota_controller_event_idle_ratio": (),
    "kafka_quota_request_queue_size": (),
    "kafka_quota_request_handler_pool_idle_ratio": ("pool",),
    "kafka_quota_request_handler_pool_idle_time_seconds_total": ("pool",),
    "kafka_quota_request_queue_seconds": ("request", "percentile"),
    "kafka_quota_listener_connections_per_second": ("listener",),
    "kafka_quota_listener_connection_limit_per_second": ("listener",),
    "kafka_quota_listener_connection_throttle_seconds": ("listener",),
    "kafka_quota_ip_connections_per_second": ("ip",),
    "kafka_quota_ip_connection_limit_per_second": ("ip",),
    "kafka_quota_replication_bytes_per_second": ("direction",),
    "kafka_quota_replication_limit_bytes_per_second": ("direction",),
    "kafka_quota_remote_storage_bytes_per_second": ("direction",),
    "kafka_quota_remote_storage_limit_bytes_per_second": ("direction",),
    "kafka_quota_remote_storage_throttle_time_seconds": ("direction",),
}


def _of_node(node: NodeUsage) -> Iterator[Row]:
    yield "quotascope_callback_detected", {"broker": node.broker}, node.quota_callback
    numbers = {family.name: values for family, values in node.numbers.items()}
    assert numbers.keys() <= _LABELS.keys()
    for name, labels in _LABELS.items():
        for values, number in sorted(numbers.get(name, {}).items()):
            yield name, {"broker": node.broker, **dict(zip(labels, values, strict=True))}, number


def _of_callbacks(state: Snapshot) -> Iterator[Row]:
    def place(usage: EntityUsage) -> tuple[object, ...]:
        entity = usage.entity
        return _node(entity.broker), entity.quota_type.label, entity.tags

    for usage in sorted(state.columns.tagged, key=place):
        entity, kind = usage.entity, usage.entity.quota_type
        tags = dict(zip(state.callbacks.labels, entity.tags or (), strict=True))
        labels = {"broker": entity.broker, **tags}
        typed = {**labels, "quota_type": kind.label}
        yield f"kafka_quota_callback_{USED[kind]}", labels, usage.usage
        yield "kafka_quota_callback_throttle_time_seconds", typed, usage.throttle_time_seconds
        if kind is not MUTATION:
            yield f"kafka_quota_callback_{LIMIT[kind]}", labels, entity.limit
        yield "kafka_quota_callback_utilization_ratio", typed, usage.utilization


def _of_limits(state: Snapshot) -> Iterator[Row]:
    limits, health = state.limits, state.limits_health
    connections = "connection_creation_rate"
    if limits is not None:
        for kind in QuotaType:
            bounds = dict(limits.rules.get(kind, {}))
            yield "kafka_quota_rules", {"quota_key": kind.quota_key}, len(bounds)
            unit = 100 if kind is REQUEST else 1
            for labels, value in sorted((tuple(_rule(rule).items()), bound / unit) for rule, bound in bounds.items()):
                yield f"kafka_quota_rule_{LIMIT[kind]}", dict(labels), value
        rates = limits.connection_limits
        yield "kafka_quota_rules", {"quota_key": connections}, len(rates)
        for ip, rate in sorted(rates.items()):
            yield "kafka_quota_rule_connection_limit_per_second", {"ip": ip}, rate
    if health.configured:
        for key in (*(kind.quota_key for kind in QuotaType), connections):
            yield "quotascope_limit_changes_total", {"quota_key": key}, health.changes_total.get(key, 0)


def _of_exporter(taken: Snapshot, now_seconds: float) -> Iterator[Row]:
    for source in taken.sources:
        labels = {"source": source.name}
        yield "quotascope_source_up", labels, source.up
        yield "quotascope_source_duration_seconds", labels, source.duration_seconds
        yield "quotascope_source_readings", labels, source.readings
        yield "quotascope_source_dialect_info", {**labels, "dialect": source.dialect}, 1
        for node in taken.nodes if source.up and source.stand_by_of is None else ():
            if node.broker == source.node_id and node.coverage is not None:
                unplaced = node.coverage.unplaced
                yield "quotascope_source_unplaced_series", labels, 0 if unplaced is None else unplaced.count
                yield "quotascope_source_shows_clients", labels, Visibility.of(taken).shows_clients(node)
        if source.up and source.read_at is not None:
            yield "quotascope_source_age_seconds", labels, max(0.0, now_seconds - source.read_at)
        if source.stand_by_of is not None:
            yield "quotascope_source_stand_by", {**labels, "broker": source.stand_by_of}, 1
    yield from _of_books(taken)
    yield from _of_process(taken)
    health, folds = taken.limits_health, taken.folds
    yield "quotascope_limits_refresh_errors_total", {}, health.errors_total
    if health.read_at is not None:
        yield "quotascope_limits_age_seconds", {}, max(0.0, now_seconds - health.read_at)
    yield "quotascope_snapshot_age_seconds", {}, max(0.0, now_seconds - taken.taken_at)
    every = [*taken.entities, *taken.columns.tagged]
    states = {
        "exported": sum(not usage.entity.stands_in for usage in every),
        "overflow": folds.overflow + taken.callbacks.folded,
        "excluded": folds.excluded,
        "idle": folds.idle,
        "stale": sum(sum(node.stale_entities.values()) for node in taken.nodes),
    }
    for state, count in states.items():
        yield "quotascope_entities", {"state": state}, count
    for reason in ("overflow", "excluded", "idle", "detail"):
        yield "quotascope_series_dropped", {"reason": reason}, folds.series_dropped.get(reason, 0)
    yield "quotascope_build_info", {"version": version("quotascope")}, 1


def _of_books(state: Snapshot) -> Iterator[Row]:
    for discovery in state.discoveries:
        if discovery.found_at is not None:
            yield "quotascope_discovered_sources", {"discovery": discovery.name}, discovery.targets
        yield "quotascope_discovery_errors_total", {"discovery": discovery.name}, discovery.errors_total
    if state.sampling is not None:
        yield "quotascope_samples_total", {}, state.sampling.samples
        yield "quotascope_samples_missed_total", {}, state.sampling.missed
    if state.push is not None:
        for outcome, count in state.push.exports_total.items():
            yield "quotascope_otlp_exports_total", {"outcome": outcome}, count
        for outcome, count in state.push.points_total.items():
            yield "quotascope_otlp_points_total", {"outcome": outcome}, count
    if state.reload is not None:
        yield "quotascope_config_last_reload_successful", {}, state.reload.error is None
        yield "quotascope_config_last_reload_success_timestamp_seconds", {}, state.reload.succeeded_at


def _of_process(state: Snapshot) -> Iterator[Row]:
    for task, count in state.restarts.items():
        yield "quotascope_background_restarts_total", {"task": task}, count
    for file, end in state.certificate_ends.items():
        yield "quotascope_certificate_expiry_seconds", {"file": file}, end
    if state.log_lines_dropped is not None:
        yield "quotascope_log_lines_dropped_total", {}, state.log_lines_dropped
    for reason, count in state.refused_requests.items():
        yield "quotascope_http_requests_refused_total", {"reason": reason}, count


def _rule(entity: QuotaEntity) -> dict[str, str]:
    names = (entity.user, entity.client_id)
    user, client_id = ("" if name is None else name if isinstance(name, str) else "<default>" for name in names)
    return {"rule": entity.rule, "level": entity.level.value, "rule_user": user, "rule_client_id": client_id}


def _node(node_id: str) -> tuple[int, str]:
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


def _utf8(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
