"""
Reads the families that are not columns of entities, series by series.

They are about causes of throttles, nodes, configured rules, sources, and the exporter itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from itertools import chain
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.kafka.entities import DefaultType, QuotaEntity, QuotaType

from ..limits import QUOTA_KEYS
from ..snapshot import CAUSES, Columns, Floats, Snapshot, TeamSums
from ..snapshot.layout import node_order
from ..snapshot.visibility import Visibility

Row: TypeAlias = tuple[tuple[str, ...], float | None]
"""Label values in the family's order, and the value; None if it is unknown."""
_Rows: TypeAlias = Iterator[tuple[Family, tuple[str, ...], float | None]]


@dataclass(eq=False)
class Exposed:
    """A snapshot, and the Unix time in seconds at which it is exposed."""

    snapshot: Snapshot
    now_seconds: float

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The series of the families that are not columns, by the family's name."""
        rows = defaultdict(list)
        rows[catalog.THROTTLE_CAUSE_INFO.name] = list(_cause_rows(self.snapshot.columns))
        for family, labels, value in chain(
            _sold_rows(self.snapshot),
            _team_time_rows(self.snapshot),
            _shadow_rows(self.snapshot),
            _node_rows(self.snapshot),
            _limit_rows(self.snapshot),
            _source_rows(self.snapshot, self.now_seconds),
            _exporter_rows(self.snapshot, self.now_seconds),
            _process_rows(self.snapshot),
        ):
            rows[family.name].append((labels, value))
        for name, value in self.snapshot.process.items():
            rows[name].append(((), value))
        return rows

    @cached_property
    def team_columns(self) -> dict[Family, TeamColumns]:
        """The values of the families of teams; empty without teams."""
        return {} if self.snapshot.teams is None else _team_columns(self.snapshot.teams)

    @cached_property
    def rows_of_teams(self) -> dict[Family, list[Row]]:
        """The series of the families of teams."""
        sums = self.snapshot.teams
        if sums is None:
            return {}
        return {
            family: [
                ((*labels, name), value)
                for labels, values in columns
                for name, value in zip(sums.names, values.tolist(), strict=True)
            ]
            for family, columns in self.team_columns.items()
        }

    def rows_of(self, family: Family) -> Sequence[Row]:
        """Return the series of a family that is no column of entities."""
        if family in TEAM_FAMILIES:
            return self.rows_of_teams.get(family, ())
        return self.rows.get(family.name, ())


TEAM_FAMILIES: Final = frozenset(
    {
        *catalog.TEAM_USAGE.values(),
        *catalog.TEAM_ALLOWED.values(),
        *catalog.TEAM_STRANDED.values(),
        catalog.TEAM_FAIRNESS_RATIO,
        catalog.TEAM_BUDGET_RATIO,
        catalog.TEAM_THROTTLED_ENTITIES,
        *catalog.TEAM_BYTES.values(),
    }
)
"""Families whose series are arrays over all teams."""
TeamColumns: TypeAlias = Sequence[tuple[tuple[str, ...], Floats]]
"""Label values before that of the team, and a value for each name of teams; NaN for no series."""


def _team_columns(sums: TeamSums) -> dict[Family, TeamColumns]:
    """Return the values of the families of teams."""
    columns: dict[Family, TeamColumns] = {}
    for kind in QuotaType:
        columns[catalog.TEAM_USAGE[kind]] = [((), sums.usage[kind])]
        columns[catalog.TEAM_ALLOWED[kind]] = [((), sums.allowed[kind])]
    for kind, family in catalog.TEAM_STRANDED.items():
        columns[family] = [((), sums.stranded[kind])]
    columns[catalog.TEAM_FAIRNESS_RATIO] = [((kind.label,), sums.fairness[kind]) for kind in QuotaType]
    columns[catalog.TEAM_BUDGET_RATIO] = [((kind.label,), sums.budget_ratio(kind)) for kind in QuotaType]
    columns[catalog.TEAM_THROTTLED_ENTITIES] = [((kind.label,), sums.throttled[kind]) for kind in QuotaType]
    nothing = np.full(len(sums.names), np.nan)
    for kind, family in catalog.TEAM_BYTES.items():
        columns[family] = [((), sums.bytes.get(kind, nothing))]
    return columns


