"""Asks a running exporter for its snapshot: with its usage and its findings, no broker needs to be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError
from yarl import URL

from quotascope.clients.security import Tls
from quotascope.metrics import DEFAULT, NO_RULE, Level, QuotaEntity, QuotaRules, QuotaType, Resolution
from quotascope.metrics.entities import Name

from ..config import secret, usable
from ..diagnosis import Catalog, Finding
from ..errors import ConfigError, SourceError, SourceUnreadable
from ..join.limiting import deciding, limited
from ..limits import Limits
from ..page.query import MOST, EpisodeQuery
from ..snapshot import (
    Columns,
    ConnectionUsage,
    Entity,
    EntityUsage,
    LimitedRate,
    LimitState,
    NodeLoad,
    NodeUsage,
    Shadow,
    Snapshot,
    ThrottleCause,
)
from ..sources.fetch import MEBIBYTE, HttpFetch, HttpTarget, Peer
from ..untrusted import shown
from .documents import EntityDocument, ShadowDocument, SnapshotDocument

Observed: TypeAlias = tuple[Snapshot, Sequence[Finding]]
"""A snapshot, and what is wrong or missing."""

_PATH: Final = "/api/v1/snapshot"
_FLAG: Final = "--exporter"
_RECENT_PATH: Final = "/api/v1/entities?show=all&size=500"
_TIMEOUT_SECONDS: Final = 10.0
_MOST_BYTES: Final = 256 * MEBIBYTE
_HINT: Final = (
    "give the address of `quotascope serve`, such as http://quotascope:9749; an exporter of a release without the JSON API "
    "has to be upgraded"
)
_EXPORTER: Final = Peer(
    name="the exporter",
    silent="it is overloaded or stuck, or no quotascope listens there{maybe}",
    unreached="is the exporter running, is this its port (9749 by default), and is it open from here?",
    ended="is the exporter shutting down",
    login="give --exporter-user and --exporter-password-file, or --exporter-cert-file",
    trust="give --exporter-ca-file with the authority that signed it",
)
_DOCUMENT: Final = TypeAdapter(SnapshotDocument)
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


def snapshot_url(text: str) -> str:
    """
    The address of an exporter's snapshot; the path to it can be left out, or be that of ``/metrics``.

    >>> snapshot_url("http://quotascope:9749")
    'http://quotascope:9749/api/v1/snapshot'

    Raises ``ConfigError`` when it is no http or https address, or holds a password, which others could see.
    """
    try:
        parts = urlsplit(text)
        has_host = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        has_host = False
    if not has_host:
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
    Where and how to ask, as a ``user`` if one is given: then with a password, for which a file takes precedence.

    Raises ``ConfigError``, and ``InvalidConnection`` for files of TLS that cannot be used.
    """
    if user is not None:
        if ":" in user:
            raise ConfigError("--exporter-user", ["must not contain a colon"])
        if password is None and password_file is None:
            raise ConfigError("--exporter-user", ["needs --exporter-password-file"])
        if password_file is not None:
            with usable("--exporter-password-file"):
                password = secret(None, password_file)
    return HttpTarget(
        url=snapshot_url(url),
        timeout_seconds=_TIMEOUT_SECONDS,
        username=user,
        password=password or "",
        tls=None if tls is None else tls.context(),
        max_bytes=_MOST_BYTES,
    )


async def read_exporter(target: HttpTarget, limits: Limits | None = None) -> Observed:
    """
    What an exporter shows now. Raises ``SourceError``.

    Args:
        target: Where it answers.
        limits: The configured quotas, where they are known better; else the exporter's.

    """
    fetch = HttpFetch(target, _HINT, _EXPORTER)
    try:
        return observed(await fetch.read(), limits)
    except SourceError as error:
        raise type(error)(f"the exporter {target.url}: {error}") from error
    finally:
        await fetch.close()


async def read_recent(target: HttpTarget) -> dict[tuple[str, str, str, str], list[float | None]]:
    """
    What an exporter remembers of the utilization of its fullest entities in steps of ``STEP_SECONDS``, the latest last.

    By quota type as labels have it, broker, user and client-id; empty where it cannot be read, as of an exporter without it.
    """
    url = URL(target.url.removesuffix(_PATH) + _RECENT_PATH)
    fetch = HttpFetch(target, _HINT, _EXPORTER)
    try:
        rows = json.loads(await fetch.read(url))["entities"]
        return {
            (row["quota_type"], row["broker"], row["user"], row["client_id"]): [
                None if value is None else float(value) for value in row["recent"]
            ]
            for row in rows
        }
    except (SourceError, ValueError, TypeError, LookupError):
        return {}
    finally:
        await fetch.close()


