"""Finds the problems that a snapshot shows, and the things that are in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import isfinite
from typing import Final

from quotascope.metrics import catalog
from quotascope.metrics.catalog import OVERFLOW
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.pages.words import counted

from ..coverage import EntityKind
from ..limits import QUOTA_KEYS, Limits
from ..mapping import BeanColumn
from ..snapshot import Snapshot, SourceHealth, SourceRead
from ..sources.dialects import BY_NAME, Gap
from ..untrusted import shown
from .catalog import UNCERTAIN, Catalog, Finding, FindingSeverity
from .explain import overruling
from .releases import enforcement_findings, release_findings
from .rule_usage import RuleUsage, rule_usage
from .selection import Order, Selection, Show, in_order, matching
from .units import amount, entity_name, measured, type_name
from .unseen import kinds_text, label_findings, lacking_on, source_names, unit_findings, unseen_findings

_EXAMPLES: Final = 3
_MISNAMED: Final = 5
"""Misnamed rules that have a finding each."""
_IDLED_S: Final = 15.0
"""
Seconds since a node's start before the idle time of its handlers counts: until then, their mean is mostly of the start.
"""
_SEVERAL_USERS: Final = 3
"""Users with traffic from which on one with nearly all of it is worth a finding."""
_MOST: Final = 0.8
_CONNECTIONS_LACKING: Final = (
    "The agent lacks rules for kafka.server:type=socket-server-metrics,*: `quotascope rules jmx-exporter` writes them."
)
_NO_GAPS: Final[tuple[Gap, ...]] = ()


def _is_extra(column: BeanColumn) -> bool:
    """Return whether an agent shows this number only by rules beyond those that leave out delay queues."""
    return column.attribute in {"queue-size", "exempt-request-time"}


def diagnose(snapshot: Snapshot) -> list[Finding]:
    """Return the problems of a snapshot, with advice: for ``status``, ``top``, the page, the API and the log."""
    parts = (
        _exporter(snapshot),
        _sources(snapshot),
        discovery_findings(snapshot),
        _limits(snapshot),
        unseen_findings(snapshot),
        unit_findings(snapshot),
        _folded(snapshot),
        _nodes(snapshot),
    )
    problems = FindingSeverity.WARNING, FindingSeverity.ERROR
    return [
        finding for finding in chain.from_iterable(parts) if finding.severity in problems or finding.code in UNCERTAIN
    ]


def quota_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """
    Yield findings on the configured quotas, the rules that apply, and the clients that are measured under them.

    There are none if no source can be read.
    """
    if not any(source.up for source in snapshot.sources):
        return
    limits = snapshot.limits
    problems = [*unseen_findings(snapshot), *_folded(snapshot), *_nodes(snapshot)]
    yield from problems
    yield from label_findings(snapshot)
    yield from unit_findings(snapshot)
    if limits is not None:
        yield from enforcement_findings(limits)
    if not problems:
        counts = {} if limits is None else {k: limits.count(k) for k in QUOTA_KEYS}
        counts_text = ", ".join(f"{count} of {key}" for key, count in counts.items() if count)
        without_limits = "no limit is configured" if counts else "the limits are unknown"
        limits_text = f"limits: {counts_text}" if counts_text else without_limits
        yield Catalog.QUOTAS_MEASURED.found(count=len(snapshot.measured), limits=limits_text)
    if limits is not None:
        unsure = limits.settings_missing or any(node.overruled for node in snapshot.nodes)
        if not unsure and not callback_classes(snapshot):
            yield Catalog.RULES_DECIDE.found()
        yield from _idle_rules(snapshot, limits)
    yield from _one_user(snapshot)


def _idle_rules(snapshot: Snapshot, limits: Limits) -> Iterator[Finding]:
    """Yield findings about rules under which no client is measured, and about rules whose clients agents may hide."""
    rules = rule_usage(limits, snapshot)
    unused = [rule for rule in rules if rule.hits == ()]
    misnamed = {rule.misnamed.entity: rule.misnamed for rule in unused if rule.misnamed is not None}
    overruled = [rule for rule in unused if rule.overruled_by is not None]
    idle = [rule for rule in unused if rule.overruled_by is None and rule.misnamed is None]
    for problem in islice(misnamed.values(), _MISNAMED):
        yield Catalog.RULE_MISNAMED.found(problem.entity.rule, problem=problem.text, commands=problem.commands)
    if len(misnamed) > _MISNAMED:
        yield Catalog.RULES_MISNAMED.found(count=len(misnamed) - _MISNAMED)
    if overruled:
        yield Catalog.LIMITS_OVERRULED.found(count=len(overruled), total=len(rules), examples=_examples(overruled))
    if snapshot.measured:
        if idle:
            yield Catalog.LIMITS_UNUSED.found(count=len(idle), total=len(rules), examples=_examples(idle))
        yield from _hidden_rules(snapshot, rules)


def _hidden_rules(snapshot: Snapshot, rules: Sequence[RuleUsage]) -> Iterator[Finding]:
    """Yield a finding about the rules whose clients the agents of nodes that are read may hide."""
    # a node that is not read has a finding of its own
    brokers = {node.broker for node in snapshot.nodes}
    hidden = [rule for rule in rules if rule.hits is None and brokers.intersection(rule.hidden_on)]
    if not hidden:
        return
    nodes_by_kind: dict[tuple[QuotaType, EntityKind], tuple[str, ...]] = {}
    for rule in hidden:
        quota_type = QuotaType.of_quota_key(rule.key)
        if isinstance(rule.entity, QuotaEntity) and quota_type is not None:
            nodes_by_kind[quota_type, EntityKind.of_rule(rule.entity)] = rule.hidden_on
    nodes = dict.fromkeys(chain.from_iterable(rule.hidden_on for rule in hidden))
    kinds = kinds_text(nodes_by_kind) or "new connections"
    yield Catalog.LIMITS_NOT_VISIBLE.found(
        count=len(hidden),
        total=len(rules),
        examples=_examples(hidden),
        sources=f"{source_names(snapshot, nodes)} may show no {kinds}",
        rule=lacking_on(snapshot, nodes_by_kind) or _CONNECTIONS_LACKING,
    )


def agent_findings(reads: Iterable[SourceRead], snapshot: Snapshot, *, discovers: bool = False) -> Iterator[Finding]:
    """
    Yield findings on the agents: whether they can be read, their dialects, and the numbers that they leave out.

    Args:
        reads: The results of the sources.
        snapshot: The snapshot of these results.
        discovers: Whether discovery looks for agents.

    """
    limits = snapshot.limits
    has_source = False
    mutations = limits.count(QuotaType.CONTROLLER_MUTATION.quota_key) if limits else 0
    for source_read in reads:
        has_source, source, table = True, source_read.health, source_read.table
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
        dialect = BY_NAME.get(source.dialect)
        gaps = dialect.gaps if dialect else _NO_GAPS
        if Gap.DELAY_QUEUES in gaps and not any(map(_is_extra, table.layout.columns)):
            *others, last = [gap.value for gap in gaps]
            missing = f"{', '.join(others)} or {last}" if others else last
            is_needed = mutations and Gap.MUTATIONS in gaps
            entry = Catalog.DIALECT_GAPS_MATTER if is_needed else Catalog.DIALECT_GAPS
            yield entry.found(source.name, dialect=source.dialect, missing=f"no {missing}", count=mutations)
        elif unseen:
            names = ", ".join(map(type_name, unseen))
            yield Catalog.SOURCE_WITHOUT_QUEUES.found(source.name, types=names)
    if not has_source:
        yield (Catalog.NO_SOURCE_FOUND if discovers else Catalog.NO_SOURCE).found()
    yield from _unread_brokers(snapshot)


def discovery_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each kind of discovery: the nodes that it finds, or its error."""
    for discovery in snapshot.discoveries:
        if discovery.error is None:
            yield Catalog.DISCOVERY_WORKS.found(discovery.name, count=discovery.targets)
        else:
            yield Catalog.DISCOVERY_FAILED.found(discovery.name, error=discovery.error, count=discovery.targets)


