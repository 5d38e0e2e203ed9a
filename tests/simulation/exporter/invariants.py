"""Rules that hold for each snapshot, beside what agents and the Admin API really said."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, isnan, nan
from typing import Any, Final

from quotascope.exporter.limits import Limits
from quotascope.exporter.snapshot import LimitState, NodeUsage, Snapshot, SourceHealth
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.rules import QuotaRules

from .world import EPOCH, ERRORS, MUTATION, THROTTLED, Client, SimulatedLimits, SimulatedSource, Told

STALE_SECONDS: Final = 120.0
"""How long numbers are shown after they were asked for (docs/reference/configuration.yaml)."""
HOLD_SECONDS: Final = 300.0
_CLOCK: Final = 1e-5
"""Seconds that are lost where a time is added to the Unix time and taken from it."""
_LONGEST_AGE: Final = STALE_SECONDS + 60.0
"""On a page, which takes a while to be written."""
MEANS_MS: Final = 3.0
"""By how much a sum of milliseconds may be too high, as means are read after counts."""
ABSURD: Final = 1e8
"""Fewer errors, or milliseconds, than any counter has that is far too high; more than a node has in a simulation."""
_BYTES_OF_ENTITY: Final = 12_000
"""In an answer, far more than there are."""


class Broken(AssertionError):
    """An invariant that does not hold; the message says which."""


def holds(condition: object, text: str) -> None:
    if not condition:
        raise Broken(text)


def same(ours: float | None, theirs: float | None) -> bool:
    """Return whether two numbers are equal up to a quotient's last digit, with NaN equal to None."""
    one, other = nan if ours is None else ours, nan if theirs is None else theirs
    if isnan(one) or isnan(other):
        return isnan(one) and isnan(other)
    return one == other or abs(one - other) <= 1e-12 * abs(other)


def bound_of(rules: Mapping[QuotaEntity, float], user: str, client_id: str) -> float | None:
    """Return the limit for these tags by Kafka's precedence, or None without a rule."""
    if not user and not client_id:
        return None  # of the empty client-id, for which brokers look no rule up
    users = (user, DEFAULT) if user else (None,)
    clients = (client_id, DEFAULT) if client_id else (None,)
    for one in users:
        for other in clients:
            bound = rules.get(QuotaEntity(one, other))
            if bound is not None:
                return bound
    return None


@dataclass(slots=True)
class Slip:
    """Counters of a node that were far too high in one answer, and what was read since."""

    first_at: float
    """Time of the first such answer since the node's start, in steady seconds: the highest holds the counters."""
    told: Told
    single: bool
    """Whether no other answer since the start had counters that were too high, which two answers make certain."""
    read_at: float = 0.0
    """Time of the last snapshot with that answer."""
    lower: dict[tuple[str, str], float] = field(default_factory=dict)
    """The counters of the first answer after it."""


