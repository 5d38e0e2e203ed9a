"""Asks a running exporter for its snapshot: with its usage and its findings, no broker needs to be read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from quotascope.clients.security import Tls
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, Level, Name, QuotaEntity, QuotaType, Resolution
from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.pages.baseline import ThrottleChange

from ..address import http_parts
from ..coverage import Coverage
from ..diagnosis.catalog import Catalog, Finding
from ..errors import ConfigError, SourceError, SourceUnreadable
from ..join.limiting import RulesInForce, limited, overruled
from ..limits import Limits
from ..snapshot import (
    Columns,
    Entity,
    EntityUsage,
    LimitState,
    NodeUsage,
    Shadow,
    ShadowUsage,
    Snapshot,
    ThrottleCause,
)
from ..sources.peer import MEBIBYTE, HttpTarget, Peer
from ..untrusted import shown
from .asking import ask
from .documents import CoverageDocument, EntityDocument, ReleaseDocument, ShadowDocument, ShadowEntity, SnapshotDocument

if TYPE_CHECKING:
    from ..page.query import EpisodeQuery

Observed: TypeAlias = tuple[Snapshot, Sequence[Finding]]
"""The snapshot of an exporter, and its findings."""

_PATH: Final = "/api/v1/snapshot"
_FLAG: Final = "--exporter"
_RECENT_PATH: Final = "/api/v1/entities?show=all&size=500"
_TIMEOUT_SECONDS: Final = 10.0
_MOST_BYTES: Final = 256 * MEBIBYTE
EXPORTER_HINT: Final = (
    "give the address of `quotascope serve`, such as http://quotascope:9749; an exporter of a release without the "
    "JSON API has to be upgraded"
)
"""Advice about an answer that does not come from an exporter's API."""
EXPORTER: Final = Peer(
    name="the exporter",
    silent="it is overloaded or stuck, or no quotascope listens there{maybe}",
    unreached="is the exporter running, is this its port (9749 by default), and is it open from here?",
    ended="is the exporter shutting down",
    login="give --exporter-user and --exporter-password-file, or --exporter-cert-file",
    trust="give --exporter-ca-file with the authority that signed it",
)
"""The words about an exporter in messages."""
_TYPES: Final = {kind.label: kind for kind in QuotaType}
_DEFAULT_USER: Final = {
    Level.DEFAULT_USER_CLIENT,
    Level.DEFAULT_USER_DEFAULT_CLIENT,
    Level.DEFAULT_USER,
}
_DEFAULT_CLIENT: Final = {
    Level.USER_DEFAULT_CLIENT,
    Level.DEFAULT_USER_DEFAULT_CLIENT,
    Level.DEFAULT_CLIENT,
}
_NAMED_USER: Final = {Level.USER_CLIENT, Level.USER_DEFAULT_CLIENT, Level.USER}
_NAMED_CLIENT: Final = {Level.USER_CLIENT, Level.DEFAULT_USER_CLIENT, Level.CLIENT}


def snapshot_url(text: str) -> str:
    """
    Return the address of an exporter's snapshot; the path to it can be left out, or be that of ``/metrics``.

    >>> snapshot_url("http://quotascope:9749")
    'http://quotascope:9749/api/v1/snapshot'

    Raises ``ConfigError`` when it is no http or https address, or holds a password, which others could see.
    """
    parts = http_parts(text)
    if parts is None:
        raise ConfigError(_FLAG, ["expected an address such as http://quotascope:9749"])
    if parts.username is not None or parts.password is not None:
        problem = "takes no user or password in the address: give --exporter-user and --exporter-password-file"
        raise ConfigError(_FLAG, [problem])
    base = parts.path.rstrip("/").removesuffix(_PATH).removesuffix("/metrics")
    return parts._replace(path=f"{base}{_PATH}", query="", fragment="").geturl()


