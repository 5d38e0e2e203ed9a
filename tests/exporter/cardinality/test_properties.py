"""What holds whatever the entities are, and however they change."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from itertools import pairwise
from math import isnan, nan
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.cardinality.examples import Labels, cardinality, folds, page, taken, with_maxima
from tests.exporter.cardinality.plain import Plain
from tests.exporter.examples import usage
from tests.strategies import texts

from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.snapshot import Callbacks, Entity, EntityUsage, ThrottleCause
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import OVERFLOW

RULES = QuotaRules({QuotaEntity("u0", None): 8.0})
Key = tuple[str, QuotaType, str, str]

names = st.sampled_from(("", "u0", "u1", "u2", "u3", OVERFLOW)) | texts
whole = st.integers(0, 64).map(float)
few = st.sampled_from((0.0, 0.0, 0.0, 0.5, 2.0))
nodes = st.sampled_from("12")
kinds = st.sampled_from(QuotaType)
labels = st.tuples(st.sampled_from((*"abcd", OVERFLOW)), st.sampled_from("xy"))
keys = st.tuples(nodes, kinds, names, names)


@st.composite
def entity_usages(draw: st.DrawFn, key: Key) -> EntityUsage:
    """One entity as a broker or an engine of ours reports it; whole numbers, so that sums are exact."""
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
        cause=ThrottleCause.OWN if throttle else None,
        tokens=draw(st.none() | whole) if limited and mutations else None,
        reported_utilization=draw(st.none() | st.just(nan) | whole),
    )
    return replace(made, entity=replace(made.entity, resolution=resolution))


@st.composite
def crowds(draw: st.DrawFn) -> list[EntityUsage]:
    drawn = draw(st.sets(keys, max_size=30))
    return [draw(entity_usages(key)) for key in sorted(drawn, key=str)]


configs = st.fixed_dictionaries(
    {"max_entities": st.integers(1, 4)},
    optional={
        "include_users": st.just(["u[0-2]", OVERFLOW]),
        "exclude_users": st.just(["u1"]),
        "include_client_ids": st.just(["u.*"]),
        "excluded": st.just("drop"),
        "detail_above": st.just(0.5),
        "idle_after_seconds": st.just(30.0),
    },
)


def key_of(each: EntityUsage) -> Key:
    entity = each.entity
    return entity.broker, entity.quota_type, entity.user, entity.client_id


@pytest.mark.slow
@given(moments=st.lists(crowds(), max_size=5), config=configs, seed=st.integers())
def test_order_does_not_matter(moments: list[list[EntityUsage]], config: dict[str, Any], seed: int) -> None:
    """Two exporters that read brokers in another order show the same."""
    one, other = cardinality(**config), cardinality(**config)
    for number, crowd in enumerate(moments):
        mixed = Random(seed).sample(crowd, len(crowd))  # noqa: S311 - hypothesis draws the seed
        first, second = (kept.apply(taken(usages, 15 * number)) for kept, usages in ((one, crowd), (other, mixed)))
        assert page(first) == page(second)
        assert first.folds == second.folds


@pytest.mark.slow
@given(crowd=crowds(), config=configs, more=st.integers(1, 20))
def test_nothing_moves_while_nothing_changes(crowd: list[EntityUsage], config: dict[str, Any], more: int) -> None:
    """The same numbers give the same series, for as long as they stay the same."""
    config.pop("idle_after_seconds", None)
    kept = cardinality(**config)
    first = page(kept.apply(taken(crowd)))
    for number in range(more):
        assert page(kept.apply(taken(crowd, 60 * number))) == first


tagged_usages = st.builds(
    lambda place, used, throttle: EntityUsage(
        entity=Entity(broker=place[0], quota_type=place[1], user="", client_id="", tags=place[2]),
        usage=used,
        throttle_time_seconds=throttle,
    ),
    st.tuples(nodes, kinds, labels),
    st.none() | whole,
    few,
)
"""Entities of a custom quota callback."""
callbacks = st.lists(
    tagged_usages, max_size=12, unique_by=lambda each: (each.entity.broker, each.entity.quota_type, each.entity.tags)
)


@given(tagged=callbacks, most=st.integers(1, 4))
def test_every_series_of_a_callback_that_is_not_shown_is_counted(tagged: list[EntityUsage], most: int) -> None:
    """The page without bounds has as many series more as the counts say."""
    check_counts([], tagged, {"max_entities": most}, maxima=False)


@pytest.mark.slow
@given(crowd=crowds(), tagged=callbacks, config=configs, maxima=st.booleans())
def test_every_series_that_is_not_shown_is_counted(
    crowd: list[EntityUsage], tagged: list[EntityUsage], config: dict[str, Any], *, maxima: bool
) -> None:
    """Those of Kafka's own quotas, of callbacks and of sampling together."""
    check_counts(crowd, tagged, config, maxima=maxima)


