"""The answers of shadows, beside a plain recomputation that goes through all requests of a small world."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import changes, usage

from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.shadow import Shadows, UnevaluatedReason
from quotascope.exporter.snapshot import (
    Columns,
    Entity,
    EntityUsage,
    NodeUsage,
    Shadow,
    Snapshot,
    ThrottleCause,
)
from quotascope.metrics.engine.throttle_time import rate_formula_ms
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, QuotaEntity, QuotaType
from quotascope.metrics.kafka.numbers import LONG_MAX
from quotascope.metrics.kafka.release import KAFKA_4_0, KAFKA_4_2, KAFKA_4_4, KafkaRelease, ReleaseRange
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable
from quotascope.pages.baseline import ThrottleChange
from quotascope.quotas import QuotaSet
from quotascope.quotas.candidates import Candidate

PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
UNIT: Final = {REQUEST: 100.0}
"""Kafka's unit of a usage, where it is not ours."""
USERS: Final = ("alice", "bob", "other user", "another user")
CLIENTS: Final = ("app", "etl", "other client", "another client", "")
REQUESTS: Final = tuple(product(USERS, CLIENTS))
"""No rule names the others, of which there may be any number: two stand for them."""
ENTITIES: Final = [
    QuotaEntity(user, client)
    for user, client in product(("alice", "bob", DEFAULT, None), ("app", "etl", DEFAULT, None))
    if user is not None or client is not None
]  # fmt: skip
TAKEN_AT: Final = 1_795_251_780.0
tables: Final = st.dictionaries(st.sampled_from(ENTITIES), st.sampled_from([5.0, 10.0, 40.0]), max_size=5)


class Measured(NamedTuple):
    usage: float | None
    throttle: float | None
    """In seconds."""


measured: Final = st.builds(
    Measured, st.sampled_from([None, 0.0, 4.0, 9.0, 30.0, 41.0]), st.sampled_from([None, 0.0, 0.5])
)


Kept = dict[tuple[str, str], Entity]
"""Entities by tags, the same objects from one snapshot to the next."""


def limits_of(kind: QuotaType, rules: RuleTable) -> Limits:
    nodes = {"1": NodeSettings(quota_samples=5, quota_window_seconds=2.0)}
    return Limits(rules={kind: rules}, nodes=nodes, read_at=TAKEN_AT)


def snapshot_of(kind: QuotaType, limits: Limits, rows: Mapping[tuple[str, str], Measured], serials: Kept) -> Snapshot:
    rules = limits.rules[kind]
    unit = UNIT.get(kind, 1.0)
    usages = []
    for (user, client), row in rows.items():
        bound = rules.bound_of(user, client)
        entity = serials.setdefault(
            (user, client),
            Entity(
                broker="1",
                quota_type=kind,
                user=user,
                client_id=client,
                limit=None if bound is None else bound / unit,
                resolution=rules.limit(user, client) or NO_RULE,
            ),
        )
        used = None if row.usage is None else row.usage / unit
        usages.append(EntityUsage(entity=entity, usage=used, throttle_time_seconds=row.throttle))
    return Snapshot(taken_at=TAKEN_AT, columns=Columns.of(usages), nodes=(NodeUsage(broker="1"),), limits=limits)


def candidate_of(kind: QuotaType, rules: RuleTable) -> Candidate:
    quotas = QuotaSet({entity: {kind.quota_key: bound} for entity, bound in rules.items()})
    return Candidate(name="x", quotas=quotas, based=True)


class Prediction(NamedTuple):
    ratio: float
    """Utilization."""
    throttle: float | None
    """In seconds; None of an entity that is held back, and that the shadow throttles for less long."""
    change: ThrottleChange | None
    held_back: bool


class Outcome(NamedTuple):
    predictions: dict[tuple[str, str], Prediction]
    """By tags."""
    unknown: Counter[str]
    ended: int
    """Rows that the shadow does not limit, and that a quota in force throttles."""


