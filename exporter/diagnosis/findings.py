"""The findings that a snapshot leads to: what keeps it from showing more, and what is in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Final

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW
from quotascope.pages.words import counted

from ..limits import QUOTA_KEYS, Limits
from ..snapshot import Snapshot, SourceHealth, SourceRead
from ..untrusted import shown
from .catalog import Catalog, Finding, FindingSeverity
from .explain import overruling
from .rule_usage import RuleUsage, rule_usage
from .selection import Order, Selection, Show, in_order, matching
from .units import amount, entity_name, measured, type_name

_EXAMPLES: Final = 3
_BYTES: Final = frozenset({QuotaType.PRODUCE, QuotaType.FETCH})
HARDLY_IDLE: Final = 0.1
"""The idle share of request handlers below which requests wait; that of the alert on it."""
_IDLED_S: Final = 15.0
"""For how long handlers have to have been idle since a node's start: before that, their mean over a minute is mostly of the start."""
_MUCH_TRAFFIC: Final = 10e6
"""Bytes/s from which shares are compared: a tenth of a 1 Gbit/s network."""
_SEVERAL_USERS: Final = 3
"""One of two users always has most."""
_MOST: Final = 0.8
_DIALECT_GAPS: Final = {
    "kafka_2_0_0": "no delay queues, exempt request time, new connections or replication",
    "confluent": "no controller mutation quotas, delay queues, exempt request time, new connections or replication",
}
"""What dialects leave out however the agent is configured; docs/dialects.md has the whole table."""


def diagnose(snapshot: Snapshot) -> list[Finding]:
    """What is wrong or missing, and what to do: for ``status``, ``top``, the page, the API and the log."""
    parts = (
        _exporter(snapshot),
        _sources(snapshot),
        discovery_findings(snapshot),
        _limits(snapshot),
        _measured(snapshot),
        _folded(snapshot),
        _nodes(snapshot),
    )
    problems = FindingSeverity.WARNING, FindingSeverity.ERROR
    return [each for each in chain.from_iterable(parts) if each.severity in problems]


def quota_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Whether quotas are configured, which decide, and whether clients are measured under them; nothing when no source can be read."""
    if not any(source.up for source in snapshot.sources):
        return
    limits = snapshot.limits
    problems = [*_measured(snapshot), *_folded(snapshot), *_nodes(snapshot)]
    yield from problems
    if not problems:
        counts = {} if limits is None else {k: limits.count(k) for k in QUOTA_KEYS}
        named = ", ".join(f"{count} of {key}" for key, count in counts.items() if count)
        unnamed = "no limit is configured" if counts else "the limits are unknown"
        text = f"limits: {named}" if named else unnamed
        yield Catalog.QUOTAS_MEASURED.found(count=len(snapshot.measured), limits=text)
    if limits is not None:
        if not callback_classes(snapshot):
            yield Catalog.RULES_DECIDE.found()
        rules = rule_usage(limits, snapshot)
        idle = [rule for rule in rules if rule.hits == ()]
        overruled = [rule for rule in idle if rule.overruled_by is not None]
        rest = [rule for rule in idle if rule.overruled_by is None]
        if overruled:
            yield Catalog.LIMITS_OVERRULED.found(count=len(overruled), total=len(rules), examples=_examples(overruled))
        if rest and snapshot.measured:
            yield Catalog.LIMITS_UNUSED.found(count=len(rest), total=len(rules), examples=_examples(rest))
    yield from _one_user(snapshot)


def agent_findings(reads: Iterable[SourceRead], limits: Limits | None, *, discovers: bool = False) -> Iterator[Finding]:
    """Whether each agent can be read, which dialect it speaks, and what it leaves out; ``discovers`` is whether agents are looked for."""
    none = True
    mutations = limits.count(QuotaType.CONTROLLER_MUTATION.quota_key) if limits else 0
    for read in reads:
        none, source, table = False, read.health, read.table
        if source.up and source.stand_by_of is not None:
            node = source.stand_by_of
            yield Catalog.SOURCE_STANDS_BY.found(source.name, node=node)
        elif table is not None:
            yield Catalog.SOURCE_READ.found(
                source.name,
                node=table.node_id,
                dialect=source.dialect,
                count=source.readings,
                seconds=source.duration_seconds,
            )
        else:
            yield _unreadable(source)
        if table is None:
            continue
        if table.remark is not None:
            yield _incomplete(source, table.remark)
        types = {column.bean.get("type") for column in table.layout.columns if column.attribute == "queue-size"}
        unseen = [kind for kind in QuotaType if kind.group not in types]
        missing = _DIALECT_GAPS.get(source.dialect)
        if missing is not None:
            wanted = mutations and "mutation" in missing
            entry = Catalog.DIALECT_GAPS_MATTER if wanted else Catalog.DIALECT_GAPS
            yield entry.found(source.name, dialect=source.dialect, missing=missing, count=mutations)
        elif unseen:
            names = ", ".join(map(type_name, unseen))
            yield Catalog.SOURCE_WITHOUT_QUEUES.found(source.name, types=names)
    if none:
        yield (Catalog.NO_SOURCE_FOUND if discovers else Catalog.NO_SOURCE).found()


def discovery_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Whether each kind of discovery finds nodes."""
    for each in snapshot.discoveries:
        if each.error is None:
            yield Catalog.DISCOVERY_WORKS.found(each.name, count=each.targets)
        else:
            yield Catalog.DISCOVERY_FAILED.found(each.name, error=each.error, count=each.targets)


