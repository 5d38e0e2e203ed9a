"""
The join of entities written straight from its definition: naive, slow, and with a memory of nothing that the definition does not need.

It shares no code with the join: names of beans, units, precedence and times stand here once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.snapshot import Entity, EntityUsage, ThrottleCause
from quotascope.metrics import NO_RULE, QuotaRules, QuotaType

_Key = TypeVar("_Key")

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
TYPES: Final = {"Produce": PRODUCE, "Fetch": FETCH, "Request": REQUEST, "ControllerMutation": MUTATION}
USED: Final = {PRODUCE: "byte-rate", FETCH: "byte-rate", REQUEST: "request-time", MUTATION: "mutation-rate"}
OF_ENTITIES: Final = {"throttle-time", "throttle-time-total", "throttle-count"}
OF_NODES: Final = {"queue-size", "exempt-request-time"}
MINUTE: Final = 60.0

NO_RULES: Final = QuotaRules().snapshot()

Tags = tuple[QuotaType, str, str]


@dataclass(kw_only=True)
class Seen:
    """One node's table by what its columns are about; of two columns that say the same the later one counts."""

    node_id: str
    entities: dict[Tags, dict[str, float]] = field(default_factory=dict)
    leads: float = nan
    has_callback: bool = False

    @classmethod
    def of(cls, table: BeanTable) -> Seen:
        """What a table says."""
        seen = cls(node_id=table.node_id)
        for column, value in zip(table.layout.columns, table.values, strict=True):
            names = dict(column.bean.properties)
            match column.bean.domain, names.pop("type"):
                case "kafka.controller", "KafkaController":
                    seen.leads = value
                case "kafka.server", kind if kind in TYPES and column.attribute not in OF_NODES:
                    seen._take(TYPES[kind], names, column.attribute, value)
        return seen

    def _take(self, kind: QuotaType, names: dict[str, str], attribute: str, value: float) -> None:
        self.has_callback |= not names.keys() <= {"user", "client-id"}
        of_kind = {"tokens", "refusal-count"} if kind is MUTATION else {"quota-utilization"}
        if names.keys() <= {"user", "client-id"} and attribute in {USED[kind], *OF_ENTITIES, *of_kind}:
            tags = kind, unquote(names.get("user", "")), names.get("client-id", "")
            self.entities.setdefault(tags, {})[attribute] = value


class Expected(NamedTuple):
    """What a snapshot has to hold."""

    entities: list[EntityUsage]
    stale: list[dict[QuotaType, int]]
    """By node read."""


class Model:
    """Recomputes each snapshot from scratch, but for what its definition says of moments before."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Limits | None, Seen, float]] = {}
        """What each node said, under which rules and when: a bean that no rule explains counts while it rises."""
        self._rose: dict[tuple[str, Tags], float] = {}
        self._indebted: dict[tuple[str, str], float] = {}
        self._mutating: dict[tuple[str, str], float] = {}
        self._at_limit: dict[tuple[str, str, str], float] = {}

    def snapshot(self, tables: Sequence[BeanTable], limits: Limits | None, at: float) -> Expected:
        """What is to be shown at this moment."""
        nodes = [Seen.of(table) for table in tables]
        custom = limits is not None and any(each.quota_callback_class for each in limits.nodes.values())
        rules = None if custom or any(seen.has_callback for seen in nodes) else limits
        self._rose = _kept(self._rose, at)
        self._indebted = _kept(self._indebted, at)
        self._mutating = _kept(self._mutating, at)
        self._at_limit = _kept(self._at_limit, at)
        expected = Expected([], [])
        leaders = _leaders(nodes, limits)
        for seen in nodes:
            follows = leaders[seen.node_id] is False
            stale = dict.fromkeys(QuotaType, 0)
            for tags in sorted(seen.entities, key=_order):
                if (follows and tags[0] is MUTATION) or not self._counts(seen, tags, rules, at):
                    stale[tags[0]] += 1
                else:
                    expected.entities.append(_usage(seen, tags, rules))
            unruled = {MUTATION: stale[MUTATION]} if follows else {}
            expected.stale.append(unruled if rules is None else stale)
        self._find_causes(expected.entities, rules, at, known=True in leaders.values())
        expected.entities.sort(key=_place)
        for seen in nodes:
            self._last[seen.node_id] = rules, seen, at
        self._last = {name: last for name, last in self._last.items() if abs(at - last[2]) <= 5 * MINUTE}
        return expected

    def _counts(self, seen: Seen, tags: Tags, limits: Limits | None, at: float) -> bool:
        if limits is None:
            return True
        kind, user, client_id = tags
        rules = limits.rules.get(kind, NO_RULES)
        explained = rules.would_record(user, client_id)
        if explained and len(rules) > 0:
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
            elif entity.quota_type is REQUEST and (usage.utilization or 0) >= 1:
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
    resolution = limit = burst = None
    if limits:
        resolution = limits.rules.get(kind, NO_RULES).limit(user, client_id) or NO_RULE
    if limits and resolution and resolution.bound is not None:
        limit = resolution.bound / divisor
        if kind is MUTATION:
            nodes = limits.nodes
            known = nodes.get(seen.node_id) or next(iter(nodes.values()), NodeSettings())
            burst = limit * (known.controller_quota_samples * known.controller_quota_window_seconds)
    columns = seen.entities[tags]
    numbers = {name: value for name, value in columns.items() if isfinite(value)}
    measured = "throttle-time" in columns and (kind is not MUTATION or "throttle-time-total" in columns)

    def base(name: str, parts: float) -> float | None:
        return numbers[name] / parts if name in numbers else None

    usage = EntityUsage(
        entity=Entity(
            broker=seen.node_id,
            quota_type=kind,
            user=user,
            client_id=client_id,
            resolution=resolution,
            limit=limit,
            burst_tokens=burst,
        ),
        usage=base(USED[kind], divisor),
        throttle_time_seconds=base("throttle-time", 1000) if "throttle-time" in numbers or not measured else 0.0,
        throttled_seconds_total=base("throttle-time-total", 1000),
        throttled_requests_total=numbers.get("throttle-count"),
        refused_mutations_total=numbers.get("refusal-count"),
        reported_utilization=base("quota-utilization", 100),
    )
    tokens = numbers.get("tokens")
    if tokens is not None and tokens < 9e15 and (limits is None or limit is not None):
        usage.tokens = tokens
    return usage


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


def _same_rules(one: Limits | None, other: Limits | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.rules == other.rules and one.nodes == other.nodes


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    return all(not a or not b or a == b for a, b in zip(one, other, strict=True))


def _kept(recent: Mapping[_Key, float], at: float) -> dict[_Key, float]:
    return {key: then for key, then in recent.items() if abs(at - then) <= MINUTE}


def _at_least_zero(value: float) -> float:
    return max(value, 0.0) if value == value else 0.0  # noqa: PLR0124 - NaN is unequal to itself


def _order(tags: Tags) -> tuple[int, str, str]:
    return list(QuotaType).index(tags[0]), *tags[1:]


def _place(usage: EntityUsage) -> tuple[object, ...]:
    """Where the text shows it."""
    node_id, entity = usage.entity.broker, usage.entity
    number = int(node_id) if node_id.isdecimal() else -1
    return *_order((entity.quota_type, entity.user, entity.client_id)), number, node_id