def recomputed(
    kind: QuotaType, enforced: RuleTable, rules: RuleTable, rows: Mapping[tuple[str, str], Measured]
) -> Outcome:
    """
    Return the outcome request by request.

    It follows the requests of each row, the shadow's tags for them, and Kafka's answers under both sets of rules.
    """
    inside = defaultdict[tuple[str, str], set[tuple[str, str]]](set)
    for request in REQUESTS:
        row = enforced.metric_tags(*request)
        if row in rows:
            inside[row].add(rules.metric_tags(*request))
    limited = {row for row, tags in inside.items() if any(rules.bound_of(*tags_of_request) for tags_of_request in tags)}
    torn = {row for row in limited if len(inside[row]) > 1}
    unknown = Counter[str]({UnevaluatedReason.FINER: len(torn)} if torn else {})
    predictions = {}
    for tags in {tag for row in limited - torn for tag in inside[row]}:
        bound = rules.bound_of(*tags)
        assert bound is not None
        members = {row: (rows[row], enforced.bound_of(*row)) for row in limited - torn if tags in inside[row]}
        if any(tags in inside[row] for row in torn):
            unknown[UnevaluatedReason.FINER] += 1
        elif any(row.usage is None for row, _ in members.values()):
            unknown[UnevaluatedReason.ABSENT] += 1
        else:
            rate = sum(row.usage or 0.0 for row, _ in members.values())
            throttle = _seconds(kind, rate, bound)
            requests_of_row = (
                _alone(*members[tags], bound, throttle)
                if [*members] == [tags]
                else _several(members.values(), bound, throttle)
            )
            if requests_of_row is None:
                unknown[UnevaluatedReason.CENSORED] += 1
            else:
                throttle_s, change, held_back = requests_of_row
                predictions[tags] = Prediction(rate / bound, throttle_s, change, held_back)
    ended = sum(_held(rows[row], enforced.bound_of(*row)) for row in inside.keys() - limited)
    return Outcome(predictions, unknown, ended)


_Found: TypeAlias = tuple[float | None, ThrottleChange | None, bool]


def _alone(row: Measured, enforced: float | None, bound: float, throttle: float) -> _Found:
    """Return the outcome for an entity whose measured name stays the same, by how its limit changes."""
    held = _held(row, enforced)
    if enforced == bound:
        throttle = throttle if held and row.throttle is None else row.throttle or 0.0
        return throttle, ThrottleChange.UNCHANGED if throttle > 0 or held else None, False
    if enforced is not None and enforced < bound:
        return (None, ThrottleChange.SHORTER, True) if held else (0.0, None, False)
    if held:
        return throttle, ThrottleChange.LONGER, True
    return throttle, ThrottleChange.NEW if throttle else None, False


def _several(members: Iterable[tuple[Measured, float | None]], bound: float, throttle: float) -> _Found | None:
    """Return the outcome for a sum, or under other names; None where a held-back part may be anything."""
    held = [limit or 0.0 for row, limit in members if _held(row, limit)]
    unlimited = [row for row, limit in members if row.usage and not _held(row, limit)]
    if any(limit >= bound for limit in held):
        return throttle, ThrottleChange.LONGER, True
    if not throttle:
        return None if held else (0.0, None, False)
    if unlimited or not held:
        return throttle, ThrottleChange.NEW, bool(held)
    # all of it is held back
    pooled = sum(inf if limit is None else limit for _, limit in members)
    return (throttle, ThrottleChange.LONGER, True) if pooled > bound else None


def _held(row: Measured, enforced: float | None) -> bool:
    if enforced is None:
        return False
    if row.throttle is None:
        return row.usage is not None and row.usage >= enforced
    return row.throttle > 0


def _seconds(kind: QuotaType, rate: float, bound: float) -> float:
    if rate <= bound:
        return 0.0
    throttle_ms = rate_formula_ms(rate, bound, 5 * 2000)
    return min(throttle_ms, 2000 if kind is REQUEST else 2**31 - 1) / 1000


def reported(shadow: Shadow) -> Outcome:
    predictions = {
        (entity_usage.entity.user, entity_usage.entity.client_id): Prediction(
            entity_usage.utilization or 0.0,
            entity_usage.throttle_time_seconds,
            entity_usage.change,
            entity_usage.held_back,
        )
        for entity_usage in shadow.entities
    }  # fmt: skip
    unknown = Counter[str]()
    for (_, broker, reason), count in shadow.unevaluated.items():
        assert broker == "1"
        unknown[reason] += count
    return Outcome(predictions, unknown, shadow.changed(ThrottleChange.ENDED))


