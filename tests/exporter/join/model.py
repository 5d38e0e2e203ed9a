"""
The join written straight from its definition: naive, slow, and with a memory of nothing that the definition does not need.

It shares no code with the join: names of beans, units, precedence and times stand here once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan, nan
from typing import Final, TypeVar
from urllib.parse import unquote

from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import Bean, BeanTable
from quotascope.exporter.snapshot import Entity, EntityUsage, ThrottleCause
from quotascope.metrics import DEFAULT, Level, QuotaEntity, QuotaType, Resolution

_Key = TypeVar("_Key")

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
TYPES: Final = {
    "Produce": PRODUCE,
    "Fetch": FETCH,
    "Request": REQUEST,
    "ControllerMutation": MUTATION,
}
USED: Final = {
    PRODUCE: "byte-rate",
    FETCH: "byte-rate",
    REQUEST: "request-time",
    MUTATION: "mutation-rate",
}
OF_ENTITIES: Final = {"throttle-time", "throttle-time-total", "throttle-count"}
MINUTE: Final = 60.0

Tags = tuple[QuotaType, str, str]
Rules = Mapping[QuotaEntity, float]


@dataclass(kw_only=True)
class Seen:
    """One node's table by what its columns are about; of two columns that say the same the later one counts."""

    node_id: str
    entities: dict[Tags, dict[str, float]] = field(default_factory=dict)
    callbacks: dict[tuple[QuotaType, tuple[tuple[str, str], ...]], dict[str, float]] = field(default_factory=dict)
    queues: dict[QuotaType, float] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    events: dict[str, float] = field(default_factory=dict)
    exempt: float = nan
    leads: float = nan
    started_at: float = nan

    @classmethod
    def of(cls, table: BeanTable) -> Seen:
        seen = cls(node_id=table.node_id)
        for column, value in zip(table.layout.columns, table.values, strict=True):
            seen._take(column.bean, column.attribute, value)
        return seen

    def _take(self, bean: Bean, attribute: str, value: float) -> None:
        names = dict(bean.properties)
        kind = names.pop("type")
        name = names.get("name", "")
        match bean.domain, kind, attribute:
            case "kafka.network", "RequestMetrics", "Mean" | "Count" if name == "ThrottleTimeMs":
                into = self.means if attribute == "Mean" else self.counts
                into[names["request"]] = value
            case "kafka.network", "RequestMetrics", "Count":
                self.errors[names["request"]] = value
            case "kafka.controller", "KafkaController", _:
                self.leads = value
            case "kafka.controller", "ControllerEventManager", _:
                self.events[attribute] = value
            case "kafka.server", "app-info", _:
                self.started_at = value
            case "kafka.server", _, _ if kind in TYPES:
                self._take_quota(TYPES[kind], names, attribute, value)

    def _take_quota(self, kind: QuotaType, names: dict[str, str], attribute: str, value: float) -> None:
        if attribute == "queue-size":
            self.queues[kind] = value
        elif attribute == "exempt-request-time":
            self.exempt = value
        elif names.keys() <= {"user", "client-id"}:
            of_kind = {"quota-utilization"}
            if kind is MUTATION:
                of_kind = {"tokens", "refusal-count"}
            if attribute in {USED[kind], *OF_ENTITIES, *of_kind}:
                tags = kind, unquote(names.get("user", "")), names.get("client-id", "")
                self.entities.setdefault(tags, {})[attribute] = value
        else:
            tags_of_callback = kind, tuple(sorted(names.items()))
            self.callbacks.setdefault(tags_of_callback, {})[attribute] = value


@dataclass(kw_only=True)
class Expected:
    entities: list[EntityUsage] = field(default_factory=list)
    nodes: list[dict[str, object]] = field(default_factory=list)
    tagged: list[EntityUsage] = field(default_factory=list)
    left_out: tuple[str, ...] = ()


