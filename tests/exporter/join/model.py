"""
The join written straight from its definition.

Naive, slow, and with a memory of nothing that the definition does not need. It shares no code with the join: names of
beans, units, precedence and times stand here once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, isnan, nan
from typing import Final, TypeVar
from urllib.parse import unquote

from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import Bean, BeanTable
from quotascope.exporter.snapshot import Entity, EntityUsage, ThrottleCause
from quotascope.metrics.kafka.entities import DEFAULT, Level, QuotaEntity, QuotaType, Resolution

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
COLUMN_OF_MEANING: Final = {"throttle-time"}
MINUTE: Final = 60.0

Tags = tuple[QuotaType, str, str]
Rules = Mapping[QuotaEntity, float]


@dataclass(kw_only=True)
class Seen:
    """The table of a node by the meanings of its columns; of two columns with one meaning the later one counts."""

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
                of_kind = {"tokens"}
            if attribute in {USED[kind], *COLUMN_OF_MEANING, *of_kind}:
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
    """A model that computes each snapshot from scratch, apart from state that its definition needs."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int | None, Seen, float]] = {}
        """
        What each node said, after how many changes of the rules (None where they did not decide) and when.

        A bean that no rule explains counts while it rises.
        """
        self._limits: Limits | None = None
        """Those that were read last."""
        self._changes = 0
        self._rose: dict[tuple[str, Tags], float] = {}
        self._indebted: dict[tuple[str, str], float] = {}
        self._mutating: dict[tuple[str, str], float] = {}
        self._debtors: dict[tuple[object, ...], float] = {}
        self._decided: dict[tuple[object, ...], set[tuple[object, ...]]] = {}
        self._at_limit: dict[tuple[str, str, str], float] = {}
        self._totals: dict[str, tuple[float, float, dict[str, tuple[float, float]]]] = {}
        """When each node was read and started, and its sums, which do not go back."""

    def snapshot(self, tables: Sequence[BeanTable], limits: Limits | None, now_seconds: float) -> Expected:
        self._follow(limits)
        nodes = [Seen.of(table) for table in tables]
        under = {seen.node_id: _rules_on(seen, limits) for seen in nodes}
        self._rose = _kept(self._rose, now_seconds)
        self._indebted = _kept(self._indebted, now_seconds)
        self._mutating = _kept(self._mutating, now_seconds)
        self._debtors = _kept(self._debtors, now_seconds)
        self._at_limit = _kept(self._at_limit, now_seconds)
        expected = Expected()
        leaders = _leaders(nodes, limits)
        for seen in nodes:
            rules = under[seen.node_id]
            counted_usages, stale = [], dict.fromkeys(QuotaType, 0)
            counted = {tags for tags in seen.entities if self._counts(seen, tags, rules, now_seconds)}
            counted -= _moved(seen, rules, leads=leaders[seen.node_id])
            for tags in sorted(seen.entities, key=_order):
                if leaders[seen.node_id] is False and tags[0] is MUTATION:
                    stale[MUTATION] += 1
                elif tags in counted:
                    counted_usages.append(_usage(seen, tags, rules))
                else:
                    stale[tags[0]] += 1
            expected.entities += counted_usages
            stale_known = rules is not None
            expected.nodes.append(
                {
                    **self._node(seen, limits, now_seconds),
                    "stale_entities": stale
                    if stale_known
                    else {MUTATION: stale[MUTATION]}
                    if leaders[seen.node_id] is False
                    else {},
                    "utilization_disagreements": _disagreements(counted_usages) if rules else None,
                }
            )
        controllers = [node for node, leads in leaders.items() if leads]
        decided = all(under[node] is not None for node in controllers or under)
        self._find_causes(
            expected.entities, limits, under, now_seconds, leader_known=bool(controllers), decided=decided
        )
        tagged = [seen for seen in nodes if not _has_none(seen.node_id, limits)]
        keys = sorted({key for seen in tagged for _, tags in seen.callbacks for key, _ in tags})
        expected.tagged = _callbacks(tagged, keys[:10])
        expected.left_out = tuple(keys[10:])
        expected.entities.sort(key=_place)
        for usage in expected.entities:
            if usage.reported_utilization is not None and isnan(usage.reported_utilization):
                usage.reported_utilization = None
        for seen in nodes:
            self._last[seen.node_id] = None if under[seen.node_id] is None else self._changes, seen, now_seconds
        for node_id, (*_, seen_at) in tuple(self._last.items()):
            if abs(now_seconds - seen_at) > 5 * MINUTE:
                del self._last[node_id]
        return expected

    def _follow(self, limits: Limits | None) -> None:
        """Count a change of the rules."""
        if limits is not None:
            self._changes += self._limits is not None and not _same_rules(self._limits, limits)
            self._limits = limits

    def _counts(self, seen: Seen, tags: Tags, limits: Limits | None, now_seconds: float) -> bool:
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
        old_changes, old_seen, _ = self._last.get(seen.node_id, (None, None, 0.0))
        place = seen.node_id, tags
        busy = _remembers(limits, seen.node_id) and numbers.get(USED[kind], nan) > 0
        if old_seen is None or old_changes != self._changes:
            self._rose.pop(place, None)
        else:
            earlier = old_seen.entities.get(tags, {})
            samples = 2 if kind is MUTATION else 11
            rate = numbers.get(USED[kind], nan)
            idle = _at_least_zero(earlier.get(USED[kind], nan)) * (samples / (samples - 1) + 1e-9)
            was = _at_least_zero(earlier.get("throttle-time", nan))
            if rate > idle or throttle > was:
                self._rose[place] = now_seconds
        return busy or place in self._rose

    def _node(self, seen: Seen, limits: Limits | None, now_seconds: float) -> dict[str, object]:
        read_at, started_at, sums = self._totals.get(seen.node_id, (now_seconds, nan, {}))
        if abs(now_seconds - read_at) > 60 * MINUTE or not _same(started_at, seen.started_at):
            sums = {}
        self._totals[seen.node_id] = now_seconds, seen.started_at, sums
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
            "quota_callback": custom,
            "overruled": _overruled(seen, limits),
            "foreign_labels": _foreign(seen) if custom is None else (),
            "delay_queue_size": _finite(seen.queues),
            "exempt_request_threads": seen.exempt / 100 if isfinite(seen.exempt) else None,
            "throttling_errors": _finite(seen.errors),
            "request_throttled_seconds": throttled,
            "active_controller": leads,
            "controller_events": events[1] if reported else None,
            "controller_event_queue_seconds": _sum(sums, "", *events) if reported else None,
        }

    def _find_causes(
        self,
        usages: Sequence[EntityUsage],
        limits: Limits | None,
        under: Mapping[str, Limits | None],
        now_seconds: float,
        *,
        leader_known: bool,
        decided: bool,
    ) -> None:
        for usage in usages:
            entity = usage.entity
            pair = entity.user, entity.client_id
            if entity.quota_type is MUTATION:
                indebted = usage.tokens is not None and usage.tokens < 0
                if indebted:
                    self._indebted[pair] = now_seconds
                    self._debtors[_place(usage)] = now_seconds
                if indebted or usage.usage is None or usage.usage > 0:
                    self._mutating[pair] = now_seconds
            elif entity.quota_type is REQUEST and (usage.used or 0) >= 1:
                self._at_limit[entity.broker, *pair] = now_seconds
        for usage in usages:
            if usage.throttled:
                ruled = decided and under[usage.entity.broker] is not None
                usage.cause = self._cause(usage, limits, leader_known=leader_known, ruled=ruled)
        rules: Rules | None = None
        if limits is not None and decided:
            rules = limits.rules.get(MUTATION) or {}
        _find_deciders(usages, rules, under, self._decided, self._debtors)

    def _cause(  # noqa: PLR0911 - one for each rule of the definition
        self, usage: EntityUsage, limits: Limits | None, *, leader_known: bool, ruled: bool
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
        if limits is not None and ruled:
            clients = [
                tuple(name if isinstance(name, str) else "" for name in (rule.user, rule.client_id))
                for rule in limits.rules.get(MUTATION, {})
            ]
            if not any(_overlap(rule, pair) for rule in clients):
                return ThrottleCause.UNKNOWN if entity.limit is None else ThrottleCause.OWN
            if entity.limit is None:
                return ThrottleCause.CONTROLLER_MUTATION
        if leader_known and not any(_overlap(mutating, pair) for mutating in self._mutating):
            return ThrottleCause.OWN
        return ThrottleCause.UNKNOWN


def _find_deciders(
    usages: Sequence[EntityUsage],
    rules: Rules | None,
    under: Mapping[str, Limits | None],
    decided: dict[tuple[object, ...], set[tuple[object, ...]]],
    debtors: Mapping[tuple[object, ...], float],
) -> None:
    """
    Give each bucket the longest request throttle that it explains.

    A bucket that explained one before has 0 when no throttle can be its own any more.
    """
    referring = set()
    buckets = [usage for usage in usages if usage.entity.quota_type is MUTATION]
    for usage in usages:
        if usage.cause is not ThrottleCause.CONTROLLER_MUTATION:
            continue
        rules_of_node = rules if under[usage.entity.broker] is not None else None
        bucket = _bucket(usage, buckets, rules_of_node, debtors)
        if bucket is not None:
            usage.decided_by = bucket.entity
            throttles = bucket.throttle_time_seconds, usage.throttle_time_seconds
            bucket.throttle_time_seconds = max(time or 0.0 for time in throttles)
            bucket.cause = ThrottleCause.OWN
            decided.setdefault(_place(bucket), set()).add(_place(usage))
            referring.add(_place(bucket))
        elif rules_of_node:
            usage.decided_by = _unmeasured(rules_of_node, *_names(usage))
    _end_decisions(usages, referring, decided)


def _end_decisions(
    usages: Sequence[EntityUsage],
    referring: Collection[tuple[object, ...]],
    decided: dict[tuple[object, ...], set[tuple[object, ...]]],
) -> None:
    usages_by_place = {_place(usage): usage for usage in usages}
    unclear = [_names(usage) for usage in usages if usage.cause is ThrottleCause.UNKNOWN]
    for place, places in tuple(decided.items()):
        if place not in usages_by_place or not places <= usages_by_place.keys():
            del decided[place]
            continue
        all_known = all(
            usages_by_place[place_of_bucket].throttle_time_seconds is not None for place_of_bucket in places
        )
        if (
            place not in referring
            and all_known
            and not any(_overlap(unclear_names, _names(usages_by_place[place])) for unclear_names in unclear)
        ):
            usages_by_place[place].throttle_time_seconds = usages_by_place[place].throttle_time_seconds or 0.0


def _bucket(
    usage: EntityUsage,
    buckets: Sequence[EntityUsage],
    rules: Rules | None,
    debtors: Mapping[tuple[object, ...], float],
) -> EntityUsage | None:
    """Return the emptiest that has one of the names, or else the only one in debt, or the only one there is."""
    pair = _names(usage)
    possible = [bucket for bucket in buckets if _overlap(_names(bucket), pair)]
    named = [bucket for bucket in possible if any(a and a == b for a, b in zip(_names(bucket), pair, strict=True))]
    if all(pair) and rules:
        named = [bucket for bucket in named if _names(bucket) == _tags(rules, *pair)] or named
    if named:
        return min(sorted(named, key=_place), key=lambda bucket: inf if bucket.tokens is None else bucket.tokens)
    rule = _unmeasured(rules, *pair) if rules else None
    for some in ([bucket for bucket in possible if _place(bucket) in debtors], possible):
        if len(some) == 1 and (rule is None or some[0].entity.resolution == rule.resolution):
            return some[0]
    return None


def _unmeasured(rules: Rules, user: str, client_id: str) -> Entity | None:
    """Return the only rule that all clients of these names can be under."""
    users = [user] if user else [*{rule.user for rule in rules if isinstance(rule.user, str)}, "", "one more"]
    clients = (
        [client_id]
        if client_id
        else [*{rule.client_id for rule in rules if isinstance(rule.client_id, str)}, "", "one more"]
    )
    usages = {}
    for who in users:
        for what in clients:
            tags = _tags(rules, who, what)
            rule = _deciding(rules, *tags)
            if rule is not None:
                usages[rule] = tags
    if len(usages) != 1:
        return None
    ((rule, tags),) = usages.items()
    tags_by_name = [tag if name else "" for tag, name in zip(tags, (user, client_id), strict=True)]
    bound = rules[rule]
    return Entity(
        broker="",
        quota_type=MUTATION,
        user=tags_by_name[0],
        client_id=tags_by_name[1],
        resolution=Resolution(level=rule.level, entity=rule, bound=bound),
        limit=bound if isfinite(bound) else None,
    )


def _names(usage: EntityUsage) -> tuple[str, str]:
    return usage.entity.user, usage.entity.client_id


def _remembers(limits: Limits, node_id: str) -> bool:
    """Before 4.2, and where a release is unknown; a controller is as old as the oldest broker."""
    releases = limits.releases
    possible_releases = [releases[node_id]] if node_id in releases else [*releases.values()]
    return not possible_releases or any(
        release.oldest is None or (release.oldest.major, release.oldest.minor) < (4, 2) for release in possible_releases
    )


def _in_force(limits: Limits, tags: Tags) -> bool:
    """Return whether rules measure clients under these tags."""
    kind, user, client_id = tags
    rules: Rules = limits.rules.get(kind, {})
    return bool(rules) and _explained(rules, user, client_id)


def _moved(seen: Seen, limits: Limits | None, *, leads: bool | None) -> set[Tags]:
    """Return the idle beans of clients that an old broker now measures under tags without a rule."""
    if limits is None or not _remembers(limits, seen.node_id):
        return set()
    busy = [
        tags
        for tags in seen.entities
        if not (leads is False and tags[0] is MUTATION)
        and seen.entities[tags].get(USED[tags[0]], nan) > 0
        and not _in_force(limits, tags)
    ]
    return {tags for tags in seen.entities if _has_moved(seen, tags, limits, busy)}


def _has_moved(seen: Seen, tags: Tags, limits: Limits, busy: Sequence[Tags]) -> bool:
    """Return whether an idle bean's clients are now measured under tags without a rule."""
    kind, user, client_id = tags
    if seen.entities[tags].get(USED[kind], nan) != 0 or _deciding(limits.rules.get(kind, {}), user, client_id):
        return False
    for other_kind, other_user, other_client in busy:
        pairs = [pair for pair in ((user, other_user), (client_id, other_client)) if all(pair)]
        if other_kind is kind and pairs and all(user == other_user for user, other_user in pairs):
            return True
    return False


def _has_none(node_id: str, limits: Limits | None) -> bool:
    """Return whether the Admin API says that a node has no callback."""
    return limits is not None and node_id in limits.nodes and limits.nodes[node_id].quota_callback_class is None


def _rules_on(seen: Seen, limits: Limits | None) -> Limits | None:
    """Return the configured quotas in force on a node."""
    return None if _overruled(seen, limits) else limits


def _overruled(seen: Seen, limits: Limits | None) -> bool:
    """Return whether a node may have a callback: its own settings count, then its beans and the other nodes."""
    if _has_none(seen.node_id, limits):
        return False
    elsewhere = limits is not None and any(settings.quota_callback_class for settings in limits.nodes.values())
    return bool(seen.callbacks) or elsewhere


def _foreign(seen: Seen) -> tuple[str, ...]:
    """Return the labels of the first bean of a callback."""
    first_callback = next(iter(seen.callbacks), None)
    return () if first_callback is None else tuple(key for key, _ in first_callback[1])[:10]


def _usage(seen: Seen, tags: Tags, limits: Limits | None) -> EntityUsage:
    kind, user, client_id = tags
    divisor = 100.0 if kind is REQUEST else 1.0
    rule = _deciding(limits.rules.get(kind, {}), user, client_id) if limits else None
    limit = burst = None
    if limits and rule and isfinite(limits.rules[kind][rule]):
        limit = limits.rules[kind][rule] / divisor
        if kind is MUTATION:
            nodes = limits.nodes
            settings = nodes.get(seen.node_id) or next(iter(nodes.values()), NodeSettings())
            burst = limit * (settings.controller_quota_samples * settings.controller_quota_window_seconds)
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
        if "throttle-time" in numbers or ("throttle-time" in seen.entities[tags] and kind is not MUTATION)
        else None,
    )
    tokens = numbers.get("tokens")
    if tokens is not None and tokens < 9e15 and (limits is None or limit is not None):
        usage.tokens = tokens
    if "quota-utilization" in seen.entities[tags]:
        reported = numbers.get("quota-utilization")
        usage.reported_utilization = nan if reported is None else reported / 100
    return usage


