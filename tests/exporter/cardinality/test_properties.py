"""What holds whatever the entities are, and however they change."""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from dataclasses import replace
from math import nan
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.cardinality.examples import (
    Labels,
    cardinality,
    folds,
    page,
    taken,
    with_maxima,
)
from tests.exporter.examples import usage
from tests.strategies import texts

from quotascope.exporter.snapshot import Cause, EntityUsage, Snapshot
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import OVERFLOW

SUMMED = (
    "kafka_quota_produce_bytes_per_second",
    "kafka_quota_fetch_bytes_per_second",
    "kafka_quota_request_threads",
    "kafka_quota_controller_mutations_per_second",
)
COUNTED = (
    "throttled_seconds_total",
    "throttled_requests_total",
    "rejected_mutations_total",
)
RULES = QuotaRules({QuotaEntity("u0", None): 8.0})
Key = tuple[str, QuotaType, str, str]

names = st.sampled_from(("", "u0", "u1", "u2", "u3", OVERFLOW)) | texts
whole = st.integers(0, 64).map(float)
keys = st.tuples(st.sampled_from("12"), st.sampled_from(QuotaType), names, names)


@st.composite
def entity_usages(draw: st.DrawFn, key: Key) -> EntityUsage:
    """One entity as a broker or an engine of ours tells it; whole numbers, so that sums are exact."""
    broker, kind, user, client_id = key
    resolution = RULES.limit(user, client_id)
    limited = resolution is not None
    throttle = draw(whole)
    mutations = kind is QuotaType.CONTROLLER_MUTATION
    made = usage(
        kind,
        user,
        client_id,
        broker=broker,
        limit=8.0 if limited else None,
        burst_tokens=80.0 if limited and mutations else None,
        usage=draw(st.none() | whole),
        throttle_time_seconds=throttle,
        cause=Cause.OWN if throttle else None,
        tokens=draw(st.none() | whole) if limited and mutations else None,
        told_utilization=draw(st.none() | st.just(nan) | whole),
    )
    return replace(made, entity=replace(made.entity, resolution=resolution))


@st.composite
def crowds(draw: st.DrawFn) -> list[EntityUsage]:
    """The entities of two brokers at one moment."""
    drawn = draw(st.sets(keys, max_size=30))
    return [draw(entity_usages(key)) for key in sorted(drawn, key=str)]


configs = st.fixed_dictionaries(
    {"max_entities": st.integers(1, 4)},
    optional={
        "exclude_users": st.just(["u1"]),
        "include_client_ids": st.just(["u.*"]),
        "detail_above": st.just(0.5),
        "idle_after_seconds": st.just(20.0),
    },
)


def key_of(each: EntityUsage) -> Key:
    """What tells two entities apart."""
    entity = each.entity
    return entity.broker, entity.quota_type, entity.user, entity.client_id


def sums(shown: Snapshot) -> dict[tuple[str, str], float]:
    """The sum of each family over all entities, by broker."""
    added: dict[tuple[str, str], float] = defaultdict(float)
    for (name, labels), value in page(shown).items():
        if name in SUMMED:
            added[name, dict(labels)["broker"]] += value
    return {key: total for key, total in added.items() if total}


@given(crowd=crowds(), config=configs)
def test_sums_are_those_of_all_entities(
    crowd: list[EntityUsage], config: dict[str, Any]
) -> None:
    """No usage gets lost, whatever is folded or left out as idle."""
    joined = taken(crowd)
    assert sums(cardinality(**config).apply(joined)) == sums(joined)


@given(moments=st.lists(crowds(), max_size=5), config=configs)
def test_no_more_than_the_cap_are_shown(
    moments: list[list[EntityUsage]], config: dict[str, Any]
) -> None:
    """Neither at first nor later, for any quota type."""
    kept = cardinality(**config)
    for number, crowd in enumerate(moments):
        shown = kept.apply(taken(crowd, 15 * number))
        for kind in QuotaType:
            pairs = {
                key_of(each)[2:]
                for each in shown.entities
                if each.entity.quota_type is kind
            }
            assert len(pairs - {(OVERFLOW, OVERFLOW)}) <= config["max_entities"]