def exporter_target(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    password_file: Path | None = None,
    tls: Tls | None = None,
) -> HttpTarget:
    """
    Return the address of an exporter, and the login of a ``user`` if one is given.

    A file of its password takes precedence.

    Raises ``ConfigError``, and ``InvalidConnection`` for files of TLS that cannot be used.
    """
    if user is not None:
        if ":" in user:
            raise ConfigError("--exporter-user", ["must not contain a colon"])
        if password is None and password_file is None:
            raise ConfigError("--exporter-user", ["needs --exporter-password-file"])
        if password_file is not None:
            from ..config import secret, usable  # noqa: PLC0415 - its import takes longer than the question

            with usable("--exporter-password-file"):
                password = secret(None, password_file)
    address = snapshot_url(url)
    context = None
    if tls is not None and (tls != Tls() or address.startswith("https:")):
        context = tls.context()  # only where it is needed, as reading all authorities takes time
    return HttpTarget(
        url=address,
        timeout_seconds=_TIMEOUT_SECONDS,
        username=user,
        password=password or "",
        tls=context,
        max_bytes=_MOST_BYTES,
    )


def site_of(target: HttpTarget) -> str:
    """Return the address of an exporter without the path to its snapshot."""
    return target.url.removesuffix(_PATH)


async def read_exporter(target: HttpTarget, limits: Limits | None = None) -> Observed:
    """
    Return the snapshot that an exporter shows now, with its findings. Raises ``SourceError``.

    Args:
        target: The exporter's address and login.
        limits: The configured quotas, if the caller has read them itself; None takes those of the exporter.

    """
    try:
        return observed(await ask(target, target.url, EXPORTER_HINT, EXPORTER), limits)
    except SourceError as error:
        raise type(error)(f"the exporter {target.url}: {error}") from error


async def read_recent(target: HttpTarget) -> dict[tuple[str, str, str, str], list[float | None]]:
    """
    Return the recent utilization of an exporter's fullest entities in steps of ``STEP_SECONDS``, the latest last.

    The keys are quota type (as labels have it), broker, user and client-id. The result is empty if the utilization
    cannot be read, as from an exporter that lacks it.
    """
    try:
        rows = json.loads(await ask(target, site_of(target) + _RECENT_PATH, EXPORTER_HINT, EXPORTER))["entities"]
        return {
            (row["quota_type"], row["broker"], row["user"], row["client_id"]): [
                None if value is None else float(value) for value in row["recent"]
            ]
            for row in rows
        }
    except (SourceError, ValueError, TypeError, LookupError):
        return {}


async def read_episodes(target: HttpTarget, query: EpisodeQuery) -> dict[str, Any]:
    """Return the answer of an exporter at ``/api/v1/episodes``, all parts as one. Raises ``SourceError``."""
    from ..page.query import MOST  # noqa: PLC0415 - with what makes pages, which other questions do without

    base = f"{site_of(target)}/api/v1/episodes"
    rows = list[dict[str, Any]]()
    address = query.with_values(size=MOST).address
    try:
        while True:
            part = json.loads(await ask(target, f"{base}{address}", EXPORTER_HINT, EXPORTER))
            rows += map(dict, part["episodes"])
            if not (address := part["next"]):
                return {**part, "episodes": rows}
    except SourceError as error:
        raise type(error)(f"the exporter {base}: {error}") from error
    except (ValueError, TypeError, LookupError) as error:
        raise SourceUnreadable(f"{base}: the answer has no episodes; {EXPORTER_HINT}") from error


def observed(answer: bytes, limits: Limits | None = None) -> Observed:
    """
    Return the answer of ``/api/v1/snapshot`` as a snapshot.

    Raises ``SourceUnreadable`` when it is something else.
    """
    try:
        # pydantic's own parser refuses halves of surrogate pairs
        document = _snapshots().validate_python(json.loads(answer))
        return _snapshot(document, limits)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        reason = f"{'.'.join(map(str, first_error['loc']))}: {first_error['msg']}"
    except (ValueError, KeyError, RecursionError) as error:
        reason = str(error)
    raise SourceUnreadable(
        f"the answer is not a snapshot of this release of quotascope ({shown(reason)}); {EXPORTER_HINT}"
    )