def callback_classes(snapshot: Snapshot) -> Mapping[str, str | None]:
    """Return the classes of custom quota callbacks by node id; None if only the beans of a node show its callback."""
    callbacks: dict[str, str | None] = {node.broker: None for node in snapshot.nodes if node.quota_callback}
    return callbacks if snapshot.limits is None else callbacks | overruling(snapshot.limits)


def _exporter(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings on the configuration, the push and the background work of the exporter."""
    reload = snapshot.reload
    if reload is not None and reload.error is not None:
        yield Catalog.RELOAD_FAILED.found(error=reload.error)
    if reload is not None and reload.files_error is not None:
        yield Catalog.FILES_REFUSED.found(error=reload.files_error)
    if snapshot.push is not None and snapshot.push.error is not None:
        yield Catalog.PUSH_FAILS.found(error=snapshot.push.error)
    if reload is not None and reload.needs_restart:
        yield Catalog.RESTART_NEEDED.found(fields=", ".join(reload.needs_restart))
    for name, count in snapshot.restarts.items():
        if count:
            times = "once" if count == 1 else f"{count} times"
            yield Catalog.TASK_RESTARTED.found(name, times=times)


def _sources(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings on sources that fail, are late or stale, or leave something out."""
    if not snapshot.sources:
        discovers = bool(snapshot.discoveries)
        yield (Catalog.NO_SOURCE_FOUND if discovers else Catalog.NO_SOURCE).found()
    for source in snapshot.sources:
        if not source.up:
            yield _unreadable(source)
            continue
        if source.late and source.read_at is not None:
            age = max(0.0, snapshot.taken_at - source.read_at)
            yield Catalog.SOURCE_LATE.found(source.name, dialect=source.dialect, age=age)
        if source.stale and source.read_at is not None:
            age = max(0.0, snapshot.taken_at - source.read_at)
            yield Catalog.SOURCE_STALE.found(source.name, dialect=source.dialect, age=age)
        if source.remark is not None:
            yield _incomplete(source, source.remark)
    yield from _unread_brokers(snapshot)


def _unread_brokers(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding on brokers without a source, unless a source fails that may be theirs."""
    brokers = snapshot.brokers_not_read
    if brokers and snapshot.sources and not snapshot.has_failing_source:
        first_brokers = ", ".join(map(shown, brokers[:_EXAMPLES]))
        ending = ", …" if len(brokers) > _EXAMPLES else ""
        yield Catalog.BROKERS_NOT_READ.found(
            first_brokers, brokers=counted(len(brokers), "broker"), names=f"{first_brokers}{ending}"
        )


def _unreadable(source: SourceHealth) -> Finding:
    """Return the finding on a source that cannot be read."""
    return Catalog.SOURCE_UNREADABLE.found(source.name, dialect=source.dialect, error=source.error)


def _incomplete(source: SourceHealth, remark: str) -> Finding:
    """Return the finding on a source that leaves something out, as its remark says."""
    return Catalog.SOURCE_INCOMPLETE.found(source.name, dialect=source.dialect, remark=remark)


def _limits(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings on the Admin API, the configured limits and the releases of the brokers."""
    health, limits = snapshot.limits_health, snapshot.limits
    age, seconds = "", health.age_seconds(snapshot.taken_at)
    if limits is not None and seconds is not None:
        age = f" (the limits shown are {seconds:.0f} s old)"
    if not health.configured:
        yield Catalog.NO_ADMIN_API.found()
    elif health.unsupported:
        yield Catalog.LIMITS_UNSUPPORTED.found(error=health.error, age=age)
    elif health.denied:
        yield Catalog.LIMITS_DENIED.found(error=health.error, age=age)
    elif health.error is not None:
        yield Catalog.LIMITS_UNREACHABLE.found(error=health.error, age=age)
    for missing, reason in limits.missing.items() if limits else ():
        yield Catalog.LIMITS_INCOMPLETE.found(missing, reason=reason)
    if limits is not None:
        yield from release_findings(limits.releases)
        yield from enforcement_findings(limits)


def _folded(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings on entities that the metrics show only as a sum, or not at all, to bound the number of series."""
    folds, callbacks = snapshot.folds, snapshot.callbacks
    for entry, crowded in (
        (Catalog.ENTITIES_FOLDED, folds.crowded),
        (Catalog.CALLBACK_ENTITIES_FOLDED, callbacks.crowded),
    ):
        if crowded:
            counts = (f"{count} of {kind.label}" for kind, count in crowded.items())
            yield entry.found(counts=", ".join(counts), most=folds.max_entities, overflow=OVERFLOW)
    if folds.unmatched:
        yield Catalog.NAMES_UNMATCHED.found(names=counted(folds.unmatched, "name"), overflow=OVERFLOW)
    if folds.long:
        counts = (f"{count} of {kind.label}" for kind, count in folds.long.items())
        yield Catalog.NAMES_FOLDED.found(counts=", ".join(counts), most=folds.max_name_bytes, overflow=OVERFLOW)
    if snapshot.measured and not snapshot.entities:
        yield Catalog.ENTITIES_LEFT_OUT.found(count=len(snapshot.measured), excluded=folds.excluded, idle=folds.idle)
    if callbacks.left_out:
        tags = ", ".join(map(shown, callbacks.left_out))
        yield Catalog.CALLBACK_TAGS_LEFT_OUT.found(tags=tags)


def _nodes(snapshot: Snapshot) -> Iterator[Finding]:
    """
    Yield a finding on an active controller that is not read, and findings on the nodes that are read.

    A node may decide by a callback instead of the configured limits, be saturated, or contradict the limits.
    """
    limits = snapshot.limits
    if limits is not None and limits.rules.get(QuotaType.CONTROLLER_MUTATION):
        leader, nodes = limits.active_controller, {n.broker for n in snapshot.nodes}
        # a source that fails may be the controller's, and a broker that is not read has a finding of its own
        has_finding = snapshot.has_failing_source or leader in snapshot.brokers_not_read
        if leader is not None and nodes and leader not in nodes and not has_finding:
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
        factor = node.number(catalog.CALLBACK_THROTTLE_FACTOR)
        if factor is not None and factor < 1:
            yield Catalog.STORAGE_THROTTLED.found(node.broker, factor=factor)
        idle, idled_s = node.handlers_idle, node.number(catalog.REQUEST_HANDLER_IDLE_SECONDS)
        if idle is not None and idle < snapshot.thresholds.handlers_idle and (idled_s is None or idled_s >= _IDLED_S):
            yield Catalog.NODE_SATURATED.found(
                node.broker, idle=idle, clients=_most_request_time(snapshot, node.broker)
            )
        if disagreements := node.number(catalog.UTILIZATION_DISAGREEMENTS):
            yield Catalog.UTILIZATION_DIFFERS.found(node.broker, count=disagreements)


def _most_request_time(snapshot: Snapshot, broker: str) -> str:
    """Return the clients with the most request time on a broker, in a text."""
    of_node = Selection(
        near_limit=snapshot.thresholds.near_limit,
        order=Order.USAGE,
        show=Show.ALL,
        quota_type=QuotaType.REQUEST,
        broker=broker,
    )
    usages = matching(snapshot.measured, of_node)
    clients = [
        f"{shown(entity_name(usage.entity.user, usage.entity.client_id))} {measured(QuotaType.REQUEST, usage.usage)}"
        for usage in in_order(usages, of_node, _EXAMPLES)
        if usage.usage is not None
    ]
    return ", ".join(clients) or "unknown, since no request quota lets Kafka measure it"


def _one_user(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a user with nearly all of the bytes, in a cluster with enough traffic and users for that to matter."""
    columns, rows = snapshot.measured.columns, snapshot.measured.rows
    by_user: dict[str, float] = defaultdict(float)
    for row in rows[columns.usage[rows] > 0]:
        entity = columns.layout.entities[row]
        if entity.quota_type.of_bytes:
            by_user[entity.user] += columns.usage[row]
    total = sum(by_user.values())
    users = by_user.keys() - {""}  # quotas of client-ids have no user
    if total > snapshot.thresholds.heavy_bytes and len(users) >= _SEVERAL_USERS:
        busiest = max(users, key=lambda user: by_user[user])
        share = by_user[busiest] / total
        if share > _MOST:
            yield Catalog.ONE_USER_HAS_TRAFFIC.found(shown(busiest), share=share, count=len(users))


def _examples(rules: Sequence[RuleUsage]) -> str:
    """Return the first rules as a list, each with the rule that overrules it, and an ellipsis for the others."""
    texts = []
    for rule in rules[:_EXAMPLES]:
        text, overruling = f"{rule.key} of {rule.entity.rule}", rule.overruled_by
        texts.append(text if overruling is None else f"{text}, overruled by {overruling.rule}")
    return "; ".join([*texts, "…"] if len(rules) > _EXAMPLES else texts)