@given(
    kind=st.sampled_from([PRODUCE, REQUEST]),
    enforced_rules=tables.filter(bool),
    other_rules=st.lists(tables, min_size=1, max_size=3),
    steps=st.lists(st.dictionaries(st.sampled_from(REQUESTS), measured), min_size=1, max_size=3)
)  # fmt: skip
def test_it_is_what_request_by_request_would_be(
    kind: QuotaType,
    enforced_rules: dict[QuotaEntity, float],
    other_rules: list[dict[QuotaEntity, float]],
    steps: list[dict[tuple[str, str], Measured]],
) -> None:
    """
    A shadow equals an evaluation request by request for any rules and numbers while entities come and go.

    It guesses nothing, and calls nothing unknown that could be known.
    """
    enforced = QuotaRules(enforced_rules)
    other_tables = [QuotaRules(rules) for rules in other_rules]
    shadows, serials = Shadows([candidate_of(kind, rules) for rules in other_tables]), Kept()
    limits = limits_of(kind, enforced)
    for step in steps:
        rows = {enforced.metric_tags(*request): row for request, row in step.items()}
        limits = limits_of(kind, enforced).after(limits)  # read again
        snapshot = snapshot_of(kind, limits, rows, serials)
        for rules, shadow in zip(other_tables, shadows.evaluate(snapshot, set()), strict=True):
            expected, reported_now = recomputed(kind, enforced, rules, rows), reported(shadow)
            assert reported_now.predictions.keys() == expected.predictions.keys()
            for tags, (ratio, throttle, *other_fields) in expected.predictions.items():
                assert reported_now.predictions[tags].ratio == pytest.approx(ratio)
                assert reported_now.predictions[tags].throttle == (
                    None if throttle is None else pytest.approx(throttle)
                )
                assert [*reported_now.predictions[tags][2:]] == other_fields
            assert reported_now.unknown == expected.unknown
            assert reported_now.ended == expected.ended
            counts = Counter(prediction.change for prediction in expected.predictions.values())
            counts[ThrottleChange.ENDED] = expected.ended
            if expected.ended or (rules and (expected.predictions or not expected.unknown)):
                assert shadow.changes == {(kind, "1"): {change: counts[change] for change in ThrottleChange}}
                assert shadow.evaluated == {(kind, "1"): len(expected.predictions)}


PAIRS: Final = QuotaRules({QuotaEntity(DEFAULT, DEFAULT): 10.0})
ALICE: Final = QuotaRules({QuotaEntity("alice"): 5.0})
BOTH_NODES: Final = (NodeUsage(broker="1"), NodeUsage(broker="2"))


def world(*usages: EntityUsage, rules: Mapping[QuotaType, RuleTable] | None = None, **changes: Any) -> Snapshot:
    """Return a snapshot of two brokers, with rules for pairs unless a test has others."""
    configured = Limits(rules=rules or {PRODUCE: PAIRS}, read_at=TAKEN_AT)
    changes = {"nodes": BOTH_NODES, "limits": configured, **changes}
    return Snapshot(taken_at=TAKEN_AT, columns=Columns.of(usages), **changes)


def test_a_shadow_adds_up_on_each_broker_by_itself() -> None:
    """
    A shadow adds up on each broker.

    The broker nearest to its limit comes first, and brokers without clients have none throttled.
    """
    snapshot = world(
        usage(PRODUCE, "alice", "a", usage=4.0),
        usage(PRODUCE, "alice", "b", usage=3.0),
        usage(PRODUCE, "alice", "a", broker="2", usage=1.0),
        usage(PRODUCE, "bob", "a", usage=50.0),
    )
    (shadow,) = Shadows([candidate_of(PRODUCE, ALICE)]).evaluate(snapshot, set())
    entities = [
        (entity_usage.entity.quota_type, entity_usage.entity.user, entity_usage.entity.client_id)
        for entity_usage in shadow.entities
    ]
    assert entities == [(PRODUCE, "alice", "")] * 2
    numbers = [
        (entity_usage.entity.broker, entity_usage.usage, entity_usage.throttle_time_seconds)
        for entity_usage in shadow.entities
    ]
    assert numbers == [("1", 7.0, 4.4), ("2", 1.0, 0.0)]
    assert shadow.changes == {(PRODUCE, "1"): changes(new=1), (PRODUCE, "2"): changes()}
    assert shadow.unevaluated == {}
    (few,) = Shadows([candidate_of(PRODUCE, ALICE)], max_entities=1).evaluate(snapshot, set())
    assert (few.entities, few.changes) == (shadow.entities[:1], shadow.changes)
    (none,) = Shadows([candidate_of(PRODUCE, ALICE)], shows=lambda user, _: user != "alice").evaluate(snapshot, set())
    assert (none.entities, none.changes) == ((), shadow.changes)