@cache
def _snapshots() -> TypeAdapter[SnapshotDocument]:
    """Return the reader of documents, which commands that ask no exporter do not build."""
    return TypeAdapter(SnapshotDocument)


def _snapshot(document: SnapshotDocument, known_limits: Limits | None) -> Observed:
    """Return the snapshot and the findings of a document; known limits take precedence over those in it."""
    health, limits, findings = document.health, known_limits, list(document.health.findings)
    count, total = len(document.entities), document.entities_total
    if count < total:
        findings.append(Catalog.API_ENTITIES_CUT.found(count=count, total=total))
    if known_limits is None and health.limits_known:
        if len(document.rules) == document.rules_total:
            limits = _limits(document)
        else:
            findings.append(Catalog.API_RULES_CUT.found(total=document.rules_total))
    callbacks = {node.broker for node in health.nodes if node.quota_callback}
    overruled_nodes = overruled(
        known_limits, {node.broker: bool(node.foreign_labels) for node in health.nodes}, callbacks
    )
    rules = RulesInForce(known_limits, overruled_nodes)
    usages = (_usage(entity) for entity in document.entities)
    if known_limits is not None:
        usages = (replace(usage, entity=limited(usage.entity, rules.on(usage.entity.broker))) for usage in usages)
    snapshot = Snapshot(
        taken_at=health.taken_at,
        thresholds=document.thresholds,
        columns=Columns.of(usages),
        unsent=total - count,
        nodes=tuple(
            NodeUsage(
                broker=node.broker,
                coverage=None if node.coverage is None else _coverage(node.coverage),
                quota_callback=node.quota_callback,
                overruled=node.overruled if known_limits is None else node.broker in overruled_nodes,
                foreign_labels=tuple(node.foreign_labels),
                started_at=node.started_at,
                static_limits={
                    _TYPES[label]: inf if bound is None else bound for label, bound in node.callback_limits.items()
                },
                delay_queue_size={
                    _TYPES[label]: size for label, size in node.delay_queue_size.items() if size is not None
                },
                numbers={
                    catalog.REQUEST_HANDLER_IDLE: {(): node.request_handler_idle},
                    catalog.IP_CONNECTIONS_PER_SECOND: {
                        (ip,): rate for ip, rate in document.connections.get(node.broker, {}).items()
                    },
                },
            )
            for node in health.nodes
        ),
        sources=tuple(health.sources),
        limits=limits,
        limits_health=health.limits,
        shadows=tuple(map(_shadow, document.shadows)),
    )
    return snapshot, findings


def _coverage(document: CoverageDocument) -> Coverage:
    """Return the coverage of an agent's answer."""

    def types(labels: Iterable[str]) -> frozenset[QuotaType]:
        return frozenset(_TYPES[label] for label in labels)

    return Coverage(
        kinds={_TYPES[label]: frozenset(kinds) for label, kinds in document.kinds.items()},
        tagged=document.tagged,
        usages=types(document.usages),
        throttle_times=types(document.throttle_times),
        tokens=document.tokens,
        queues=types(document.delay_queues),
        connections=document.connections,
        complete=document.complete,
        alike=document.alike,
        unplaced=document.unplaced,
        labels_of_page=tuple(document.labels_of_page),
        in_seconds=document.in_seconds,
    )


def _shadow(document: ShadowDocument) -> Shadow:
    """Return the effects of a shadow."""
    counts = {(_TYPES[count.quota_type], count.broker): count for count in document.counts}
    return Shadow(
        name=document.name,
        entities=tuple(map(_shadow_usage, document.entities)),
        evaluated={place: count.evaluated for place, count in counts.items()},
        changes={
            place: {ThrottleChange(name): entities for name, entities in count.changes.items()}
            for place, count in counts.items()
        },
        unevaluated={
            (_TYPES[unknown.quota_type], unknown.broker, unknown.reason): unknown.entities
            for unknown in document.unevaluated
        },
    )