def _cause_rows(columns: Columns) -> Iterator[Row]:
    """Yield the cause of the throttle of each entity that is shown with details."""
    rows = np.flatnonzero(columns.causes[columns.layout.own])
    if columns.detailed is not None:
        rows = rows[columns.detailed[rows]]
    numbers = columns.causes[rows].tolist()
    # the labels of a decider stand only where the decider has series of its own
    decider_serials = [decider.serial for decider in columns.deciders.values()]
    shown_serials = set[int]()
    if decider_serials:
        serials = columns.layout.serials
        shown_serials.update(serials[np.isin(serials, decider_serials)].tolist())
    for row, entity, number in zip(rows.tolist(), columns.layout.entities[rows], numbers, strict=True):
        cause = CAUSES[number]
        if cause is not None:
            label, decider_labels = entity.quota_type.label, ("", "", "")
            decider = columns.deciders.get(row)
            if decider is not None and decider.serial in shown_serials:
                decider_labels = decider.broker, decider.user, decider.client_id
            yield (label, entity.broker, entity.user, entity.client_id, cause.value, *decider_labels), 1


def _sold_rows(snapshot: Snapshot) -> _Rows:
    """Yield the part of each broker's capacity that limits promise."""
    for (kind, broker), sold in snapshot.sold.items():
        yield catalog.SOLD_RATIO, (kind.label, broker, sold.origin.value), sold.ratio


def _team_time_rows(snapshot: Snapshot) -> _Rows:
    """Yield the time during which the bytes of teams were counted."""
    if snapshot.teams is not None and snapshot.teams.seen_seconds is not None:
        yield catalog.TEAM_SEEN_SECONDS, (), snapshot.teams.seen_seconds


def _shadow_rows(snapshot: Snapshot) -> _Rows:
    """Yield the series of shadows."""
    for shadow in snapshot.shadows:
        for usage in shadow.entities:
            entity = usage.entity
            labels = shadow.name, entity.quota_type.label, entity.broker, entity.user, entity.client_id
            yield catalog.SHADOW_UTILIZATION, labels, usage.utilization
            yield catalog.SHADOW_THROTTLE_TIME, labels, usage.throttle_time_seconds
            yield catalog.SHADOW_THROTTLE_CHANGE, labels, usage.change_seconds
        for (kind, broker), changes in shadow.changes.items():
            for change, count in changes.items():
                yield catalog.SHADOW_THROTTLED_ENTITIES, (shadow.name, kind.label, broker, change.value), count
        for (kind, broker, reason), count in shadow.unevaluated.items():
            place_and_reason = shadow.name, kind.label, broker, reason
            yield catalog.SHADOW_UNEVALUATED_ENTITIES, place_and_reason, count


def _node_rows(snapshot: Snapshot) -> _Rows:
    """Yield the reports of brokers and controllers about themselves and about quotas other than client quotas."""
    nodes = sorted(snapshot.nodes, key=lambda node: node_order(node.broker))
    longest_queues = snapshot.peaks.delay_queue_size if snapshot.peaks else {}
    for kind in QuotaType:
        for node in nodes:
            queue = kind.label, node.broker
            yield catalog.DELAY_QUEUE_SIZE, queue, node.delay_queue_size.get(kind)
            yield catalog.DELAY_QUEUE_SIZE_MAX, queue, longest_queues.get((node.broker, kind))
            yield catalog.STALE_ENTITIES, queue, node.stale_entities.get(kind)
    for node in nodes:
        yield catalog.CALLBACK_DETECTED, (node.broker,), node.quota_callback
        for family, numbers in node.numbers.items():
            for labels, number in sorted(numbers.items()):
                yield family, (node.broker, *labels), number


def _limit_rows(snapshot: Snapshot) -> _Rows:
    """Yield the configured rules, and the counts of their changes."""
    limits, health = snapshot.limits, snapshot.limits_health
    if limits is not None:
        for kind, rules in limits.rules.items():
            bounds = [(rule_labels(entity), kind.in_base_unit(bound)) for entity, bound in rules.items()]
            for labels, bound in sorted(bounds):
                yield catalog.RULE_LIMIT[kind], labels, bound
        for ip, rate in sorted(limits.connection_limits.items()):
            yield catalog.RULE_CONNECTION_LIMIT, (ip,), rate
        for key in QUOTA_KEYS:
            yield catalog.RULES, (key,), limits.count(key)
    for key in QUOTA_KEYS if health.configured else ():
        yield catalog.LIMIT_CHANGES, (key,), health.changes_total.get(key, 0)
    yield catalog.LIMITS_REFRESH_ERRORS, (), health.errors_total