@pytest.mark.parametrize(
    ("snapshot", "late", "expected"),
    [
        pytest.param(world(limits=None), (), dict.fromkeys("12", UnevaluatedReason.LIMITS_UNKNOWN), id="no limits"),
        pytest.param(
            world(nodes=tuple(NodeUsage(broker=node, overruled=True) for node in "12")),
            (),
            dict.fromkeys("12", UnevaluatedReason.LIMITS_UNKNOWN),
            id="callback",
        ),
        pytest.param(
            world(
                usage(PRODUCE, "alice", "a", usage=40.0),
                usage(PRODUCE, "alice", "a", broker="2", usage=1.0),
                nodes=(NodeUsage(broker="1", overruled=True), NodeUsage(broker="2")),
            ),
            (),
            {"1": UnevaluatedReason.LIMITS_UNKNOWN},
            id="callback on one node",
        ),
        pytest.param(
            world(rules={FETCH: PAIRS}), (), dict.fromkeys("12", UnevaluatedReason.UNMEASURED), id="nothing measured"
        ),
        pytest.param(
            world(usage(PRODUCE, "alice", "a", usage=4.0)), ("1",), {"1": UnevaluatedReason.STALE}, id="old numbers"
        ),
        pytest.param(world(), (), {}, id="no client"),
    ],
)
def test_what_is_unknown_has_a_reason(
    snapshot: Snapshot, late: tuple[str, ...], expected: dict[str, UnevaluatedReason]
) -> None:
    """Unknown entities are counted by broker and reason; if all are unknown, throttled ones are not counted."""
    (shadow,) = Shadows([candidate_of(PRODUCE, ALICE)]).evaluate(snapshot, set(late))
    assert shadow.unevaluated == {(PRODUCE, *key): 1 for key in expected.items()}
    quiet = {(PRODUCE, broker): changes() for broker in ("1", "2") if broker not in expected}
    assert shadow.changes == quiet


def test_a_broker_that_is_not_read_any_more_is_unknown_for_an_hour() -> None:
    """A broker that is not read is unknown with as many entities as it had, and after an hour taken to be gone."""
    snapshot = world(usage(PRODUCE, "alice", "a", broker="2", usage=4.0))
    shadows = Shadows([candidate_of(PRODUCE, ALICE)])
    shadows.evaluate(snapshot, set())
    partial = world(nodes=BOTH_NODES[:1])
    (shadow,) = shadows.evaluate(partial, set())
    assert shadow.unevaluated == {(PRODUCE, "2", UnevaluatedReason.ABSENT): 1}
    (shadow,) = shadows.evaluate(replace(partial, taken_at=TAKEN_AT + 3601), set())
    assert (shadow.unevaluated, shadow.changes) == ({}, {(PRODUCE, "1"): changes()})


@pytest.mark.parametrize("step", [3_601, -3_601])
def test_a_broker_stays_unknown_when_the_clock_is_set(step: int) -> None:
    """The hour in which a missing broker is unknown does not depend on the wall clock."""
    shadows = Shadows([candidate_of(PRODUCE, ALICE)])
    shadows.evaluate(replace(world(usage(PRODUCE, "alice", "a", broker="2", usage=4.0)), boot_seconds=5.0), set())
    partial = replace(world(nodes=BOTH_NODES[:1]), taken_at=TAKEN_AT + step, boot_seconds=20.0)
    (shadow,) = shadows.evaluate(partial, set())
    assert shadow.unevaluated == {(PRODUCE, "2", UnevaluatedReason.ABSENT): 1}
    (shadow,) = shadows.evaluate(replace(partial, boot_seconds=3_606.0), set())
    assert shadow.unevaluated == {}