def callback_classes(snapshot: Snapshot) -> Mapping[str, str | None]:
    """The custom quota callback of each node that has one, by node id; None where only the tags of its beans show one."""
    found: dict[str, str | None] = {node.broker: None for node in snapshot.nodes if node.quota_callback}
    return found if snapshot.limits is None else found | overruling(snapshot.limits)


def _exporter(snapshot: Snapshot) -> Iterator[Finding]:
    reload = snapshot.reload
    if reload is not None and reload.error is not None:
        yield Catalog.RELOAD_FAILED.found(error=reload.error)
    if reload is not None and reload.needs_restart:
        yield Catalog.RESTART_NEEDED.found(fields=", ".join(reload.needs_restart))
    for name, count in snapshot.restarts.items():
        if count:
            times = "once" if count == 1 else f"{count} times"
            yield Catalog.TASK_RESTARTED.found(name, times=times)


def _sources(snapshot: Snapshot) -> Iterator[Finding]:
    if not snapshot.sources:
        wanted = bool(snapshot.discoveries)
        yield (Catalog.NO_SOURCE_FOUND if wanted else Catalog.NO_SOURCE).found()
    for source in snapshot.sources:
        if not source.up:
            yield _unreadable(source)
            continue
        if source.late and source.read_at is not None:
            age = max(0.0, snapshot.taken_at - source.read_at)
            yield Catalog.SOURCE_LATE.found(source.name, dialect=source.dialect, age=age)
        if source.remark is not None:
            yield _incomplete(source, source.remark)


def _unreadable(source: SourceHealth) -> Finding:
    return Catalog.SOURCE_UNREADABLE.found(source.name, dialect=source.dialect, error=source.error)


def _incomplete(source: SourceHealth, remark: str) -> Finding:
    return Catalog.SOURCE_INCOMPLETE.found(source.name, dialect=source.dialect, remark=remark)


def _limits(snapshot: Snapshot) -> Iterator[Finding]:
    health, limits = snapshot.limits_health, snapshot.limits
    age, seconds = "", health.age_seconds(snapshot.taken_at)
    if limits is not None and seconds is not None:
        age = f" (the limits shown are {seconds:.0f} s old)"
    if not health.configured:
        yield Catalog.NO_ADMIN_API.found()
    elif health.denied:
        yield Catalog.LIMITS_DENIED.found(error=health.error, age=age)
    elif health.error is not None:
        yield Catalog.LIMITS_UNREACHABLE.found(error=health.error, age=age)
    for what, reason in limits.missing.items() if limits else ():
        yield Catalog.LIMITS_INCOMPLETE.found(what, reason=reason)


def _measured(snapshot: Snapshot) -> Iterator[Finding]:
    """Why no entity is measured, where none is although a source can be read."""
    measured, limits = snapshot.measured or snapshot.shown.tagged, snapshot.limits
    if measured or not any(source.up for source in snapshot.sources):
        return
    rules = None
    if limits is not None and not callback_classes(snapshot):
        rules = sum(limits.count(kind.quota_key) for kind in QuotaType)
    stale = sum(sum(node.stale_entities.values()) for node in snapshot.nodes)
    if rules == 0:
        yield Catalog.NO_QUOTA.found()
    elif stale:
        yield Catalog.ONLY_STALE_BEANS.found(count=stale)
    else:
        known = "" if rules is None else f" (configured for clients: {counted(rules, 'rule')})"
        yield Catalog.NO_TRAFFIC.found(rules=known)
        for source in snapshot.sources:
            if source.up and source.hint is not None:
                yield Catalog.SOURCE_WITHOUT_ENTITIES.found(source.name, dialect=source.dialect, hint=source.hint)


