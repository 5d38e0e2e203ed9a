"""The bounds written down plainly, one identity after the other: what the arrays have to come to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import fsum
from re import fullmatch

from quotascope.exporter.config import CardinalityConfig, Excluded
from quotascope.exporter.snapshot import EntityUsage
from quotascope.metrics.catalog import OVERFLOW
from quotascope.metrics.kafka.entities import QuotaType

Name = tuple[str, ...]
Pool = tuple[bool, QuotaType]
"""True if tags distinguish entities, and the quota type."""
Pressure = tuple[int, float]
Rows = list[EntityUsage]


@dataclass
class Place:
    since: float
    seen_at: float
    pressure: Pressure
    pressed_at: float
    nodes: set[str] = field(default_factory=set)


@dataclass
class Outcome:
    shown: Rows = field(default_factory=list)
    folded: dict[tuple[Pool, str], Rows] = field(default_factory=lambda: defaultdict(list))
    entities: Counter[str] = field(default_factory=Counter)
    crowded: dict[Pool, int] = field(default_factory=dict)

    def folds(self) -> set[tuple[Pool, str, float | None, float | None]]:
        """Usage and throttle time of each fold by pool and node."""
        return {
            (
                pool,
                node,
                fsum(amounts) if (amounts := [e.usage for e in rows if e.usage is not None]) else None,
                max((e.throttle_time_seconds for e in rows if e.throttle_time_seconds is not None), default=None),
            )
            for (pool, node), rows in self.folded.items()
        }  # fmt: skip


class Plain:
    def __init__(self, config: CardinalityConfig) -> None:
        self.config = config
        self.places: dict[Pool, dict[Name, Place]] = defaultdict(dict)
        self.contested: dict[Pool, bool] = defaultdict(bool)
        self.moved: dict[tuple[Pool, Name], float] = {}
        self.near: dict[tuple[Pool, Name], float] = {}

    def apply(self, usages: Iterable[EntityUsage], up: set[str], now_seconds: float) -> Outcome:
        outcome = Outcome()
        pools: dict[Pool, dict[Name, Rows]] = {(tagged, kind): {} for tagged in (False, True) for kind in QuotaType}
        for usage in usages:
            entity = usage.entity
            pool = entity.tags is not None, entity.quota_type
            name = entity.tags or (entity.user, entity.client_id)
            pools[pool].setdefault(name, []).append(usage)
        for pool, names in pools.items():
            self.sift(pool, names, up, now_seconds, outcome)
        return outcome

    def sift(self, pool: Pool, names: dict[Name, Rows], up: set[str], now_seconds: float, outcome: Outcome) -> None:
        reasons = {name: self.reason(pool, name, rows, now_seconds) for name, rows in names.items()}
        candidates = {name: names[name] for name in names if not reasons[name]}
        chosen = self.chosen(pool, candidates, up, now_seconds)
        if len(chosen) < len(candidates):
            outcome.crowded[pool] = len(candidates)
        for name, rows in names.items():
            if name in chosen:
                outcome.shown += self.detailed(pool, name, rows, now_seconds)
                continue
            reason = reasons[name] or "overflow"
            outcome.entities[reason] += len(rows)
            drops = self.config.excluded is Excluded.DROP and OVERFLOW not in name
            if reason != "idle" and not (reason == "excluded" and drops):
                for usage in rows:
                    outcome.folded[pool, usage.entity.broker].append(usage)

    def reason(self, pool: Pool, name: Name, rows: Rows, now_seconds: float) -> str:
        """Return the reason why an identity is not even a candidate."""
        config, tagged = self.config, pool[0]
        if OVERFLOW in name:
            return "overflow" if tagged else "excluded"
        if tagged:
            return ""
        patterns = (
            (config.include_users, config.exclude_users),
            (config.include_client_ids, config.exclude_client_ids),
        )
        for part, (include, exclude) in zip(name, patterns, strict=True):
            included = not include or any(fullmatch(pattern, part) for pattern in include)
            if part and (not included or any(fullmatch(pattern, part) for pattern in exclude)):
                return "excluded"
        if config.idle_after_seconds is None:
            return ""
        if any(usage.usage or throttled(usage) for usage in rows):
            self.moved[pool, name] = now_seconds
        moved_at = self.moved.setdefault((pool, name), now_seconds)
        return "idle" if now_seconds - moved_at >= config.idle_after_seconds else ""

    def detailed(self, pool: Pool, name: Name, rows: Rows, now_seconds: float) -> Rows:
        above = self.config.detail_above
        if above is None or pool[0]:
            return rows
        if any(throttled(usage) or used(usage) > above for usage in rows):
            self.near[pool, name] = now_seconds
        if now_seconds - self.near.get((pool, name), -1e9) <= 300:
            return rows
        return [replace(usage, detailed=False) for usage in rows]

    def chosen(self, pool: Pool, names: dict[Name, Rows], up: set[str], now_seconds: float) -> set[Name]:
        places, max_entities = self.places[pool], self.config.max_entities
        away = [name for name in places if name not in names]
        returning = {name for name in away if places[name].nodes - up and now_seconds - places[name].seen_at < 300}
        for name in away:
            if name not in returning:
                del places[name]
        if len(names) <= max_entities and not returning:
            self.places[pool] = {name: Place(now_seconds, now_seconds, (0, 0.0), now_seconds) for name in names}
            return set(names)
        pressures = {name: max(map(pressure, rows)) for name, rows in names.items()}
        for name, place in places.items():
            if name in names:
                place.seen_at = now_seconds
                if pressures[name][0] >= place.pressure[0] or now_seconds - place.pressed_at >= 300:
                    place.pressure, place.pressed_at = pressures[name], now_seconds
        outside = sorted((pressures[name], name) for name in names if name not in places)
        while outside and len(places) < max_entities:
            strength, name = outside.pop()
            places[name] = Place(now_seconds, now_seconds, strength, now_seconds)
        self.compete(places, outside, now_seconds)
        for name in places.keys() & names.keys():
            brokers = {usage.entity.broker for usage in names[name]}
            places[name].nodes = brokers | (places[name].nodes - up)
        return set(names) if len(names) <= max_entities else places.keys() & names.keys()

    def compete(self, places: dict[Name, Place], outside: list[tuple[Pressure, Name]], now_seconds: float) -> None:
        """Give places of the weakest to the strongest outside."""
        for _, holder in sorted((place.pressure, name) for name, place in places.items()):
            if not outside:
                return
            strength, name = outside[-1]
            held = places[holder]
            if strength[0] == held.pressure[0]:
                if now_seconds - held.since < 300:
                    continue
                if strength[1] <= 2 * held.pressure[1]:
                    return
            elif strength[0] < held.pressure[0]:
                return
            outside.pop()
            del places[holder]
            places[name] = Place(now_seconds, now_seconds, strength, now_seconds)


def throttled(usage: EntityUsage) -> bool:
    """Return whether the entity is throttled or in debt."""
    return usage.throttled or (usage.tokens or 0) < 0


def used(usage: EntityUsage) -> float:
    """Return the part of limit or burst that is used."""
    return max(usage.used or 0.0, 0.0)


def pressure(usage: EntityUsage) -> Pressure:
    if throttled(usage):
        return 2, usage.throttle_time_seconds or 0.0
    if used(usage) >= 0.5:
        return 1, used(usage)
    return 0, max(usage.usage or 0.0, 0.0)