@pytest.mark.parametrize(
    ("bound", "tokens", "expected"),
    [
        (10.0, 4.0, (0.0, None)),
        (10.0, -25.0, (2.5, ThrottleChange.UNCHANGED)),
        (9.0, -25.0, None),
        (9.0, 4.0, None),
        (12.0, 4.0, (0.0, None)),
        (12.0, -25.0, (None, ThrottleChange.SHORTER)),
        (10.0, None, None),
    ],
)
def test_mutations_are_known_under_a_limit_that_stays_or_rises(
    bound: float, tokens: float | None, expected: tuple[float | None, ThrottleChange | None] | None
) -> None:
    """
    Mutations are known under an equal or higher limit, whose bucket is the broker's or has more tokens.

    Under a lower limit the bucket's past is unknown.
    """
    measured = usage(MUTATION, "alice", "a", limit=10.0, usage=2.0, tokens=tokens)
    shadow = candidate_of(MUTATION, QuotaRules({QuotaEntity("alice", "a"): bound}))
    (evaluated,) = Shadows([shadow]).evaluate(world(measured, rules={MUTATION: PAIRS}), set())
    assert [(entity_usage.throttle_time_seconds, entity_usage.change) for entity_usage in evaluated.entities] == (
        [expected] if expected else []
    )
    reason = UnevaluatedReason.ABSENT if tokens is None else UnevaluatedReason.MUTATION
    unknown = {} if expected is not None else {(MUTATION, "1", reason): 1}
    assert evaluated.unevaluated == unknown


def test_mutations_that_are_added_up_are_unknown() -> None:
    """Mutations are unknown where a shadow adds buckets up that the cluster keeps apart."""
    rules = QuotaRules({QuotaEntity("alice"): 10.0, QuotaEntity("alice", "a"): 10.0})
    rows = [usage(MUTATION, "alice", name, limit=10.0, usage=2.0, tokens=4.0) for name in ("", "a")]
    shadow = candidate_of(MUTATION, QuotaRules({QuotaEntity("alice"): 10.0}))
    (evaluated,) = Shadows([shadow]).evaluate(world(*rows, rules={MUTATION: rules}), set())
    assert (evaluated.entities, evaluated.unevaluated) == ((), {(MUTATION, "1", UnevaluatedReason.MUTATION): 1})


@pytest.mark.parametrize(
    ("limit", "expected", "worse"),
    [
        pytest.param(
            20.0, {"alice": "longer", "bob": "new"}, {"alice": (11.55, 11.15), "bob": (5.5, 5.5)}, id="tighter"
        ),
        pytest.param(40.0, {"alice": "unchanged"}, {}, id="equal"),
        pytest.param(100.0, {"alice": "shorter"}, {}, id="looser"),
        pytest.param(inf, {"alice": "ended"}, {}, id="unlimited"),
    ],
)
def test_a_shadow_is_compared_with_what_is_in_force(
    limit: float, expected: dict[str, str], worse: dict[str, tuple[float, float]]
) -> None:
    """
    An unchanged entity has the broker's own value, and comes last, however long its throttle is.

    A raised limit has a bound.
    """
    produce = {QuotaEntity(user): 40.0 for user in ("alice", "bob", "carol", "dave")}
    mutations = QuotaRules({QuotaEntity("alice"): 1.0})
    measured = [
        usage(MUTATION, "alice", limit=1.0, burst_tokens=11.0, usage=5.0, tokens=-12.0, throttle_time_seconds=None),
        usage(PRODUCE, "alice", limit=40.0, usage=41.0, throttle_time_seconds=0.4),
        usage(PRODUCE, "bob", limit=40.0, usage=30.0),
        usage(PRODUCE, "carol", limit=40.0, usage=2.0),
        usage(PRODUCE, "dave", limit=40.0, usage=40.0, throttle_time_seconds=0.2),
    ]
    in_force = {PRODUCE: QuotaRules(produce), MUTATION: mutations}
    changed = QuotaSet({QuotaEntity(user): {PRODUCE.quota_key: limit} for user in ("alice", "bob", "carol")})
    shadows = Shadows([Candidate(name="x", quotas=changed, added=changed)])
    (evaluated,) = shadows.evaluate(world(*measured, rules=in_force, nodes=BOTH_NODES[:1]), set())
    by_place = {
        (entity_usage.entity.quota_type, entity_usage.entity.user): entity_usage for entity_usage in evaluated.entities
    }
    expected = expected | {"dave": "unchanged"}
    assert {
        user: entity_usage.change
        for (kind, user), entity_usage in by_place.items()
        if kind is PRODUCE and entity_usage.change
    } == expected
    mutation = by_place[MUTATION, "alice"]
    assert (mutation.throttle_time_seconds, mutation.change, mutation.change_seconds) == (12.0, "unchanged", 0.0)
    assert [entity_usage.unchanged for entity_usage in evaluated.entities] == sorted(
        entity_usage.unchanged for entity_usage in evaluated.entities
    )
    counts = Counter(expected.values())
    assert evaluated.changes == {(PRODUCE, "1"): changes(**counts), (MUTATION, "1"): changes(unchanged=1)}
    assert evaluated.worse == bool(worse)
    times = {
        entity_usage.entity.user: (entity_usage.throttle_time_seconds, entity_usage.change_seconds)
        for entity_usage in evaluated.entities
        if entity_usage.worse
    }
    assert times == {user: pytest.approx(seconds) for user, seconds in worse.items()}
    held_back = {user for (_, user), entity_usage in by_place.items() if entity_usage.held_back}
    assert held_back == {user for user, change in expected.items() if change in {"longer", "shorter"}}
    assert evaluated.unevaluated == {}