class Model:
    """Recomputes each snapshot from scratch, but for what its definition says of moments before."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Limits | None, Seen, float]] = {}
        """What each node said, under which rules and when: a bean that no rule explains counts while it rises."""
        self._rose: dict[tuple[str, Tags], float] = {}
        self._indebted: dict[tuple[str, str], float] = {}
        self._mutating: dict[tuple[str, str], float] = {}
        self._at_limit: dict[tuple[str, str, str], float] = {}
        self._totals: dict[str, tuple[float, float, dict[str, tuple[float, float]]]] = {}
        """When each node was read and started, and its sums, which do not go back."""

    def snapshot(self, tables: Sequence[BeanTable], limits: Limits | None, at: float) -> Expected:
        nodes = [Seen.of(table) for table in tables]
        custom = limits is not None and any(each.quota_callback_class for each in limits.nodes.values())
        rules = None if custom or any(seen.callbacks for seen in nodes) else limits
        self._rose = _kept(self._rose, at)
        self._indebted = _kept(self._indebted, at)
        self._mutating = _kept(self._mutating, at)
        self._at_limit = _kept(self._at_limit, at)
        expected = Expected()
        leaders = _leaders(nodes, limits)
        for seen in nodes:
            shown, stale = [], dict.fromkeys(QuotaType, 0)
            for tags in sorted(seen.entities, key=_order):
                if leaders[seen.node_id] is False and tags[0] is MUTATION:
                    stale[MUTATION] += 1
                elif self._counts(seen, tags, rules, at):
                    shown.append(_usage(seen, tags, rules))
                else:
                    stale[tags[0]] += 1
            expected.entities += shown
            stale_known = rules is not None
            expected.nodes.append(
                {
                    **self._node(seen, limits, at),
                    "stale_entities": stale
                    if stale_known
                    else {MUTATION: stale[MUTATION]}
                    if leaders[seen.node_id] is False
                    else {},
                    "utilization_disagreements": _disagreements(shown) if rules else None,
                }
            )
        self._find_causes(expected.entities, rules, at, known=True in leaders.values())
        keys = sorted({key for seen in nodes for _, tags in seen.callbacks for key, _ in tags})
        expected.tagged = _callbacks(nodes, keys[:10])
        expected.left_out = tuple(keys[10:])
        expected.entities.sort(key=_place)
        for usage in expected.entities:
            if usage.reported_utilization is not None and isnan(usage.reported_utilization):
                usage.reported_utilization = None
        for seen in nodes:
            self._last[seen.node_id] = rules, seen, at
        for node_id, (*_, then) in tuple(self._last.items()):
            if abs(at - then) > 5 * MINUTE:
                del self._last[node_id]
        return expected

    def _counts(self, seen: Seen, tags: Tags, limits: Limits | None, at: float) -> bool:
        if limits is None:
            return True
        kind, user, client_id = tags
        rules: Rules = limits.rules.get(kind, {})
        explained = _explained(rules, user, client_id)
        if explained and rules:
            return True
        numbers = seen.entities[tags]
        throttle = numbers.get("throttle-time", nan)
        mutations = limits.rules.get(MUTATION)
        if explained and kind is REQUEST and mutations and isfinite(throttle):
            return True
        before, last, _ = self._last.get(seen.node_id, (None, None, 0.0))
        place = seen.node_id, tags
        if last is None or not _same_rules(before, limits):
            self._rose.pop(place, None)
        else:
            earlier = last.entities.get(tags, {})
            samples = 2 if kind is MUTATION else 11
            rate = numbers.get(USED[kind], nan)
            idle = _at_least_zero(earlier.get(USED[kind], nan)) * (samples / (samples - 1) + 1e-9)
            was = _at_least_zero(earlier.get("throttle-time", nan))
            if rate > idle or throttle > was:
                self._rose[place] = at
        return place in self._rose

    def _node(self, seen: Seen, limits: Limits | None, at: float) -> dict[str, object]:
        read_at, started_at, sums = self._totals.get(seen.node_id, (at, nan, {}))
        if abs(at - read_at) > 60 * MINUTE or not _same(started_at, seen.started_at):
            sums = {}
        self._totals[seen.node_id] = at, seen.started_at, sums
        settings = limits.nodes.get(seen.node_id) if limits else None
        custom = settings.quota_callback_class is not None if settings else None
        leads = seen.leads > 0 if isfinite(seen.leads) else None
        events = [seen.events.get(name, nan) for name in ("Mean", "Count")]
        reported = leads and all(map(isfinite, events))
        throttled = {
            request: _sum(sums, request, mean, seen.counts[request])
            for request, mean in seen.means.items()
            if request not in {"FetchConsumer", "FetchFollower"}
            and isfinite(mean)
            and isfinite(seen.counts.get(request, nan))
            and seen.counts[request] > 0
        }
        throttled = {
            request: total
            for request, total in throttled.items()
            if total > 0 or request not in {"CreateTopics", "DeleteTopics"}
        }
        return {
            "broker": seen.node_id,
            "quota_callback": bool(seen.callbacks) or custom,
            "delay_queue_size": _finite(seen.queues),
            "exempt_request_threads": seen.exempt / 100 if isfinite(seen.exempt) else None,
            "throttling_errors": _finite(seen.errors),
            "request_throttled_seconds": throttled,
            "active_controller": leads,
            "controller_events": events[1] if reported else None,
            "controller_event_queue_seconds": _sum(sums, "", *events) if reported else None,
        }

    def _find_causes(self, usages: Sequence[EntityUsage], limits: Limits | None, at: float, *, known: bool) -> None:
        for usage in usages:
            entity = usage.entity
            pair = entity.user, entity.client_id
            if entity.quota_type is MUTATION:
                indebted = usage.tokens is not None and usage.tokens < 0
                if indebted:
                    self._indebted[pair] = at
                if indebted or usage.usage is None or usage.usage > 0:
                    self._mutating[pair] = at
            elif entity.quota_type is REQUEST and (usage.used or 0) >= 1:
                self._at_limit[entity.broker, *pair] = at
        for usage in usages:
            if usage.throttled:
                usage.cause = self._cause(usage, limits, known=known)

    def _cause(  # noqa: PLR0911 - one for each rule of the definition
        self, usage: EntityUsage, limits: Limits | None, *, known: bool
    ) -> ThrottleCause:
        entity = usage.entity
        pair = entity.user, entity.client_id
        if entity.quota_type is not REQUEST:
            return ThrottleCause.OWN
        settings = limits.nodes.get(entity.broker) if limits else None
        if settings and (usage.throttle_time_seconds or 0) > settings.quota_window_seconds:
            return ThrottleCause.CONTROLLER_MUTATION
        if (entity.broker, *pair) in self._at_limit:
            return ThrottleCause.OWN
        for debtor in self._indebted:
            common = any(a and a == b for a, b in zip(debtor, pair, strict=True))
            if common and _overlap(debtor, pair):
                return ThrottleCause.CONTROLLER_MUTATION
        if limits is not None:
            ruled = [
                tuple(name if isinstance(name, str) else "" for name in (rule.user, rule.client_id))
                for rule in limits.rules.get(MUTATION, {})
            ]
            if not any(_overlap(rule, pair) for rule in ruled):
                return ThrottleCause.UNKNOWN if entity.limit is None else ThrottleCause.OWN
            if entity.limit is None:
                return ThrottleCause.CONTROLLER_MUTATION
        if known and not any(_overlap(each, pair) for each in self._mutating):
            return ThrottleCause.OWN
        return ThrottleCause.UNKNOWN


def _usage(seen: Seen, tags: Tags, limits: Limits | None) -> EntityUsage:
    kind, user, client_id = tags
    divisor = 100.0 if kind is REQUEST else 1.0
    rule = _deciding(limits.rules.get(kind, {}), user, client_id) if limits else None
    limit = burst = None
    if limits and rule and isfinite(limits.rules[kind][rule]):
        limit = limits.rules[kind][rule] / divisor
        if kind is MUTATION:
            nodes = limits.nodes
            known = nodes.get(seen.node_id) or next(iter(nodes.values()), NodeSettings())
            burst = limit * (known.controller_quota_samples * known.controller_quota_window_seconds)
    numbers = _finite(seen.entities[tags])
    usage = EntityUsage(
        entity=Entity(
            broker=seen.node_id,
            quota_type=kind,
            user=user,
            client_id=client_id,
            resolution=None
            if limits is None
            else Resolution(
                level=rule.level if rule else Level.NONE, entity=rule, bound=limits.rules[kind][rule] if rule else None
            ),
            limit=limit,
            burst_tokens=burst,
        ),
        usage=numbers[USED[kind]] / divisor if USED[kind] in numbers else None,
        throttle_time_seconds=numbers.get("throttle-time", 0.0) / 1000
        if "throttle-time" in numbers
        or (
            "throttle-time" in seen.entities[tags]
            and (kind is not MUTATION or "throttle-time-total" in seen.entities[tags])
        )
        else None,
        throttled_seconds_total=numbers["throttle-time-total"] / 1000 if "throttle-time-total" in numbers else None,
        throttled_requests_total=numbers.get("throttle-count"),
        refused_mutations_total=numbers.get("refusal-count"),
    )
    tokens = numbers.get("tokens")
    if tokens is not None and tokens < 9e15 and (limits is None or limit is not None):
        usage.tokens = tokens
    if "quota-utilization" in seen.entities[tags]:
        reported = numbers.get("quota-utilization")
        usage.reported_utilization = nan if reported is None else reported / 100
    return usage


def _callbacks(nodes: Sequence[Seen], keys: Sequence[str]) -> list[EntityUsage]:
    """One for all that differ in none of these tags: usages added up, the least first, and the longest throttle."""
    found: dict[tuple[object, ...], EntityUsage] = {}
    amounts: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for seen in nodes:
        for (kind, tags), given in seen.callbacks.items():
            numbers = _finite(given)
            values = tuple(dict(tags).get(key, "") for key in keys)
            place = _node_place(seen.node_id), kind.label, values
            usage = found.setdefault(
                place,
                EntityUsage(
                    entity=Entity(
                        broker=seen.node_id, quota_type=kind,
                        user="", client_id="", tags=values
                    ),
                    throttle_time_seconds=None
                )
            )  # fmt: skip
            if USED[kind] in numbers:
                unit = 100.0 if kind is REQUEST else 1.0
                amounts[place].append(numbers[USED[kind]] / unit)
                usage.usage = sum(sorted(amounts[place]))
            if "throttle-time" in (numbers if kind is MUTATION else given):
                wait = numbers.get("throttle-time", 0.0) / 1000
                known = usage.throttle_time_seconds
                usage.throttle_time_seconds = wait if known is None else max(wait, known)
    return [usage for _, usage in sorted(found.items(), key=lambda each: each[0])]


def _leaders(nodes: Sequence[Seen], limits: Limits | None) -> dict[str, bool | None]:
    reported = {seen.node_id: seen.leads > 0 if isfinite(seen.leads) else None for seen in nodes}
    leader = limits.active_controller if limits else None
    return {
        node_id: says
        if says is not None
        else False
        if True in reported.values()
        else None
        if leader is None
        else node_id == leader
        for node_id, says in reported.items()
    }


def _disagreements(usages: Sequence[EntityUsage]) -> int | None:
    reported = [usage for usage in usages if usage.reported_utilization is not None]
    if not reported:
        return None
    differ = 0
    for usage in reported:
        theirs, ours = usage.reported_utilization or 0.0, usage.utilization
        if usage.usage is None:
            continue
        if not isfinite(theirs) or ours is None:
            differ += isfinite(theirs) is not (ours is not None)
        else:
            differ += abs(theirs - ours) > 0.02 * max(1.0, abs(theirs))
    return differ


def _deciding(rules: Rules, user: str, client_id: str) -> QuotaEntity | None:
    """The strongest rule of the tags' own shape."""
    users = (user, DEFAULT) if user else (None,)
    clients = (client_id, DEFAULT) if client_id else (None,)
    if not user and not client_id:
        return None
    candidates = (QuotaEntity(who, what) for who in users for what in clients)
    return next((each for each in candidates if each in rules), None)


