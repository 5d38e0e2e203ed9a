"""
Makes the answers of the JSON API.

Lists with names from outside are bounded in characters, so that an answer stays small whatever names clients choose.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType, Resolution
from quotascope.quotas import IpEntity

from ..coverage import Coverage, EntityKind
from ..diagnosis.catalog import Finding, worst
from ..diagnosis.cluster_usage import ClusterUsage, cluster_usages
from ..diagnosis.episodes import Episode, Episodes, entity_matches
from ..diagnosis.explain import as_json
from ..diagnosis.findings import diagnose
from ..diagnosis.misnamed import Misnamed
from ..diagnosis.releases import is_tested
from ..diagnosis.rule_usage import RuleUsage, rule_usage
from ..diagnosis.selection import Selection, in_order
from ..diagnosis.trails import STEP_SECONDS, Trail
from ..exposition import own_version
from ..exposition.rows import rule_labels
from ..limits.model import DEFAULT_IP
from ..names import asked_as
from ..page.query import EntityQuery, EpisodeQuery, PartQuery, QueryResult
from ..snapshot import EntityUsage, Floats, Shadow, ShadowUsage, Snapshot, Usages, place_of
from ..snapshot.entity import finite

if TYPE_CHECKING:  # the command line reads documents without what makes pages
    from ..page.entity import EntityResult
    from ..page.rules import RulesResult
    from ..page.team_list import TeamsResult
from .documents import (
    ChangesDocument,
    ClusterDocument,
    CoverageDocument,
    DeciderDocument,
    EntitiesDocument,
    EntityDocument,
    EpisodeDocument,
    EpisodesDocument,
    ExplainDocument,
    ExplainedEntity,
    HealthDocument,
    HistoryDocument,
    ListedEntity,
    ListedEpisode,
    MeantDocument,
    MisnamedDocument,
    NodeDocument,
    ReleaseDocument,
    RuleDocument,
    RulesDocument,
    RunbookDocument,
    RunbooksDocument,
    ShadowCount,
    ShadowDocument,
    ShadowEntity,
    ShadowUnknown,
    SnapshotDocument,
    SoldDocument,
    TeamDocument,
    TeamsDocument,
    TeamTypeDocument,
)

MOST_CHARACTERS: Final = 32 << 20
"""Characters of one list in an answer: about 80,000 entities with ordinary names."""
_ROW_CHARACTERS: Final = 400
"""Characters of an entity or a rule without its names."""


def health_document(snapshot: Snapshot, findings: Sequence[Finding] | None = None) -> HealthDocument:
    """Return the answer of ``/api/v1/health``; ``findings`` saves a second diagnosis."""
    all_findings = list(diagnose(snapshot) if findings is None else findings)
    return HealthDocument(
        version=own_version(),
        taken_at=snapshot.taken_at,
        severity=worst(all_findings),
        findings=all_findings,
        sources=list(snapshot.sources),
        nodes=[
            NodeDocument(
                broker=node.broker,
                quota_callback=node.quota_callback,
                callback_limits={kind.label: finite(bound) for kind, bound in node.static_limits.items()},
                delay_queue_size={kind.label: finite(size) for kind, size in node.delay_queue_size.items()},
                request_handler_idle=finite(node.handlers_idle),
                overruled=node.overruled,
                foreign_labels=list(node.foreign_labels),
                started_at=node.started_at,
                coverage=None if node.coverage is None else coverage_document(node.coverage),
            )
            for node in snapshot.nodes
        ],
        limits_known=snapshot.limits is not None,
        limits=replace(snapshot.limits_health, changes=()),
        settings=dict(snapshot.limits.nodes) if snapshot.limits else {},
        releases={
            node: ReleaseDocument(
                oldest=None if release.oldest is None else release.oldest.version,
                newest=None if release.newest is None else release.newest.version,
                zookeeper=release.zookeeper,
                tested=is_tested(release),
            )
            for node, release in (snapshot.limits.releases if snapshot.limits else {}).items()
        },
    )


def coverage_document(coverage: Coverage) -> CoverageDocument:
    """Return the coverage of an agent for programs, with lists in the order of quota types and of kinds."""

    def labels(quota_types: Container[QuotaType]) -> list[str]:
        return [quota_type.label for quota_type in QuotaType if quota_type in quota_types]

    return CoverageDocument(
        kinds={
            quota_type.label: [kind for kind in EntityKind if kind in coverage.kinds[quota_type]]
            for quota_type in QuotaType
            if quota_type in coverage.kinds
        },
        tagged=coverage.tagged,
        usages=labels(coverage.usages),
        throttle_times=labels(coverage.throttle_times),
        tokens=coverage.tokens,
        delay_queues=labels(coverage.queues),
        connections=coverage.connections,
        complete=coverage.complete,
        alike=coverage.alike,
        unplaced=coverage.unplaced,
        labels_of_page=list(coverage.labels_of_page),
        in_seconds=coverage.in_seconds,
    )


def snapshot_document(snapshot: Snapshot) -> SnapshotDocument:
    """Return the answer of ``/api/v1/snapshot``."""
    measured = snapshot.measured
    rules = rule_usage(snapshot.limits, snapshot) if snapshot.limits else []
    max_rows = MOST_CHARACTERS // _ROW_CHARACTERS
    entities = list(_bounded(map(entity_document, measured)))
    if len(entities) < len(measured):
        measured = in_order(measured, Selection(near_limit=snapshot.thresholds.near_limit), max_rows)
        entities = list(_bounded(map(entity_document, measured)))
    return SnapshotDocument(
        health=health_document(snapshot),
        entities_total=len(snapshot.measured),
        entities=entities,
        rules_total=len(rules),
        rules=list(_bounded(map(_rule_document, rules))),
        connections={
            node.broker: {ip: finite(rate) for ip, rate in ips}
            for node in snapshot.nodes
            if (ips := list(node.connections_by_ip.items())[:max_rows])
        },
        shadows=list(map(shadow_document, snapshot.shadows)),
        thresholds=snapshot.thresholds,
    )


def shadow_document(shadow: Shadow) -> ShadowDocument:
    """Return the effects of a shadow."""
    return ShadowDocument(
        name=shadow.name,
        counts=[
            ShadowCount(
                quota_type=kind.label,
                broker=broker,
                evaluated=shadow.evaluated[kind, broker],
                changes={change.value: count for change, count in changes.items()},
            )
            for (kind, broker), changes in shadow.changes.items()
        ],
        unevaluated=[
            ShadowUnknown(quota_type=kind.label, broker=broker, reason=str(reason), entities=count)
            for (kind, broker, reason), count in shadow.unevaluated.items()
        ],
        entities=list(_bounded(map(_shadow_entity, shadow.entities)))
    )  # fmt: skip


def _shadow_entity(usage: ShadowUsage) -> ShadowEntity:
    """Return an entity as the rules of a shadow make it."""
    return ShadowEntity(
        **_fields(entity_document(usage)),
        change=None if usage.change is None else usage.change.value,
        change_seconds=finite(usage.change_seconds),
        held_back=usage.held_back,
        kept=usage.unchanged,
    )


def entities_document(result: QueryResult) -> EntitiesDocument:
    """Return the answer of ``/api/v1/entities``, with teams and the utilization of the last minutes."""
    entities = list(_bounded(map(entity_document, result.rows)))
    return EntitiesDocument(
        **_part(result.snapshot, result.query, len(entities), result.total),
        limits_unknown=result.limits_unknown,
        recent_step_seconds=STEP_SECONDS,
        entities=[
            ListedEntity(
                **_fields(entity),
                team=result.teams.of(usage.entity),
                recent=list(map(finite, result.trails.utilization(usage))),
            )
            for entity, usage in zip(entities, result.rows, strict=False)
        ],
    )


def rules_document(result: RulesResult) -> RulesDocument:
    """Return the answer of ``/api/v1/rules``."""
    rules = list(_bounded(map(_rule_document, result.rules)))
    return RulesDocument(
        **_part(result.snapshot, result.query, len(rules), result.total),
        limits_known=result.snapshot.limits is not None,
        rules=rules,
    )


def teams_document(result: TeamsResult) -> TeamsDocument:
    """Return the answer of ``/api/v1/teams``."""
    snapshot = result.snapshot
    return TeamsDocument(
        **_part(snapshot, result.query, len(result.teams), result.total),
        configured=snapshot.teams is not None,
        complete=not snapshot.incomplete,
        teams=[
            TeamDocument(
                team=team.name,
                contact=None if team.team is None else team.team.contact,
                entities=team.entities,
                quotas=[
                    TeamTypeDocument(
                        quota_type=row.quota_type.label,
                        usage=row.usage,
                        complete=row.complete,
                        allowed=row.allowed,
                        allowed_complete=row.allowed_complete,
                        stranded=row.stranded,
                        stranded_complete=row.stranded_complete,
                        fairness=row.fairness,
                        unlimited_entities=row.unlimited,
                        budget=row.budget,
                        budget_ratio=row.budget_ratio,
                        throttled_entities=row.throttled,
                        throttled_complete=row.throttled_complete,
                    )
                    for row in team.rows
                ],
            )
            for team in result.teams
        ],
        sold=[
            SoldDocument(
                broker=broker,
                quota_type=kind.label,
                limits=sold.limits,
                capacity=sold.capacity,
                origin=sold.origin.value,
                ratio=sold.ratio,
            )
            for (kind, broker), sold in snapshot.sold.items()
            if isfinite(sold.ratio)
        ],
    )


def explain_document(result: EntityResult, query: EntityQuery) -> ExplainDocument:
    """
    Return the answer of ``/api/v1/explain``.

    It has what the command prints as JSON, and the measured entities in the part that ``query`` asks for.
    """
    part_of_rows = result.rows[query.offset : query.offset + query.size]
    entities = list(_bounded(map(entity_document, part_of_rows)))
    shown_rows = Usages(result.rows.columns, result.rows.rows[query.offset : query.offset + len(entities)])
    words: dict[str, Any] = as_json(result.user, result.client_id, result.explanations or (), result.callbacks)
    names = [(key, text) for key, text in (("user", result.user), ("client_id", result.client_id)) if text is not None]
    # the address of the next part has to have the names, which `query` lacks
    part = _part(result.snapshot, query, len(entities), len(result.rows))
    if part["next"]:
        part["next"] = f"?{urlencode(names, errors='replace')}&{part['next'][1:]}"
    return ExplainDocument(
        **part,
        **words,
        limits_known=result.explanations is not None,
        cluster=[_cluster_document(usage) for usage in cluster_usages(result.snapshot, shown_rows)],
        entities=[
            _explained(
                entity,
                result.trails.trail(usage.entity),
                [episode for episode in result.episodes if place_of(episode.usage.entity) == place_of(usage.entity)],
            )
            for entity, usage in zip(entities, part_of_rows, strict=False)
        ],
    )


def _cluster_document(usage: ClusterUsage) -> ClusterDocument:
    """Return the usage of an entity on all nodes together."""
    return ClusterDocument(
        quota_type=usage.quota_type.label,
        user=usage.user,
        client_id=usage.client_id,
        usage=finite(usage.usage),
        complete=usage.complete,
        limit=finite(usage.limit),
        limit_at_least=finite(usage.limit_at_least),
        limit_state=usage.limit_state.value,
        largest_broker=usage.largest_broker,
        largest_share=finite(usage.largest_share),
        stranded=finite(usage.stranded),
        stranded_complete=usage.stranded_complete,
        stranded_brokers=list(usage.stranded_brokers),
        fairness=usage.fairness,
    )


def _explained(entity: EntityDocument, trail: Trail | None, episodes: Sequence[Episode]) -> ExplainedEntity:
    """Return an entity with its last minutes, if it was seen in them, and its throttle episodes."""
    history = None
    if trail is not None:
        history = HistoryDocument(
            times=trail.times.tolist(),
            utilization=_series(trail.used),
            usage=_series(trail.usage),
            throttle_time_seconds=_series(trail.throttle_time),
        )
    return ExplainedEntity(
        **_fields(entity),
        history=history,
        episodes=[
            EpisodeDocument(
                began_at=episode.began_at,
                ended_at=None if episode.ongoing else episode.seen_at,
                longest_seconds=episode.longest_seconds,
            )
            for episode in episodes
        ],
    )


def episodes_document(snapshot: Snapshot, episodes: Episodes, query: EpisodeQuery) -> EpisodesDocument:
    """Return the answer of ``/api/v1/episodes``."""
    user, client_id = (None if name is None else asked_as(name) for name in (query.user, query.client_id))
    matching = [
        episode
        for episode in episodes
        if entity_matches(episode.usage.entity, user, client_id)
        and query.type in {None, episode.usage.entity.quota_type}
        and episode.seen_at >= query.since
    ]
    part_of_episodes = matching[query.offset : query.offset + query.size]
    entities = list(_bounded(entity_document(episode.usage) for episode in part_of_episodes))
    return EpisodesDocument(
        **_part(snapshot, query, len(entities), len(matching)),
        since=snapshot.taken_at if episodes.since is None else episodes.since,
        gaps=[[begin, end] for begin, end in episodes.gaps],
        episodes=[
            ListedEpisode(
                **_fields(entity), began_at=episode.began_at, seen_at=episode.seen_at, ongoing=episode.ongoing
            )
            for entity, episode in zip(entities, part_of_episodes, strict=False)
        ],
    )


def changes_document(snapshot: Snapshot, query: PartQuery) -> ChangesDocument:
    """Return the answer of ``/api/v1/changes``."""
    health = snapshot.limits_health
    part_of_changes = health.changes[query.offset : query.offset + query.size]
    return ChangesDocument(
        **_part(snapshot, query, len(part_of_changes), len(health.changes)),
        since=health.changes_since,
        changes=[replace(change, old=finite(change.old), new=finite(change.new)) for change in part_of_changes],
    )


def runbooks_document(runbooks: Mapping[str, str], query: EntityQuery) -> RunbooksDocument:
    """Return the answer of ``/api/v1/runbooks``."""
    part_of_runbooks = list(islice(runbooks.items(), query.offset, query.offset + query.size))
    return RunbooksDocument(
        total=len(runbooks),
        offset=query.offset,
        size=query.size,
        next=query.following(len(runbooks)),
        runbooks=[
            RunbookDocument(alert=alert, path=f"runbooks/{alert}", text=text) for alert, text in part_of_runbooks
        ],
    )


def entity_document(usage: EntityUsage) -> EntityDocument:
    """Return the usage of one entity, its limit, and the rule that applies."""
    entity, decider, decided_by = usage.entity, usage.decided_by, None
    if decider is not None:
        decided_by = DeciderDocument(
            broker=decider.broker or None,
            user=decider.user,
            client_id=decider.client_id,
            limit=finite(decider.limit),
            burst_tokens=finite(decider.burst_tokens),
            rule=_rule(decider.resolution),
        )
    return EntityDocument(
        broker=entity.broker,
        quota_type=entity.quota_type.label,
        user=entity.user,
        client_id=entity.client_id,
        unit=entity.quota_type.unit.name,
        usage=finite(usage.usage),
        limit=finite(entity.limit),
        limit_state=entity.limit_state.value,
        utilization=finite(usage.utilization),
        tokens=finite(usage.tokens),
        burst_tokens=finite(entity.burst_tokens),
        burst_used=finite(usage.burst_used),
        throttle_time_seconds=finite(usage.throttle_time_seconds),
        cause=None if usage.cause is None else usage.cause.value,
        decided_by=decided_by,
        rule=_rule(entity.resolution),
    )


def _rule(resolution: Resolution | None) -> dict[str, str] | None:
    """Return the rule that applies, as in `EntityDocument.rule`; None without one, or if it is unknown."""
    if resolution is None or resolution.entity is None:
        return None
    return dict(zip(("name", "level", "user", "client_id"), rule_labels(resolution.entity), strict=True))


def _rule_document(rule: RuleUsage) -> RuleDocument:
    """Return a configured quota with the number of its entities and their utilization."""
    entity, kind = rule.entity, QuotaType.of_quota_key(rule.key)
    level, user, client_id, ip = None, "", "", ""
    if isinstance(entity, QuotaEntity):
        _, level, user, client_id = rule_labels(entity)
    elif isinstance(entity, IpEntity):
        ip = entity.ip if isinstance(entity.ip, str) else DEFAULT_IP
    return RuleDocument(
        key=rule.key,
        rule=entity.rule,
        level=level,
        user=user,
        client_id=client_id,
        ip=ip,
        value=finite(rule.value),
        limit=finite(rule.value if kind is None else kind.in_base_unit(rule.value)),
        unit="connections_per_second" if kind is None else kind.unit.name,
        entities=None if rule.hits is None else len(rule.hits),
        utilization=finite(rule.fullest),
        throttled=rule.throttled,
        hidden_on=list(rule.hidden_on),
        misnamed=None if rule.misnamed is None else _misnamed_document(rule.misnamed),
    )


def _misnamed_document(rule: Misnamed) -> MisnamedDocument:
    """Return the doubts about the name of a rule."""
    return MisnamedDocument(
        text=rule.text,
        meant=[
            MeantDocument(
                rule=candidate.entity.rule,
                measured_under=None if candidate.under is None else candidate.under.rule,
                has_rule=candidate.has_rule,
            )
            for candidate in rule.meant
        ],
        commands=list(rule.commands),
    )


def _part(snapshot: Snapshot, query: PartQuery, count: int, total: int) -> dict[str, Any]:
    """Return the fields of ``PartDocument``."""
    return {
        "taken_at": snapshot.taken_at,
        "total": total,
        "offset": query.offset,
        "size": query.size,
        "next": query.following(total, count),
    }


def _fields(entity: EntityDocument) -> dict[str, Any]:
    """Return the fields of an entity, as arguments of a document that has further ones."""
    return {field.name: getattr(entity, field.name) for field in fields(entity)}


def _series(values: Floats) -> list[float | None]:
    """Return numbers of 32 bits with no more digits than they hold."""
    return [float(f"{value:.7g}") if isfinite(value) else None for value in values.tolist()]


_Row = TypeVar("_Row", EntityDocument, ShadowEntity, RuleDocument)


def _bounded(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yield the first rows that fit into ``MOST_CHARACTERS``; one at least."""
    room = MOST_CHARACTERS
    for row in rows:
        yield row
        room -= _ROW_CHARACTERS + len(row.user) + len(row.client_id)
        if room <= 0:
            return