@dataclass
class Ledger:
    """History of the answers to the exporter, and of its snapshots."""

    sources: dict[str, list[SimulatedSource]] = field(default_factory=dict)
    """All that were read and are not closed, by name."""
    limits: list[SimulatedLimits] = field(default_factory=list)
    max_entities: int = 10_000
    checked: int = 0
    """Snapshots."""
    _counters: dict[tuple[object, ...], float] = field(default_factory=dict)
    _started: dict[str, float] = field(default_factory=dict)
    """The start of each node that was reported last."""
    _told: dict[str, Told] = field(default_factory=dict)
    """What the last snapshot was made of, by node."""
    _slips: dict[tuple[str, float], Slip] = field(default_factory=dict)
    """The last counters that were far too high, by the node and its start."""
    _throttled_at: dict[Client, float] = field(default_factory=dict)
    _under: dict[str, Limits | None] = field(default_factory=dict)

    def check(self, snapshot: Snapshot, *, unix: float, steady: float) -> None:
        """Raise ``Broken`` unless all holds of a snapshot that was made just now."""
        self.checked += 1
        holds(snapshot.taken_at == unix, "a snapshot has another time than now")
        told = self._sources(snapshot.sources, unix, steady)
        read = {node.broker for node in snapshot.nodes}
        holds(read == told.keys(), f"nodes {sorted(read)} are shown, but {sorted(told)} answered")
        self._limits(snapshot, steady)
        self._rows(snapshot, told)
        self._throttled(snapshot, told)
        self._count(snapshot, told)
        self._told.update(told)
        self._under.update(dict.fromkeys(told, snapshot.limits))

    def _sources(self, healths: Iterable[SourceHealth], unix: float, steady: float) -> dict[str, Told]:
        """No number is older than documented, and how a source does depends on itself alone."""
        told: dict[str, Told] = {}
        names: set[str] = set()
        for health in healths:
            name = health.name
            holds(name not in names, f"source {name} is shown twice")
            names.add(name)
            if health.stand_by_of is not None:
                continue
            known = self.sources.get(name, [])
            if not health.up:
                repeated = (health.error or "").startswith("reads node ")
                down = [one for one in known if isinstance(one.last, str) or steady - one.began > STALE_SECONDS]
                holds(repeated or down or not known, f"source {name} has answered and is down: {health.error}")
                continue
            age = inf if health.read_at is None else unix - health.read_at
            holds(age <= STALE_SECONDS + _CLOCK, f"{name} is stale")
            lasts = [one.last for one in known if isinstance(one.last, Told)]
            answers = [last for last in lasts if abs(EPOCH + steady - last.asked_at - age) < _CLOCK]
            holds(answers, f"source {name} never gave an answer that is {age} s old")
            node_id = answers[0].table.node_id
            holds(health.node_id == node_id, f"source {name} is not of node {health.node_id}")
            holds(node_id not in told, f"node {node_id} is shown of two sources")
            told[node_id] = answers[0]
        return told

    def _limits(self, snapshot: Snapshot, steady: float) -> None:
        limits, health = snapshot.limits, snapshot.limits_health
        if limits is None:
            holds(health.read_at is None, "limits were read, and are not shown")
            return
        # after a reload the last limits of the source before stay until the next read
        last = [source.told[-1] for source in self.limits if source.told]
        fresh = [at for one, at in last if one.read_at == limits.read_at and _alike(one, limits)]
        holds(fresh, "the limits are not those that the Admin API gave last")
        age = health.age_seconds(snapshot.taken_at)
        ages = [EPOCH + steady - at for at in fresh]
        holds(
            age is not None and any(abs(age - real) < _CLOCK for real in ages),
            f"the limits are {ages} s old, not {age}",
        )

    @staticmethod
    def ages(body: bytes) -> None:
        """Require that no age on the page is negative or above the documented one, however the clock was set."""
        for line in body.decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith(("quotascope_snapshot_age_seconds", "quotascope_source_age_seconds")):
                holds(0 <= float(value) <= _LONGEST_AGE, f"a page says {line}")

    def _rows(self, snapshot: Snapshot, told: Mapping[str, Told]) -> None:
        """Require that each number is the node's own, none is missing, and unknown, zero and unlimited differ."""
        limits = snapshot.limits
        columns = snapshot.joined or snapshot.columns
        numbers = zip(
            columns.layout.entities,
            columns.usage.tolist(),
            columns.throttle_time.tolist(),
            columns.tokens.tolist(),
            strict=True,
        )
        measured: dict[str, set[Client]] = {node_id: set() for node_id in told}
        for entity, usage, throttle_time, tokens in numbers:
            kind, client = entity.quota_type, (entity.quota_type, entity.user, entity.client_id)
            about = f"{kind.label} of {entity.user!r} {entity.client_id!r} on {entity.broker}"
            holds(entity.broker in told, f"{about} is shown, but its node did not answer")
            reported = told[entity.broker].numbers
            measured[entity.broker].add(client)
            used = reported.get((client, kind.attribute), nan)
            known = kind.in_base_unit(used) if isfinite(used) else nan
            holds(same(usage, known), f"{about}: usage {usage}, but {used} was reported")
            self._limit(entity, limits, about)
            if kind is not MUTATION:
                waited = reported.get((client, "throttle-time"))
                known = nan if waited is None else waited / 1_000 if isfinite(waited) else 0.0
                holds(same(throttle_time, known), f"{about}: throttle {throttle_time}, but {waited} ms was reported")
            known = reported.get((client, "tokens"), nan)
            if entity.limit_state is LimitState.UNLIMITED or not isfinite(known) or known >= 9e15:
                known = nan
            holds(same(tokens, known), f"{about}: tokens {tokens}, but {known} was reported")
        for node_id, one in told.items():
            missing = {client for client, _ in one.numbers if _expected(client, one, node_id, limits)}
            missing -= measured[node_id]
            holds(not missing, f"node {node_id} measures {missing}, which is not shown")

    def _limit(self, entity: Any, limits: Limits | None, about: str) -> None:
        if limits is None or _overruled(limits, entity.broker):
            holds(
                entity.limit_state is LimitState.UNKNOWN,
                f"{about}: limits are unknown, but {entity.limit} is its limit",
            )
            return
        kind = entity.quota_type
        bound = bound_of(limits.rules.get(kind, {}), entity.user, entity.client_id)
        holds(same(entity.limit, bound and kind.in_base_unit(bound)), f"{about}: limit {entity.limit} is not {bound}")
        state = LimitState.UNLIMITED if bound is None else LimitState.LIMITED
        holds(entity.limit_state is state, f"{about}: its limit is {entity.limit_state}, not {state}")

    def _throttled(self, snapshot: Snapshot, told: Mapping[str, Told]) -> None:
        """Require that a client that a source reported twice as throttled is shown, up to the number of entities."""
        entities = snapshot.columns.layout.entities
        shown = {(entity.broker, (entity.quota_type, entity.user, entity.client_id)) for entity in entities}
        for one in told.values():
            for (client, attribute), value in one.numbers.items():
                if (attribute == "throttle-time" and value > 0) or (attribute == "tokens" and value < 0):
                    self._throttled_at[client] = snapshot.steady_at
        # who was throttled has its place for five minutes
        recent = [client[0] for client, at in self._throttled_at.items() if snapshot.steady_at - at < HOLD_SECONDS + 1]
        throttled = Counter(recent)
        for node_id, one in told.items():
            before = self._told.get(node_id)
            if before is None or before is one:
                continue
            for (client, attribute), value in one.numbers.items():
                if attribute != "throttle-time" or not (value > 0 and isfinite(value)) or client[0] is MUTATION:
                    continue
                last = before.numbers.get((client, attribute), nan)
                rises = last > 0 and value > last and _alike(self._under.get(node_id), snapshot.limits)
                if throttled[client[0]] <= self.max_entities and (
                    (last > 0 and _expected(client, one, node_id, snapshot.limits)) or rises
                ):
                    holds((node_id, client) in shown, f"{client} is throttled on node {node_id}, and not shown")

    def _count(self, snapshot: Snapshot, told: Mapping[str, Told]) -> None:
        """
        Require that no counter decreases.

        Counters of a node begin again when the node restarts, whichever of its sources answers, and continue after
        another agent has claimed its id.
        """
        for node in snapshot.nodes:
            since = told[node.broker].started_at
            slip = self._slip(told[node.broker], snapshot.steady_at)
            if told[node.broker].reports_start:
                self._started[node.broker] = since
            elif self._started.get(node.broker) != since:
                continue  # nothing says since when it counts
            for counter, number in _counters(node):
                if slip is None or snapshot.steady_at - slip.first_at <= HOLD_SECONDS:
                    self._grows(number, *counter, node.broker, since)
                    continue
                self._counters[*counter, node.broker, since] = number
                if snapshot.steady_at - slip.read_at <= HOLD_SECONDS:
                    continue  # one of them was higher than those after it, and holds the counter from its own time on
                real = told[node.broker].counts.get(counter, 0.0)
                grown = real > slip.lower.get(counter, inf) + MEANS_MS
                holds(
                    not slip.single or not grown or number < ABSURD,
                    f"{counter} of node {node.broker} is {number}, which one answer said long ago; it is {real}",
                )
        self._count_own(snapshot)

    def _slip(self, told: Told, now: float) -> Slip | None:
        """Return the last counters of the node's start that were far too high, None where all were right."""
        key = told.table.node_id, told.started_at
        slip = self._slips.get(key)
        if told.absurd:
            if slip is None or slip.told is not told:
                slip = self._slips[key] = Slip(slip.first_at if slip else now, told, single=slip is None)
            slip.read_at = now
        elif slip is not None:
            for counter, number in told.counts.items():
                slip.lower.setdefault(counter, number)
        return slip

    def _count_own(self, snapshot: Snapshot) -> None:
        """No counter of the exporter's own goes back, also of parts that were not configured for a while."""
        health, push = snapshot.limits_health, snapshot.push
        self._grows(health.errors_total, "limits errors")
        for key, number in health.changes_total.items():
            self._grows(number, "limit changes", key)
        if push is not None:
            for key, number in {**push.exports_total, **push.points_total}.items():
                self._grows(number, "push", key)
        for discovery in snapshot.discoveries:
            self._grows(discovery.errors_total, "discovery", discovery.name)
        if snapshot.sampling is not None:
            self._grows(snapshot.sampling.samples, "samples")
        for key, number in snapshot.restarts.items():
            holds(number == 0, f"background work {key} failed")

    def _grows(self, number: float, *what: object) -> None:
        last = self._counters.get(what, number)
        holds(number >= last, f"the counter {what} goes back from {last} to {number}")
        self._counters[what] = number

    def body(self, text: bytes, snapshot_rows: int) -> None:
        """Require that an answer is no longer than its content permits."""
        holds(len(text) <= 400_000 + _BYTES_OF_ENTITY * snapshot_rows, f"an answer has {len(text)} bytes")
        holds(b"internal error" not in text, "an answer is an internal error")

    def document(self, text: bytes) -> None:
        """Require that unknown numbers in JSON are null."""
        for entity in json.loads(text).get("entities", ()):
            state, limit = entity.get("limit_state"), entity.get("limit")
            holds((state == "limited") == (limit is not None), f"{state} has the limit {limit}")


def _counters(node: NodeUsage) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield the counters that are shown of a node, in milliseconds and errors."""
    for request, seconds in node.by_name(catalog.REQUEST_THROTTLED_SECONDS).items():
        yield (THROTTLED, request), seconds * 1_000
    for request, number in node.by_name(catalog.THROTTLING_ERRORS).items():
        yield (ERRORS, request), number


def _overruled(limits: Limits, node_id: str) -> bool:
    settings = limits.nodes.get(node_id)
    if settings is not None:
        return settings.quota_callback_class is not None
    return any(node.quota_callback_class for node in limits.nodes.values())


def _expected(client: Client, told: Told, node_id: str, limits: Limits | None) -> bool:
    """Return whether a client that a node measures has to be shown, whatever was before."""
    kind, user, client_id = client
    if kind is MUTATION and not told.leads:
        return False
    if limits is None or _overruled(limits, node_id):
        return True
    rules = limits.rules.get(kind)
    if rules is None or bound_of(rules, user, client_id) is None:
        return False
    return QuotaRules(rules).would_record(user, client_id)


def _alike(one: Limits | None, other: Limits | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.rules, one.nodes, one.releases) == (other.rules, other.nodes, other.releases)
