"""What shadows would do, beside a plain recomputation that goes through all requests of a small world."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.examples import usage

from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.shadow import Shadows, UnevaluatedReason
from quotascope.exporter.snapshot import (
    Callbacks,
    Columns,
    Entity,
    EntityUsage,
    NodeUsage,
    Shadow,
    Snapshot,
    ThrottleCause,
)
from quotascope.metrics import DEFAULT, NO_RULE, QuotaEntity, QuotaRules, QuotaType, RuleTable
from quotascope.metrics.numbers import LONG_MAX
from quotascope.metrics.throttle_time import rate_formula_ms
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


def snapshot_of(kind: QuotaType, rules: RuleTable, rows: Mapping[tuple[str, str], Measured], kept: Kept) -> Snapshot:
    unit = UNIT.get(kind, 1.0)
    usages = []
    for (user, client), row in rows.items():
        bound = rules.bound_of(user, client)
        entity = kept.setdefault(
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
    nodes = {"1": NodeSettings(quota_samples=5, quota_window_seconds=2.0)}
    limits = Limits(rules={kind: rules}, nodes=nodes, read_at=TAKEN_AT)
    return Snapshot(taken_at=TAKEN_AT, shown=Columns.of(usages), nodes=(NodeUsage(broker="1"),), limits=limits)


def candidate_of(kind: QuotaType, rules: RuleTable) -> Candidate:
    quotas = QuotaSet({entity: {kind.quota_key: bound} for entity, bound in rules.items()})
    return Candidate(name="x", quotas=quotas, based=True)


class Outcome(NamedTuple):
    known: dict[tuple[str, str], tuple[float, float]]
    """Utilization and throttle time in seconds by tags."""
    unknown: Counter[str]


def recomputed(
    kind: QuotaType, enforced: RuleTable, rules: RuleTable, rows: Mapping[tuple[str, str], Measured]
) -> Outcome:
    """Request by request: what may be in each row, where the shadow would count it, and what Kafka would answer."""
    inside = defaultdict[tuple[str, str], set[tuple[str, str]]](set)
    for request in REQUESTS:
        row = enforced.metric_tags(*request)
        if row in rows:
            inside[row].add(rules.metric_tags(*request))
    limited = {row for row, tags in inside.items() if any(rules.bound_of(*each) for each in tags)}
    torn = {row for row in limited if len(inside[row]) > 1}
    unknown = Counter[str]({UnevaluatedReason.FINER: len(torn)} if torn else {})
    known = {}
    for tags in {tag for row in limited - torn for tag in inside[row]}:
        bound = rules.bound_of(*tags)
        assert bound is not None
        members = [row for row in limited - torn if tags in inside[row]]
        usages = [rows[row].usage for row in members]
        if any(tags in inside[row] for row in torn):
            unknown[UnevaluatedReason.FINER] += 1
        elif None in usages:
            unknown[UnevaluatedReason.ABSENT] += 1
        elif any(_held(rows[row], enforced.bound_of(*row), bound) for row in members):
            unknown[UnevaluatedReason.CENSORED] += 1
        else:
            rate = sum(usage for usage in usages if usage is not None)
            known[tags] = rate / bound, _seconds(kind, rate, bound)
    return Outcome(known, unknown)


def _held(row: Measured, enforced: float | None, bound: float) -> bool:
    if enforced is None or enforced >= bound:
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
    known = {
        (each.entity.user, each.entity.client_id): (each.utilization or 0.0, each.throttle_time_seconds or 0.0)
        for each in shadow.entities
    }  # fmt: skip
    unknown = Counter[str]()
    for (_, broker, reason), count in shadow.unevaluated.items():
        assert broker == "1"
        unknown[reason] += count
    return Outcome(known, unknown)


@given(
    kind=st.sampled_from([PRODUCE, REQUEST]),
    one=tables.filter(bool),
    others=st.lists(tables, min_size=1, max_size=3),
    steps=st.lists(st.dictionaries(st.sampled_from(REQUESTS), measured), min_size=1, max_size=3)
)  # fmt: skip
def test_it_is_what_request_by_request_would_be(
    kind: QuotaType,
    one: dict[QuotaEntity, float],
    others: list[dict[QuotaEntity, float]],
    steps: list[dict[tuple[str, str], Measured]],
) -> None:
    """For rules of all levels, whatever is measured, and while entities come and go: never a guess, and nothing unknown that could be known."""
    enforced = QuotaRules(one)
    each = [QuotaRules(other) for other in others]
    shadows, kept = Shadows([candidate_of(kind, rules) for rules in each]), Kept()
    for step in steps:
        rows = {enforced.metric_tags(*request): row for request, row in step.items()}
        snapshot = snapshot_of(kind, enforced, rows, kept)
        for rules, shadow in zip(each, shadows.of(snapshot, set()), strict=True):
            expected, found = recomputed(kind, enforced, rules, rows), reported(shadow)
            assert found.known.keys() == expected.known.keys()
            for tags, numbers in expected.known.items():
                assert found.known[tags] == pytest.approx(numbers)
            assert found.unknown == expected.unknown
            if rules and (expected.known or not expected.unknown):
                throttled = sum(seconds > 0 for _, seconds in expected.known.values())
                assert shadow.throttled == {(kind, "1"): throttled}
                assert shadow.evaluated == {(kind, "1"): len(expected.known)}


PAIRS: Final = QuotaRules({QuotaEntity(DEFAULT, DEFAULT): 10.0})
ALICE: Final = QuotaRules({QuotaEntity("alice"): 5.0})
BOTH_NODES: Final = (NodeUsage(broker="1"), NodeUsage(broker="2"))


def world(*usages: EntityUsage, rules: Mapping[QuotaType, RuleTable] | None = None, **changes: Any) -> Snapshot:
    """Two brokers, with rules for pairs unless others are given."""
    given = Limits(rules=rules or {PRODUCE: PAIRS}, read_at=TAKEN_AT)
    changes = {"nodes": BOTH_NODES, "limits": given, **changes}
    return Snapshot(taken_at=TAKEN_AT, shown=Columns.of(usages), **changes)


def test_a_shadow_adds_up_on_each_broker_by_itself() -> None:
    """Quotas are per broker; the one nearest to its limit comes first, and brokers without clients have none throttled."""
    snapshot = world(
        usage(PRODUCE, "alice", "a", usage=4.0),
        usage(PRODUCE, "alice", "b", usage=3.0),
        usage(PRODUCE, "alice", "a", broker="2", usage=1.0),
        usage(PRODUCE, "bob", "a", usage=50.0),
    )
    (shadow,) = Shadows([candidate_of(PRODUCE, ALICE)]).of(snapshot, set())
    entities = [(each.entity.quota_type, each.entity.user, each.entity.client_id) for each in shadow.entities]
    assert entities == [(PRODUCE, "alice", "")] * 2
    numbers = [(each.entity.broker, each.usage, each.throttle_time_seconds) for each in shadow.entities]
    assert numbers == [("1", 7.0, 4.4), ("2", 1.0, 0.0)]
    assert shadow.throttled == {(PRODUCE, "1"): 1, (PRODUCE, "2"): 0}
    assert shadow.unevaluated == {}
    (few,) = Shadows([candidate_of(PRODUCE, ALICE)], most=1).of(snapshot, set())
    assert (few.entities, few.throttled) == (shadow.entities[:1], shadow.throttled)
    (none,) = Shadows([candidate_of(PRODUCE, ALICE)], shows=lambda user, _: user != "alice").of(snapshot, set())
    assert (none.entities, none.throttled) == ((), shadow.throttled)


@pytest.mark.parametrize(
    ("snapshot", "late", "expected"),
    [
        pytest.param(world(limits=None), (), dict.fromkeys("12", UnevaluatedReason.LIMITS_UNKNOWN), id="no limits"),
        pytest.param(
            world(callbacks=Callbacks(labels=("zone",))),
            (),
            dict.fromkeys("12", UnevaluatedReason.LIMITS_UNKNOWN),
            id="callback",
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
    """By broker; where nothing is known there is no count of those throttled, which would be zero."""
    (found,) = Shadows([candidate_of(PRODUCE, ALICE)]).of(snapshot, set(late))
    assert found.unevaluated == {(PRODUCE, *each): 1 for each in expected.items()}
    quiet = {(PRODUCE, broker): 0 for broker in ("1", "2") if broker not in expected}
    assert found.throttled == quiet


def test_a_broker_that_is_not_read_any_more_is_unknown_for_an_hour() -> None:
    """With as many entities as it had; afterwards it is taken to be gone."""
    snapshot = world(usage(PRODUCE, "alice", "a", broker="2", usage=4.0))
    shadows = Shadows([candidate_of(PRODUCE, ALICE)])
    shadows.of(snapshot, set())
    gone = world(nodes=BOTH_NODES[:1])
    (found,) = shadows.of(gone, set())
    assert found.unevaluated == {(PRODUCE, "2", UnevaluatedReason.ABSENT): 1}
    (found,) = shadows.of(replace(gone, taken_at=TAKEN_AT + 3601), set())
    assert (found.unevaluated, found.throttled) == ({}, {(PRODUCE, "1"): 0})


@pytest.mark.parametrize(
    ("bound", "tokens", "expected"), [(10.0, 4.0, 0.0), (10.0, -25.0, 2.5), (9.0, -25.0, None), (10.0, None, None)]
)
def test_mutations_are_known_under_a_limit_that_stays(
    bound: float, tokens: float | None, expected: float | None
) -> None:
    """The broker's bucket is then the shadow's; of another limit the bucket's past is not known."""
    measured = usage(MUTATION, "alice", "a", limit=10.0, usage=2.0, tokens=tokens)
    shadow = candidate_of(MUTATION, QuotaRules({QuotaEntity("alice", "a"): bound}))
    (found,) = Shadows([shadow]).of(world(measured, rules={MUTATION: PAIRS}), set())
    throttles = [each.throttle_time_seconds for each in found.entities]
    assert throttles == ([] if expected is None else [expected])
    reason = UnevaluatedReason.ABSENT if tokens is None else UnevaluatedReason.MUTATION
    unknown = {} if expected is not None else {(MUTATION, "1", reason): 1}
    assert found.unevaluated == unknown