async def read_episodes(target: HttpTarget, query: EpisodeQuery) -> dict[str, Any]:
    """What an exporter answers at ``/api/v1/episodes``, all parts as one. Raises ``SourceError``."""
    base = f"{target.url.removesuffix(_PATH)}/api/v1/episodes"
    fetch, rows = HttpFetch(target, _HINT, _EXPORTER), list[dict[str, Any]]()
    address = query.with_values(size=MOST).address
    try:
        while True:
            part = json.loads(await fetch.read(URL(f"{base}{address}", encoded=True)))
            rows += map(dict, part["episodes"])
            if not (address := part["next"]):
                return {**part, "episodes": rows}
    except SourceError as error:
        raise type(error)(f"the exporter {base}: {error}") from error
    except (ValueError, TypeError, LookupError) as error:
        raise SourceUnreadable(f"{base}: the answer has no episodes; {_HINT}") from error
    finally:
        await fetch.close()


def observed(answer: bytes, limits: Limits | None = None) -> Observed:
    """The answer of ``/api/v1/snapshot`` as a snapshot. Raises ``SourceUnreadable`` when it is something else."""
    try:
        # not by pydantic's own parser, which refuses halves of surrogate pairs
        document = _DOCUMENT.validate_python(json.loads(answer))
        return _snapshot(document, limits)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (ValueError, KeyError, RecursionError) as error:
        reason = str(error)
    raise SourceUnreadable(f"the answer is not a snapshot of this release of quotascope ({shown(reason)}); {_HINT}")


def _snapshot(document: SnapshotDocument, known: Limits | None) -> Observed:
    health, limits, findings = document.health, known, list(document.health.findings)
    count, total = len(document.entities), document.entities_total
    if count < total:
        findings.append(Catalog.API_ENTITIES_CUT.found(count=count, total=total))
    if known is None and health.limits_known:
        if len(document.rules) == document.rules_total:
            limits = _limits(document)
        else:
            findings.append(Catalog.API_RULES_CUT.found(total=document.rules_total))
    callback = any(node.quota_callback for node in health.nodes)
    tables = deciding(known, callback_seen=callback)
    usages = (_usage(entity) for entity in document.entities)
    if known is not None:
        usages = (replace(usage, entity=limited(usage.entity, tables)) for usage in usages)
    snapshot = Snapshot(
        taken_at=health.taken_at,
        shown=Columns.of(usages),
        unsent=total - count,
        nodes=tuple(
            NodeUsage(
                broker=node.broker,
                quota_callback=node.quota_callback,
                static_limits={
                    _TYPES[label]: inf if bound is None else bound for label, bound in node.callback_limits.items()
                },
                delay_queue_size={
                    _TYPES[label]: size for label, size in node.delay_queue_size.items() if size is not None
                },
                load=NodeLoad(handlers_idle=node.request_handler_idle),
                connections=ConnectionUsage(
                    ips={ip: LimitedRate(rate=rate) for ip, rate in document.connections.get(node.broker, {}).items()}
                ),
            )
            for node in health.nodes
        ),
        sources=tuple(health.sources),
        limits=limits,
        limits_health=health.limits,
        shadows=tuple(map(_shadow, document.shadows)),
    )
    return snapshot, findings


def _shadow(given: ShadowDocument) -> Shadow:
    places = {(_TYPES[each.quota_type], each.broker): each for each in given.counts}
    return Shadow(
        name=given.name,
        entities=tuple(map(_usage, given.entities)),
        evaluated={place: each.evaluated for place, each in places.items()},
        throttled={place: each.throttled for place, each in places.items()},
        unevaluated={(_TYPES[each.quota_type], each.broker, each.reason): each.entities for each in given.unevaluated},
    )


def _usage(given: EntityDocument) -> EntityUsage:
    kind, rule = _TYPES[given.quota_type], None
    if given.rule is not None:
        level = Level(given.rule["level"])
        entity = _entity(level, given.rule["user"], given.rule["client_id"])
        percent = 100 if kind is QuotaType.REQUEST else 1
        bound = None if given.limit is None else given.limit * percent
        rule = Resolution(level=level, entity=entity, bound=bound)
    elif LimitState(given.limit_state) is LimitState.UNLIMITED:
        rule = NO_RULE
    return EntityUsage(
        entity=Entity(
            broker=given.broker,
            quota_type=kind,
            user=given.user,
            client_id=given.client_id,
            resolution=rule,
            limit=given.limit,
            burst_tokens=given.burst_tokens,
        ),
        usage=given.usage,
        throttle_time_seconds=given.throttle_time_seconds,
        tokens=given.tokens,
        cause=None if given.cause is None else ThrottleCause(given.cause),
    )


def _limits(document: SnapshotDocument) -> Limits:
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
        read_at=health.limits.read_at or health.taken_at,
    )


def _entity(level: Level, user: str, client_id: str) -> QuotaEntity:
    """The level separates a default from an entity that has its name."""
    of_user: Name | None = DEFAULT if level in _DEFAULT_USER else user or None
    of_client: Name | None = DEFAULT if level in _DEFAULT_CLIENT else client_id or None
    return QuotaEntity(of_user, of_client)