def _callbacks(nodes: Sequence[Seen], keys: Sequence[str]) -> list[EntityUsage]:
    """Return one usage for entities that differ in none of these tags: the sum of usages and the longest throttle."""
    usages: dict[tuple[object, ...], EntityUsage] = {}
    amounts: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for seen in nodes:
        for (kind, tags), callback_numbers in seen.callbacks.items():
            numbers = _finite(callback_numbers)
            values = tuple(dict(tags).get(key, "") for key in keys)
            place = _node_place(seen.node_id), kind.label, values
            usage = usages.setdefault(
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
            if "throttle-time" in (numbers if kind is MUTATION else callback_numbers):
                wait = numbers.get("throttle-time", 0.0) / 1000
                throttle_time = usage.throttle_time_seconds
                usage.throttle_time_seconds = wait if throttle_time is None else max(wait, throttle_time)
    return [usage for _, usage in sorted(usages.items(), key=lambda item: item[0])]


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
    """Return the strongest rule of the tags' own shape."""
    users = (user, DEFAULT) if user else (None,)
    clients = (client_id, DEFAULT) if client_id else (None,)
    if not user and not client_id:
        return None
    candidates = (QuotaEntity(who, what) for who in users for what in clients)
    return next((candidate for candidate in candidates if candidate in rules), None)


def _explained(rules: Rules, user: str, client_id: str) -> bool:
    """Return whether some request would be measured under these tags."""
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


def _same_rules(limits: Limits, other_limits: Limits) -> bool:
    return (limits.rules, limits.nodes, limits.releases) == (
        other_limits.rules,
        other_limits.nodes,
        other_limits.releases,
    )


def _overlap(pair: Sequence[str], other_pair: Sequence[str]) -> bool:
    return all(not a or not b or a == b for a, b in zip(pair, other_pair, strict=True))


def _sum(sums: dict[str, tuple[float, float]], name: str, mean: float, count: float) -> float:
    total = float(round(mean * count))
    last_count, last_total = sums.get(name, (0.0, 0.0))
    sums[name] = count, max(total, last_total) if count >= last_count else total
    return sums[name][1] / 1000


def _kept(recent: Mapping[_Key, float], now_seconds: float) -> dict[_Key, float]:
    return {key: seen_at for key, seen_at in recent.items() if abs(now_seconds - seen_at) <= MINUTE}


def _finite(numbers: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: value for key, value in numbers.items() if isfinite(value)}


def _at_least_zero(value: float) -> float:
    return max(value, 0.0) if value == value else 0.0  # noqa: PLR0124 - NaN is unequal to itself


def _same(number: float, other_number: float) -> bool:
    return number == other_number or not (isfinite(number) or isfinite(other_number))


def _order(tags: Tags) -> tuple[int, str, str]:
    return list(QuotaType).index(tags[0]), *tags[1:]


def _place(usage: EntityUsage) -> tuple[object, ...]:
    entity = usage.entity
    tags = entity.quota_type, entity.user, entity.client_id
    return (*_order(tags), _node_place(entity.broker))


def _node_place(node_id: str) -> tuple[int, str]:
    return (int(node_id) if node_id.isdecimal() else -1, node_id)