@given(moments=st.lists(crowds(), max_size=5), config=configs, seed=st.integers())
def test_order_does_not_matter(
    moments: list[list[EntityUsage]], config: dict[str, Any], seed: int
) -> None:
    """Two exporters that read brokers in another order show the same."""
    one, other = cardinality(**config), cardinality(**config)
    for number, crowd in enumerate(moments):
        mixed = Random(seed).sample(crowd, len(crowd))  # noqa: S311 - hypothesis draws the seed
        first, second = (
            kept.apply(taken(usages, 15 * number))
            for kept, usages in ((one, crowd), (other, mixed))
        )
        assert page(first) == page(second)
        assert first.folds == second.folds


@given(crowd=crowds(), config=configs, more=st.integers(1, 20))
def test_nothing_moves_while_nothing_changes(
    crowd: list[EntityUsage], config: dict[str, Any], more: int
) -> None:
    """The same numbers give the same series, for as long as they stay the same."""
    config.pop("idle_after_seconds", None)
    kept = cardinality(**config)
    first = page(kept.apply(taken(crowd)))
    for number in range(more):
        assert page(kept.apply(taken(crowd, 60 * number))) == first


@given(crowd=crowds(), config=configs, maxima=st.booleans())
def test_every_series_that_is_not_shown_is_counted(
    crowd: list[EntityUsage], config: dict[str, Any], *, maxima: bool
) -> None:
    """The page without bounds has as many series more as the counts say, the maxima of sampling included."""
    unbounded = [each for each in crowd if OVERFLOW not in key_of(each)]
    scraped = with_maxima if maxima else copy
    before = set(page(scraped(taken(unbounded))))
    config.pop("idle_after_seconds", None)
    shown = cardinality(maxima=maxima, **config).apply(taken(unbounded))
    after = {series for series in page(scraped(shown)) if not is_fold(series)}
    assert after <= before
    assert len(before - after) == sum(shown.folds.series_dropped.values())
    folded = shown.folds.overflow + shown.folds.excluded
    assert len(shown.measured) == len(unbounded)
    assert len(shown.left_out) == folded


def is_fold(series: tuple[str, Labels]) -> bool:
    """Whether a series stands for others."""
    return ("user", OVERFLOW) in series[1]


@st.composite
def histories(draw: st.DrawFn) -> list[list[EntityUsage]]:
    """Some entities that count from moment to moment, not always all of them."""
    members = sorted(draw(st.sets(keys, min_size=1, max_size=8)), key=str)
    totals = dict.fromkeys(members, 0.0)
    moments = []
    for _ in range(draw(st.integers(1, 6))):
        moment = []
        for key in members:
            totals[key] += draw(whole)
            counters: dict[str, Any] = dict.fromkeys(COUNTED, totals[key])
            moment.append(replace(draw(entity_usages(key)), **counters))
        moments.append(moment)
    return moments


def fold_totals(shown: Snapshot) -> dict[Key, float]:
    """The counters of the folds."""
    return {key_of(each): each.throttled_requests_total or 0.0 for each in folds(shown)}


@given(history=histories(), config=configs)
def test_counters_of_folds_never_go_back(
    history: list[list[EntityUsage]], config: dict[str, Any]
) -> None:
    """Whoever comes, leaves or disappears, nothing looks like a restart."""
    kept = cardinality(**config)
    before: dict[Key, float] = {}
    for number, crowd in enumerate(history):
        here = crowd if number % 2 else crowd[: len(crowd) // 2 + 1]
        now = fold_totals(kept.apply(taken(here, 150 * number)))
        assert all(now[key] >= value for key, value in before.items() if key in now)
        before |= now


@given(history=histories(), config=configs)
def test_growth_is_that_of_all_entities(
    history: list[list[EntityUsage]], config: dict[str, Any]
) -> None:
    """Folds and the series that go on grow together as much as all entities did."""
    config.pop("idle_after_seconds", None)
    kept = cardinality(**config)
    own: dict[Key, float] = {}
    folded: dict[Key, float] = {}
    for number, crowd in enumerate(history):
        shown = kept.apply(taken(crowd, 150 * number))
        now = {
            key_of(each): each.throttled_requests_total or 0.0
            for each in shown.measured
            if each not in shown.left_out
        }
        grew = sum(now[key] - own[key] for key in now.keys() & own.keys())
        totals = fold_totals(shown)
        grew += sum(totals.values()) - sum(folded.values())
        if number:
            assert grew == counted(crowd) - counted(history[number - 1])
        own, folded = now, totals


def counted(crowd: list[EntityUsage]) -> float:
    """What all of them have counted."""
    return sum(each.throttled_requests_total or 0.0 for each in crowd)