def _folded(snapshot: Snapshot) -> Iterator[Finding]:
    """What the metrics show only as a sum, or not at all, to bound the number of series."""
    folds, callbacks = snapshot.folds, snapshot.callbacks
    for finding, crowded in (
        (Catalog.ENTITIES_FOLDED, folds.crowded),
        (Catalog.CALLBACK_ENTITIES_FOLDED, callbacks.crowded),
    ):
        if crowded:
            counts = (f"{count} of {kind.label}" for kind, count in crowded.items())
            yield finding.found(counts=", ".join(counts), most=folds.max_entities, overflow=OVERFLOW)
    if snapshot.measured and not snapshot.entities:
        yield Catalog.ENTITIES_LEFT_OUT.found(count=len(snapshot.measured), excluded=folds.excluded, idle=folds.idle)
    if callbacks.left_out:
        tags = ", ".join(map(shown, callbacks.left_out))
        yield Catalog.CALLBACK_TAGS_LEFT_OUT.found(tags=tags)


def _nodes(snapshot: Snapshot) -> Iterator[Finding]:
    """Nodes that decide by themselves, are missing, or contradict the configured limits."""
    limits = snapshot.limits
    if limits is not None and limits.rules.get(QuotaType.CONTROLLER_MUTATION):
        leader, nodes = limits.active_controller, {n.broker for n in snapshot.nodes}
        if leader is not None and nodes and leader not in nodes:
            yield Catalog.CONTROLLER_NOT_READ.found(leader)
    static = {node.broker for node in snapshot.nodes if node.static_limits}
    for node_id, name in callback_classes(snapshot).items():
        if node_id not in static:
            callback = name or "a custom callback"
            yield Catalog.CALLBACK_DECIDES.found(node_id, callback=callback)
    for node in snapshot.nodes:
        if node.static_limits:
            shares = [
                f"{amount(kind, bound)} of {kind.label}"
                for kind, bound in node.static_limits.items()
                if isfinite(bound)
            ]
            limits_text = ", ".join(shares) or "no limit"
            yield Catalog.STATIC_LIMITS.found(node.broker, limits=limits_text)
        if node.throttle_factor is not None and node.throttle_factor < 1:
            yield Catalog.STORAGE_THROTTLED.found(node.broker, factor=node.throttle_factor)
        idled_s = node.load.handlers_idle_seconds
        if node.load.idle is not None and node.load.idle < HARDLY_IDLE and (idled_s is None or idled_s >= _IDLED_S):
            yield Catalog.NODE_SATURATED.found(
                node.broker, idle=node.load.idle, clients=_most_request_time(snapshot, node.broker)
            )
        if node.utilization_disagreements:
            yield Catalog.UTILIZATION_DIFFERS.found(node.broker, count=node.utilization_disagreements)


def _most_request_time(snapshot: Snapshot, broker: str) -> str:
    of_node = Selection(order=Order.USAGE, show=Show.ALL, quota_type=QuotaType.REQUEST, broker=broker)
    found = matching(snapshot.measured, of_node)
    clients = [
        f"{shown(entity_name(each.entity.user, each.entity.client_id))} {measured(QuotaType.REQUEST, each.usage)}"
        for each in in_order(found, of_node, _EXAMPLES)
        if each.usage is not None
    ]
    return ", ".join(clients) or "unknown, since no request quota lets Kafka measure it"


def _one_user(snapshot: Snapshot) -> Iterator[Finding]:
    """A user with nearly all of the bytes, in a cluster with enough traffic and users for that to matter."""
    columns, rows = snapshot.measured.columns, snapshot.measured.rows
    by_user: dict[str, float] = defaultdict(float)
    for row in rows[columns.usage[rows] > 0]:
        entity = columns.layout.entities[row]
        if entity.quota_type in _BYTES:
            by_user[entity.user] += columns.usage[row]
    total = sum(by_user.values())
    users = by_user.keys() - {""}  # quotas of client-ids have no user
    if total > _MUCH_TRAFFIC and len(users) >= _SEVERAL_USERS:
        busiest = max(users, key=lambda user: by_user[user])
        share = by_user[busiest] / total
        if share > _MOST:
            yield Catalog.ONE_USER_HAS_TRAFFIC.found(shown(busiest), share=share, count=len(users))


def _examples(rules: Sequence[RuleUsage]) -> str:
    texts = []
    for rule in rules[:_EXAMPLES]:
        text, by = f"{rule.key} of {rule.entity.rule}", rule.overruled_by
        texts.append(text if by is None else f"{text}, overruled by {by.rule}")
    return "; ".join([*texts, "…"] if len(rules) > _EXAMPLES else texts)