def _shadow_usage(document: ShadowEntity) -> ShadowUsage:
    """Return an entity as the rules of a shadow make it."""
    usage = _usage(document)
    return ShadowUsage(
        entity=usage.entity,
        usage=usage.usage,
        throttle_time_seconds=usage.throttle_time_seconds,
        change=None if document.change is None else ThrottleChange(document.change),
        change_seconds=document.change_seconds,
        held_back=document.held_back,
        unchanged=document.kept,
    )


def _usage(document: EntityDocument) -> EntityUsage:
    """Return the usage of an entity with its rule, limit and cause."""
    kind = _TYPES[document.quota_type]
    rule = _resolution(kind, document.rule, document.limit)
    if rule is None and LimitState(document.limit_state) is LimitState.UNLIMITED:
        rule = NO_RULE
    decider = None
    if (by := document.decided_by) is not None:
        decider = Entity(
            broker=by.broker or "",
            quota_type=QuotaType.CONTROLLER_MUTATION,
            user=by.user,
            client_id=by.client_id,
            resolution=_resolution(QuotaType.CONTROLLER_MUTATION, by.rule, by.limit),
            limit=by.limit,
            burst_tokens=by.burst_tokens,
        )
    return EntityUsage(
        entity=Entity(
            broker=document.broker,
            quota_type=kind,
            user=document.user,
            client_id=document.client_id,
            resolution=rule,
            limit=document.limit,
            burst_tokens=document.burst_tokens,
        ),
        usage=document.usage,
        throttle_time_seconds=document.throttle_time_seconds,
        tokens=document.tokens,
        cause=None if document.cause is None else ThrottleCause(document.cause),
        decided_by=decider,
    )


def _resolution(kind: QuotaType, rule: Mapping[str, str] | None, limit: float | None) -> Resolution | None:
    """Return the rule that applies, with its value; ``limit`` is in the unit of ``Entity.limit``."""
    if rule is None:
        return None
    level = Level(rule["level"])
    bound = None if limit is None else kind.in_kafka_unit(limit)
    return Resolution(level=level, entity=_entity(level, rule["user"], rule["client_id"]), bound=bound)


def _limits(document: SnapshotDocument) -> Limits:
    """Return the configured quotas and the settings of the nodes."""
    health = document.health
    rules = {kind: QuotaRules() for kind in QuotaType}
    connections: dict[str, float] = {}
    for rule in document.rules:
        kind, value = QuotaType.of_quota_key(rule.key), inf if rule.value is None else rule.value
        if kind is None:
            connections[rule.ip] = value
        else:
            entity = _entity(Level(rule.level), rule.user, rule.client_id)
            rules[kind].set(entity, value)
    return Limits(
        rules=rules,
        connection_limits=connections,
        nodes=health.settings,
        releases={node: _release(release) for node, release in health.releases.items()},
        read_at=health.limits.read_at or health.taken_at,
    )


def _release(document: ReleaseDocument) -> ReleaseRange:
    """Return the releases that a broker may be of."""
    mode = "-zookeeper" if document.zookeeper else ""
    oldest, newest = (
        None if version is None else KafkaRelease.parse(f"{version}{mode}")
        for version in (document.oldest, document.newest)
    )
    return ReleaseRange(oldest=oldest, newest=newest)


def _entity(level: Level, user: str, client_id: str) -> QuotaEntity:
    """Return the key of a rule: its level tells a default from an entity of that name, and an empty name from none."""
    rule_user: Name | None = user if level in _NAMED_USER else None
    if level in _DEFAULT_USER:
        rule_user = DEFAULT
    rule_client_id: Name | None = client_id if level in _NAMED_CLIENT else None
    if level in _DEFAULT_CLIENT:
        rule_client_id = DEFAULT
    return QuotaEntity(rule_user, rule_client_id)