def test_old_numbers_end_no_throttle() -> None:
    """It is unknown if a broker whose answer is late still throttles a client."""
    held = [
        usage(PRODUCE, "alice", "a", broker=node, limit=10.0, usage=11.0, throttle_time_seconds=0.4) for node in "12"
    ]
    (shadow,) = Shadows([candidate_of(FETCH, ALICE)]).evaluate(world(*held), {"2"})
    assert shadow.changes[PRODUCE, "1"] == changes(ended=1)
    assert shadow.changed(ThrottleChange.ENDED) == 1


def test_a_request_throttle_of_the_controller_holds_no_client_back() -> None:
    """A request throttle of a mutation quota holds no request time back."""
    throttled = usage(
        REQUEST, "alice", "a", limit=0.1, usage=0.02, throttle_time_seconds=3.0, cause=ThrottleCause.CONTROLLER_MUTATION
    )
    rules = QuotaRules({QuotaEntity("alice"): 50.0})
    for cause, evaluated_count in ((ThrottleCause.CONTROLLER_MUTATION, 1), (ThrottleCause.OWN, 0)):
        snapshot = world(replace(throttled, cause=cause), rules={REQUEST: PAIRS})
        (shadow,) = Shadows([candidate_of(REQUEST, rules)]).evaluate(snapshot, set())
        assert len(shadow.entities) == evaluated_count
        assert ((REQUEST, "1", UnevaluatedReason.CENSORED) in shadow.unevaluated) == (not evaluated_count)


def test_the_cluster_own_quotas_are_the_base() -> None:
    """A shadow is based on the cluster's quotas, also after they change, unless the file lists its own."""
    changes = QuotaSet({QuotaEntity("alice"): {PRODUCE.quota_key: 5.0}})
    shadows = Shadows([Candidate(name="x", quotas=changes, added=changes)])
    rate = usage(PRODUCE, "bob", "a", usage=20.0)
    for limit, ratio in ((10.0, 2.0), (40.0, 0.5)):
        rules = QuotaRules({QuotaEntity(DEFAULT, DEFAULT): limit})
        (shadow,) = shadows.evaluate(world(rate, rules={PRODUCE: rules}), set())
        assert [entity_usage.utilization for entity_usage in shadow.entities] == [ratio]