def check_counts(crowd: list[EntityUsage], tagged: list[EntityUsage], config: dict[str, Any], *, maxima: bool) -> None:
    """Compare a page without bounds, one with them and the counts of what is left out."""
    own = [each for each in crowd if OVERFLOW not in key_of(each)]
    others = [each for each in tagged if OVERFLOW not in (each.entity.tags or ())]
    unbounded = replace(taken([*own, *others], up="12"), callbacks=Callbacks(labels=("tenant", "tier")))
    scraped = with_maxima if maxima else copy
    before = set(page(scraped(unbounded)))
    config.pop("idle_after_seconds", None)
    shown = cardinality(maxima=maxima, **config).apply(unbounded)
    after = {series for series in page(scraped(shown)) if not is_fold(series)}
    assert after <= before
    assert len(before - after) == sum(shown.folds.series_dropped.values())
    folded = shown.folds.overflow + shown.folds.excluded
    assert len(shown.measured) == len(own)
    assert len(shown.entities) - len(folds(shown)) == len(own) - folded
    alone = [each for each in shown.shown.tagged if not each.entity.stands_in]
    assert len(others) == shown.callbacks.folded + len(alone)


def is_fold(series: tuple[str, Labels]) -> bool:
    return not {("user", OVERFLOW), ("tenant", OVERFLOW)}.isdisjoint(series[1])


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[float, str, list[EntityUsage]]]:
    members = draw(st.lists(keys, min_size=1, max_size=25, unique=True))
    tagged = draw(st.lists(st.tuples(nodes, kinds, labels), max_size=8, unique=True))
    serials: dict[object, int] = {}
    at, moments = 0.0, []
    for _ in range(draw(st.integers(1, 8))):
        up = draw(st.sampled_from(("12", "12", "1")))
        crowd = [draw(entity_usages(key)) for key in members if key[0] in up]
        for node, kind, tags in tagged:
            entity = usage(kind, "", broker=node, tags=tags).entity
            used = EntityUsage(entity=entity, usage=draw(st.none() | whole), throttle_time_seconds=draw(few))
            crowd.append(used)
        there = [each for each in crowd if draw(st.integers(0, 9))]
        for each in there:
            entity = each.entity
            key = (*key_of(each), entity.tags)
            serial = serials.setdefault(key, entity.serial)
            each.entity = replace(entity, serial=serial)
            if each.reported_utilization is not None and isnan(each.reported_utilization):
                each.reported_utilization = None  # as columns have it
        moments.append((at, up, there))
        at += draw(st.sampled_from((0.0, 15.0, 15.0, 15.0, 150.0, 299.0, 300.0)))
    return moments


@pytest.mark.slow
@given(history=histories(), config=configs)
def test_what_is_shown_follows_plainly(
    history: list[tuple[float, str, list[EntityUsage]]], config: dict[str, Any]
) -> None:
    """Row by row, fold by fold and count by count: what one gets that goes from identity to identity."""
    if any(at > before + 15 for (before, *_), (at, *_) in pairwise(history)):
        # for how long one that is away is remembered is a case of its own
        config.pop("idle_after_seconds", None)
    kept = cardinality(**config)
    plain = Plain(CardinalityConfig(**config))
    for at, up, crowd in history:
        shown = kept.apply(taken(crowd, at, up))
        expected = plain.apply(crowd, set(up), at)
        found = [*shown.entities, *shown.shown.tagged]
        alone = [each for each in found if not each.entity.stands_in]
        assert sorted(alone, key=str) == sorted(expected.shown, key=str)
        assert {fold_of(each) for each in found if each.entity.stands_in} == (expected.folds())
        folds, callbacks = shown.folds, shown.callbacks
        left = {"overflow": folds.overflow + callbacks.folded}
        left |= {"excluded": folds.excluded, "idle": folds.idle}
        assert Counter(left) == expected.entities
        crowded = {(False, kind): count for kind, count in folds.crowded.items()}
        crowded |= {(True, kind): count for kind, count in callbacks.crowded.items()}
        assert crowded == expected.crowded


def fold_of(each: EntityUsage) -> tuple[object, ...]:
    """What stands for others, as ``Outcome.folds`` gives it."""
    entity = each.entity
    pool = entity.tags is not None, entity.quota_type
    return pool, entity.broker, each.usage, each.throttle_time_seconds