def _explained(rules: Rules, user: str, client_id: str) -> bool:
    """Whether some request would be measured under these tags."""
    named = {name for rule in rules for name in (rule.user, rule.client_id) if isinstance(name, str)}
    users = {user} if user else {*named, "one more"} - {""}
    clients = {client_id} if client_id else {*named, "one more", ""}
    return any(_tags(rules, who, what) == (user, client_id) for who in users for what in clients)


def _tags(rules: Rules, user: str, client_id: str) -> tuple[str, str]:
    by_user = any(rule.user is not None and rule.client_id is None for rule in rules)
    by_pair = any(rule.user is not None and rule.client_id is not None for rule in rules)
    by_client = any(rule.user is None for rule in rules)
    if by_user + by_pair + by_client <= 1:
        return user if by_user or by_pair else "", "" if by_user else client_id
    for who in (user, DEFAULT):
        if QuotaEntity(who, client_id) in rules or QuotaEntity(who, DEFAULT) in rules:
            return user, client_id
        if QuotaEntity(who) in rules:
            return user, ""
    return "", client_id


def _same_rules(one: Limits | None, other: Limits | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.rules == other.rules and one.nodes == other.nodes


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    return all(not a or not b or a == b for a, b in zip(one, other, strict=True))


def _sum(sums: dict[str, tuple[float, float]], name: str, mean: float, count: float) -> float:
    total = float(round(mean * count))
    last_count, last_total = sums.get(name, (0.0, 0.0))
    sums[name] = count, max(total, last_total) if count >= last_count else total
    return sums[name][1] / 1000


def _kept(recent: Mapping[_Key, float], at: float) -> dict[_Key, float]:
    return {key: then for key, then in recent.items() if abs(at - then) <= MINUTE}


def _finite(numbers: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: value for key, value in numbers.items() if isfinite(value)}


def _at_least_zero(value: float) -> float:
    return max(value, 0.0) if value == value else 0.0  # noqa: PLR0124 - NaN is unequal to itself


def _same(one: float, other: float) -> bool:
    return one == other or not (isfinite(one) or isfinite(other))


def _order(tags: Tags) -> tuple[int, str, str]:
    return list(QuotaType).index(tags[0]), *tags[1:]


def _place(usage: EntityUsage) -> tuple[object, ...]:
    entity = usage.entity
    tags = entity.quota_type, entity.user, entity.client_id
    return (*_order(tags), _node_place(entity.broker))


def _node_place(node_id: str) -> tuple[int, str]:
    return (int(node_id) if node_id.isdecimal() else -1, node_id)