def _source_rows(snapshot: Snapshot, now_seconds: float) -> _Rows:
    """Yield the state of the reads of each source, and the results of discovery."""
    visibility, nodes = Visibility.of(snapshot), {node.broker: node for node in snapshot.nodes}
    for source in snapshot.sources:
        name = source.name
        yield catalog.SOURCE_UP, (name,), source.up
        yield catalog.SOURCE_DURATION_SECONDS, (name,), source.duration_seconds
        yield catalog.SOURCE_READINGS, (name,), source.readings
        yield catalog.SOURCE_DIALECT_INFO, (name, source.dialect), 1
        if source.up and source.read_at is not None:
            age = max(0.0, now_seconds - source.read_at)
            yield catalog.SOURCE_AGE_SECONDS, (name,), age
        if source.up and source.stand_by_of is None:
            node = nodes.get(source.node_id or "")
            if node is not None and node.coverage is not None:
                unplaced = node.coverage.unplaced
                yield catalog.SOURCE_UNPLACED_SERIES, (name,), 0 if unplaced is None else unplaced.count
                yield catalog.SOURCE_SHOWS_CLIENTS, (name,), visibility.shows_clients(node)
        if source.stand_by_of is not None:
            yield catalog.SOURCE_STAND_BY, (name, source.stand_by_of), 1
    for discovery in snapshot.discoveries:
        yield catalog.DISCOVERED_SOURCES, (discovery.name,), None if discovery.found_at is None else discovery.targets
        yield catalog.DISCOVERY_ERRORS, (discovery.name,), discovery.errors_total


def _exporter_rows(snapshot: Snapshot, now_seconds: float) -> _Rows:
    """Yield the state of the exporter, of its configuration, and of its push over OTLP."""
    yield catalog.BUILD_INFO, (own_version(),), 1
    yield catalog.SNAPSHOT_AGE_SECONDS, (), max(0.0, now_seconds - snapshot.taken_at)
    limits_age = snapshot.limits_health.age_seconds(now_seconds)
    if limits_age is not None:
        yield catalog.LIMITS_AGE_SECONDS, (), limits_age
    reload = snapshot.reload
    if reload is not None:
        yield catalog.CONFIG_LAST_RELOAD_SUCCESSFUL, (), reload.problem is None
        yield catalog.CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS, (), reload.succeeded_at
    if snapshot.sampling is not None:
        yield catalog.SAMPLES, (), snapshot.sampling.samples
        yield catalog.SAMPLES_MISSED, (), snapshot.sampling.missed
    yield from _fold_rows(snapshot)
    if snapshot.push is not None:
        for outcome, count in snapshot.push.exports_total.items():
            yield catalog.OTLP_EXPORTS, (outcome,), count
        for outcome, count in snapshot.push.points_total.items():
            yield catalog.OTLP_POINTS, (outcome,), count


def _fold_rows(snapshot: Snapshot) -> _Rows:
    """Yield the numbers of entities by how they are shown, and of series that are not shown."""
    folds, layout = snapshot.folds, snapshot.columns.layout
    for state, count in {
        "exported": len(layout) - int(layout.stand_ins.sum()),
        "overflow": folds.overflow + snapshot.callbacks.folded,
        "excluded": folds.excluded,
        "idle": folds.idle,
        "stale": sum(chain(*(node.stale_entities.values() for node in snapshot.nodes))),
    }.items():
        yield catalog.ENTITIES, (state,), count
    for reason in ("overflow", "excluded", "idle", "detail"):
        yield catalog.SERIES_DROPPED, (reason,), folds.series_dropped.get(reason, 0)


def _process_rows(snapshot: Snapshot) -> _Rows:
    """Yield the state of the exporter's process: restarts, certificates, log lines and refused requests."""
    for task, count in snapshot.restarts.items():
        yield catalog.BACKGROUND_RESTARTS, (task,), count
    for file, end in snapshot.certificate_ends.items():
        yield catalog.CERTIFICATE_EXPIRY_SECONDS, (file,), end
    if snapshot.log_lines_dropped is not None:
        yield catalog.LOG_LINES_DROPPED, (), snapshot.log_lines_dropped
    for reason, count in snapshot.refused_requests.items():
        yield catalog.HTTP_REQUESTS_REFUSED, (reason,), count


def rule_labels(entity: QuotaEntity) -> tuple[str, str, str, str]:
    """
    Return the labels ``rule``, ``level``, ``rule_user`` and ``rule_client_id`` of a configured entity.

    The name of a user or client-id that the entity lacks is empty.
    """
    user, client_id = (
        "<default>" if isinstance(name, DefaultType) else name or "" for name in (entity.user, entity.client_id)
    )
    return entity.rule, entity.level.value, user, client_id


@cache
def own_version() -> str:
    """Return the version of the installed package."""
    return version("quotascope")


def label_names(family: Family, snapshot: Snapshot) -> tuple[str, ...]:
    """
    Return the labels of a family's series.

    The labels of the catalog come first, then those of a custom quota callback if the family has them.
    """
    if family.open_labels:
        return (*family.labels, *snapshot.callbacks.labels)
    return family.labels


def encodable(text: str) -> str:
    """Return a text with halves of surrogate pairs as escapes, since JSON may hold them and UTF-8 may not."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
