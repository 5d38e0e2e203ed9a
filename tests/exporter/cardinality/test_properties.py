"""What holds whatever the entities are, and however they change."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from math import nan
from random import Random
from typing import Any

import pytest
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

from quotascope.exporter.snapshot import EntityUsage, ThrottleCause
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import OVERFLOW

RULES = QuotaRules({QuotaEntity("u0", None): 8.0})
Key = tuple[str, QuotaType, str, str]

names = st.sampled_from(("", "u0", "u1", "u2", "u3", OVERFLOW)) | texts
whole = st.integers(0, 64).map(float)
nodes = st.sampled_from("12")
kinds = st.sampled_from(QuotaType)
keys = st.tuples(nodes, kinds, names, names)


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
        cause=ThrottleCause.OWN if throttle else None,
        tokens=draw(st.none() | whole) if limited and mutations else None,
        reported_utilization=draw(st.none() | st.just(nan) | whole),
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert len(shown.entities) - len(folds(shown)) == len(unbounded) - folded


def is_fold(series: tuple[str, Labels]) -> bool:
    """Whether a series stands for others."""
    return ("user", OVERFLOW) in series[1]