def test_a_request_throttle_of_the_controller_holds_no_client_back() -> None:
    """It comes from a mutation quota: how much request time the client wants is seen."""
    throttled = usage(
        REQUEST, "alice", "a", limit=0.1, usage=0.02, throttle_time_seconds=3.0, cause=ThrottleCause.CONTROLLER_MUTATION
    )
    rules = QuotaRules({QuotaEntity("alice"): 50.0})
    for cause, known in ((ThrottleCause.CONTROLLER_MUTATION, 1), (ThrottleCause.OWN, 0)):
        snapshot = world(replace(throttled, cause=cause), rules={REQUEST: PAIRS})
        (found,) = Shadows([candidate_of(REQUEST, rules)]).of(snapshot, set())
        assert len(found.entities) == known
        assert ((REQUEST, "1", UnevaluatedReason.CENSORED) in found.unevaluated) == (not known)


def test_the_cluster_own_quotas_are_the_base() -> None:
    """Also after they change, unless the file lists quotas of its own."""
    changes = QuotaSet({QuotaEntity("alice"): {PRODUCE.quota_key: 5.0}})
    shadows = Shadows([Candidate(name="x", quotas=changes, added=changes)])
    rate = usage(PRODUCE, "bob", "a", usage=20.0)
    for limit, ratio in ((10.0, 2.0), (40.0, 0.5)):
        rules = QuotaRules({QuotaEntity(DEFAULT, DEFAULT): limit})
        (found,) = shadows.of(world(rate, rules={PRODUCE: rules}), set())
        assert [each.utilization for each in found.entities] == [ratio]