@pytest.mark.parametrize(("kind", "longest"), [(PRODUCE, 2**31 - 1), (REQUEST, 2_000)])
def test_a_limit_of_zero_throttles_any_usage_and_no_idle_entity(kind: QuotaType, longest: int) -> None:
    """A limit of zero, which clusters with ZooKeeper store, throttles any usage and no idle entity."""
    rules = {QuotaEntity(name): 0.0 for name in ("alice", "bob")}
    rows = {("alice", ""): Measured(0.0, 0.0), ("bob", ""): Measured(1.0, 0.0)}
    joined = snapshot_of(kind, limits_of(kind, QuotaRules(dict.fromkeys(rules, 40.0))), rows, {})
    (shadow,) = Shadows([candidate_of(kind, QuotaRules(rules))]).evaluate(joined, set())
    numbers_by_user = {
        entity_usage.entity.user: (entity_usage.used, entity_usage.throttle_time_seconds)
        for entity_usage in shadow.entities
    }
    assert numbers_by_user == {"alice": (None, 0.0), "bob": (inf, longest / 1_000)}
    assert shadow.changes == {(kind, "1"): changes(new=1)}


@pytest.mark.parametrize(
    ("release", "usage_bytes", "seconds"),
    [
        (None, 3e6, 2**31 / 1000 - 0.001),
        (ReleaseRange(oldest=KAFKA_4_4, newest=None), 3e6, 2**31 / 1000 - 0.001),
        # 5,999,998,000 ms: 1,705,030,704 in its low 32 bits
        (ReleaseRange(oldest=KAFKA_4_0, newest=KAFKA_4_2), 3e6, 1_705_030.704),
        # 2,999,998,000 ms: negative
        (ReleaseRange(oldest=KAFKA_4_0, newest=KAFKA_4_2), 1.5e6, 0.0),
        (ReleaseRange(oldest=KAFKA_4_0, newest=KAFKA_4_2), 1e6, 1_999_998.0),
        (ReleaseRange(oldest=None, newest=KafkaRelease(2, 4, zookeeper=True)), 1e300, 0.0),
    ],
)
def test_above_24_days_a_throttle_is_what_the_release_sends(
    release: ReleaseRange | None, usage_bytes: float, seconds: float
) -> None:
    """The shadow answers as the engine: since 4.4 the longest throttle that fits, before that the low 32 bits."""
    rules = {PRODUCE: QuotaRules({QuotaEntity("alice"): 1e9})}
    joined = world(usage(PRODUCE, "alice", usage=usage_bytes), rules=rules)
    assert joined.limits is not None
    settings = {"1": NodeSettings(quota_samples=2, quota_window_seconds=1)}
    configured = replace(joined.limits, nodes=settings, releases={} if release is None else {"1": release})
    (shadow,) = Shadows([candidate_of(PRODUCE, QuotaRules({QuotaEntity("alice"): 1.0}))]).evaluate(
        replace(joined, limits=configured), set()
    )
    assert [entity_usage.throttle_time_seconds for entity_usage in shadow.entities] == [pytest.approx(seconds)]


@pytest.mark.parametrize(("tokens", "seconds"), [(0.0, 0.0), (-1.0, LONG_MAX / 1_000)])
def test_a_bucket_in_debt_under_a_limit_of_zero_is_never_even(tokens: float, seconds: float) -> None:
    """A bucket in debt under a limit of zero, which nothing refills, throttles for the longest time of Kafka."""
    rules = QuotaRules({QuotaEntity("alice"): 0.0})
    bucket = usage(MUTATION, "alice", limit=0.0, burst_tokens=0.0, usage=0.0, tokens=tokens)
    (shadow,) = Shadows([candidate_of(MUTATION, rules)]).evaluate(world(bucket, rules={MUTATION: rules}), set())
    assert [entity_usage.throttle_time_seconds for entity_usage in shadow.entities] == [seconds]


def test_an_infinite_limit_throttles_no_client() -> None:
    """An infinite limit, which Kafka stores up to 4.3, has a known throttle time of 0."""
    rules = QuotaRules({QuotaEntity(DEFAULT, DEFAULT): inf})
    (shadow,) = Shadows([candidate_of(REQUEST, rules)]).evaluate(
        world(usage(REQUEST, "bob", "a", usage=20.0), rules={REQUEST: PAIRS}), set()
    )
    assert [entity_usage.throttle_time_seconds for entity_usage in shadow.entities] == [0.0]
    assert shadow.changes == {(REQUEST, node): changes() for node in "12"}