@pytest.mark.parametrize(("kind", "longest"), [(PRODUCE, 2**31 - 1), (REQUEST, 2_000)])
def test_a_limit_of_zero_throttles_any_usage_and_no_idle_entity(kind: QuotaType, longest: int) -> None:
    """Clusters with ZooKeeper store it; nothing of nothing is no violation."""
    rules = {QuotaEntity(name): 0.0 for name in ("alice", "bob")}
    rows = {("alice", ""): Measured(0.0, 0.0), ("bob", ""): Measured(1.0, 0.0)}
    joined = snapshot_of(kind, QuotaRules(dict.fromkeys(rules, 40.0)), rows, {})
    (found,) = Shadows([candidate_of(kind, QuotaRules(rules))]).of(joined, set())
    known = {each.entity.user: (each.used, each.throttle_time_seconds) for each in found.entities}
    assert known == {"alice": (None, 0.0), "bob": (inf, longest / 1_000)}
    assert found.throttled == {(kind, "1"): 1}


@pytest.mark.parametrize(("tokens", "seconds"), [(0.0, 0.0), (-1.0, LONG_MAX / 1_000)])
def test_a_bucket_in_debt_under_a_limit_of_zero_is_never_even(tokens: float, seconds: float) -> None:
    """Nothing refills it: the longest time that Kafka has."""
    rules = QuotaRules({QuotaEntity("alice"): 0.0})
    bucket = usage(MUTATION, "alice", limit=0.0, burst_tokens=0.0, usage=0.0, tokens=tokens)
    (found,) = Shadows([candidate_of(MUTATION, rules)]).of(world(bucket, rules={MUTATION: rules}), set())
    assert [each.throttle_time_seconds for each in found.entities] == [seconds]


def test_an_infinite_limit_throttles_no_client() -> None:
    """Kafka up to 4.3 stores it: its throttle time is 0, which is known."""
    rules = QuotaRules({QuotaEntity(DEFAULT, DEFAULT): inf})
    (found,) = Shadows([candidate_of(REQUEST, rules)]).of(
        world(usage(REQUEST, "bob", "a", usage=20.0), rules={REQUEST: PAIRS}), set()
    )
    assert [each.throttle_time_seconds for each in found.entities] == [0.0]
    assert set(found.throttled.values()) == {0}
