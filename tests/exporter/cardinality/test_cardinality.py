"""
The entities that are shown one by one, those that are folded, and the memory of them.

By example, and beside a plain recomputation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from itertools import pairwise
from math import inf, isnan, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import flatnonzero
from tests.exporter.cardinality.plain import Plain
from tests.exporter.examples import NOW, limits, snapshot, usage
from tests.exporter.exposition.oracle import lines, samples
from tests.exporter.join.world import World, entity
from tests.exporter.recorded import limits as configured
from tests.strategies import texts

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection.sampling import PeakKeeper
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import Callbacks, Columns, Entity, EntityUsage, NodeUsage, Snapshot, ThrottleCause
from quotascope.metrics.catalog import OVERFLOW
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

Labels = tuple[tuple[str, str], ...]


def cardinality(*, maxima: bool = False, **config: Any) -> Cardinality:
    return Cardinality(CardinalityConfig(**config), maxima=maxima)


def taken(usages: Iterable[EntityUsage], seconds_later: float = 0.0, up: Iterable[str] | None = None) -> Snapshot:
    """
    Return a snapshot so many seconds after the first one.

    The nodes ``up`` have answered, by default those that have entities.
    """
    usages = tuple(usages)
    brokers = up or sorted({usage.entity.broker for usage in usages})
    nodes = tuple(NodeUsage(broker=broker) for broker in brokers)
    return snapshot(*usages, nodes=nodes, taken_at=NOW + seconds_later)


def users(state: Snapshot) -> list[str]:
    return sorted({usage.entity.user for usage in state.entities} - {OVERFLOW})


def fold(state: Snapshot) -> EntityUsage:
    (usage,) = folds(state)
    return usage


def folds(state: Snapshot) -> list[EntityUsage]:
    """Return the entities that stand for others."""
    return [usage for usage in state.entities if usage.entity.user == OVERFLOW]


def with_maxima(state: Snapshot) -> Snapshot:
    """Return the snapshot when there is sampling, and it is the first one."""
    return replace(state, peaks=PeakKeeper(60.0).update(state, 0.0))


def page(state: Snapshot) -> dict[tuple[str, Labels], float]:
    """Return all series but those about the exporter itself."""
    return {(name, labels): value for name, labels, value in samples(state, NOW) if not name.startswith("quotascope_")}


MUTATION = QuotaType.CONTROLLER_MUTATION


def crowd(**amounts: float | EntityUsage) -> list[EntityUsage]:
    """Return users with the given usages, or with all that is known of each."""
    return [usage(user=user, usage=amount) if isinstance(amount, float) else amount for user, amount in amounts.items()]


def shown(bounds: Cardinality, seconds_later: float, up: str = "1", /, **amounts: float | EntityUsage) -> str:
    """Return the users that are shown when these nodes have answered."""
    return "".join(users(bounds.apply(taken(crowd(**amounts), seconds_later, up))))


def test_within_the_cap_nothing_changes() -> None:
    """A cluster within the cap is shown unchanged."""
    joined = taken(crowd(a=1.0, b=1.0, c=1.0))
    capped = cardinality(max_entities=3).apply(joined)
    assert capped.columns is joined.columns
    assert (capped.entities, capped.joined, capped.folds.crowded) == (joined.entities, None, {})
    assert page(capped) == page(joined)


def test_a_fold_has_no_tokens() -> None:
    """An overflow has no tokens, since the bucket of one entity does not pay for another."""
    buckets = [usage(MUTATION, name, tokens=5.0, burst_tokens=9.0) for name in "ab"]
    folded = fold(cardinality(max_entities=1).apply(taken(buckets)))
    assert (folded.tokens, folded.burst_used, folded.usage) == (None, None, None)


def test_entities_of_a_fold_stay_the_same_objects() -> None:
    """State that is derived from an entity may be kept under its identity."""
    bounded = cardinality(max_entities=1)
    first_fold, second = (fold(bounded.apply(taken(crowd(a=1.0, b=1.0), seconds))) for seconds in (0, 15))
    assert first_fold.entity is second.entity


def test_details_above_a_utilization() -> None:
    """Details that only matter near a limit are shown for entities near it. The joined columns stay as they are."""
    configured = limits()
    joined = taken(
        [
            usage(configured=configured, limit=10.0, usage=6.0),
            usage(user="b", configured=configured, limit=10.0, usage=5.0),
            usage(user="c", configured=configured, limit=10.0, throttle_time_seconds=1.0),
            usage(MUTATION, "d", burst_tokens=10.0, tokens=-1.0),
        ]
    )
    capped = cardinality(detail_above=0.5).apply(joined)
    detailed = {entity_usage.entity.user: entity_usage.detailed for entity_usage in capped.entities}
    assert detailed == {"alice": True, "b": False, "c": True, "d": True}
    assert all(entity_usage.detailed for entity_usage in (*joined.entities, *capped.measured))
    text = Renderer().render(capped, 0.0).decode()
    assert 'kafka_quota_produce_limit_bytes_per_second{client_id="",user="b"}' in text
    assert 'kafka_quota_utilization_ratio{broker="1",client_id="",quota_type="produce",user="b"}' not in text


def test_a_layout_lasts_while_the_same_rows_are_shown() -> None:
    """The layout of shown rows stays the same object while neither the entities nor the choice change."""
    bounded = cardinality(max_entities=2)
    initial = taken(crowd(a=1.0, b=2.0, c=30.0, d=40.0))
    old_columns = bounded.apply(initial).columns
    later = replace(initial, columns=replace(initial.columns, usage=initial.columns.usage[::-1]), taken_at=NOW + 1)
    again = bounded.apply(later).columns
    assert again.layout is old_columns.layout
    assert [entity_usage.usage for entity_usage in again.usages] == [70.0, 2.0, 1.0]
    moved = bounded.apply(replace(later, taken_at=NOW + 300)).columns
    assert moved.layout is not old_columns.layout
    rows = moved.layout.rows_in(old_columns.layout)
    assert [moved.layout.entities[row].user for row in flatnonzero(rows >= 0)] == [OVERFLOW]


@pytest.mark.parametrize(("amounts", "total"), [((1e308, 1e308), inf), ((inf, 1.0), inf), ((inf, -inf), None)])
def test_numbers_that_cannot_be_added_up(amounts: tuple[float, ...], total: float | None) -> None:
    """A number of an agent is no reason to fail, however large."""
    usages = [usage(user=str(number), usage=value) for number, value in enumerate(amounts)]
    usages.append(usage(user="shown", throttle_time_seconds=1.0))
    assert fold(cardinality(max_entities=1).apply(taken(usages))).usage == total


def test_first_entity_leaves() -> None:
    """The cap holds also when the layout begins with the second entity that was ever seen."""
    bounded = cardinality(max_entities=1)
    assert shown(bounded, 0, a=1.0, b=2.0, c=3.0) == "c"
    assert shown(bounded, 15, b=2.0, c=3.0) == "c"


def test_a_fold_has_no_reported_utilization() -> None:
    """An overflow has no limit, and so no utilization as a node reports it."""
    usages = [usage(user=name, usage=float(ord(name)), reported_utilization=0.5) for name in "abc"]
    capped = cardinality(max_entities=1).apply(taken(usages))
    assert {e.entity.user: e.reported_utilization for e in capped.entities} == {"c": 0.5, OVERFLOW: None}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # one that was away is remembered for a moment, whatever the pause between two scrapes; later it is a new one
        ([(0, True), (37.5, False), (75, True)], ""),
        ([(0, True), (57.5, False), (115, True)], ""),
        ([(0, True), (200, False), (400, True)], "a"),
        ([(0, True), (900, True)], ""),
        # a clock that is set back makes nothing idle: time passes from there on
        ([(10_000, True), (0, True)], "a"),
        ([(10_000, True), (0, True), (60, True)], ""),
    ],
)
def test_idle_entities(times: list[tuple[float, bool]], expected: str) -> None:
    """An entity without any usage is shown until it was idle for too long, though it is absent at times."""
    bounded = cardinality(idle_after_seconds=60)
    shown_users = [shown(bounded, seconds, **({"a": 0.0} if is_present else {})) for seconds, is_present in times]
    assert shown_users[-1] == expected


def test_nodes_that_are_gone_leave_no_folds() -> None:
    """Nodes that left do not fill the memory of overflow, even where nodes get new ids again and again."""
    bounded = cardinality(max_entities=1)
    for seconds in range(0, 36_000, 600):
        bounded.apply(taken([usage(user=u, broker=str(seconds), usage=1.0) for u in "ab"], seconds))
    assert len(bounded._overflow._stand_ins) <= 7


def test_other_bounds_leave_what_they_do_not_concern() -> None:
    """An entity keeps its place while the number of places is the same; more places are used by the next snapshot."""
    bounded = cardinality(max_entities=1)
    assert shown(bounded, 0, a=3.0, b=2.0) == "a"
    bounded.configure(CardinalityConfig(max_entities=1, detail_above=0.5))
    assert shown(bounded, 1, a=3.0, b=5.0) == "a"
    bounded.configure(CardinalityConfig(max_entities=1, exclude_users=("a",)))
    capped = bounded.apply(taken(crowd(a=4.0, b=6.0), 2))
    assert (users(capped), fold(capped).usage) == (["b"], 4.0)
    bounded.configure(CardinalityConfig(max_entities=3))
    assert shown(bounded, 3, a=4.0, b=6.0, c=1.0) == "abc"


def test_idle_entities_stay_away_when_another_bound_changes() -> None:
    """Idle entities stay hidden when another bound changes, or each reload would bring them back for a while."""
    bounded = cardinality(idle_after_seconds=60)
    shown_users = [shown(bounded, seconds, a=0.0) for seconds in (0, 61)]
    bounded.configure(CardinalityConfig(idle_after_seconds=60, detail_above=0.5))
    shown_users.append(shown(bounded, 62, a=0.0))
    bounded.configure(CardinalityConfig())
    shown_users.append(shown(bounded, 63, a=0.0))
    assert shown_users == ["a", "", "", "a"]


def test_a_clock_that_is_set_back_holds_nothing_for_ever() -> None:
    """A clock that is set back ends decisions whose time lies in the future."""
    bounds = cardinality(max_entities=1)
    assert shown(bounds, 10_000, a=2.0, b=1.0) == "a"
    assert shown(bounds, 0, a=2.0, b=5.0) == "b"


def test_names_are_forgotten() -> None:
    """Memory of names is bounded by the present ones, however many come and go."""
    bounds = cardinality(max_entities=10)
    for seconds in range(0, 3_000, 15):
        amounts_by_name = {f"{seconds}-{number:02}": float(number) for number in range(50)}
        strongest = "".join(sorted(amounts_by_name, key=lambda name: amounts_by_name[name])[-10:])
        assert shown(bounds, seconds, **amounts_by_name) == strongest
        assert len(bounds._identities._numbers) <= 1_200
    assert len(bounds._identities.records) <= 2_500


def test_one_away_is_not_taken_for_another() -> None:
    """A silent node keeps a place for an identity for five minutes, however many others come and go meanwhile."""
    bounds = cardinality(max_entities=1)
    silent = usage(user="a", broker="2", usage=2.0)
    assert shown(bounds, 0, "12", a=silent, b=1.0) == "a"
    for seconds in range(1, 200):
        amounts_by_name = {f"{seconds}-{number}": 1.0 for number in range(50)}
        assert shown(bounds, seconds, "1", **amounts_by_name) == ""
    assert shown(bounds, 200, "12", a=silent, b=1.0) == "a"
    assert shown(bounds, 499, "1", b=1.0, c=1.0) == ""
    assert shown(bounds, 500, "1", b=1.0, c=1.0) == "c"


def test_no_place_is_kept_for_a_node_that_an_entity_has_left() -> None:
    """An entity that moved to another node loses its place when it leaves that node, even while the first is silent."""
    bounds = cardinality(max_entities=1)
    at_2 = {user: usage(user=user, broker="2", usage=amount) for user, amount in (("a", 2.0), ("b", 1.0), ("c", 0.0))}
    assert shown(bounds, 0, "12", a=2.0, b=at_2["b"]) == "a"
    assert shown(bounds, 15, "12", a=at_2["a"], b=at_2["b"]) == "a"
    assert shown(bounds, 30, "2", b=at_2["b"], c=at_2["c"]) == "b"


def test_a_place_that_does_not_make_way_yet_protects_no_other() -> None:
    """A newcomer displaces the next entity when one that it would displace came a moment ago."""
    bounds = cardinality(max_entities=3)
    assert shown(bounds, 0, x=5.0, y=5.0, c=3.0, z=0.1) == "cxy"
    assert shown(bounds, 290, a=1.0, b=2.0, c=3.0, z=0.1) == "abc"
    near = usage(user="n", limit=100.0, usage=75.0)
    assert shown(bounds, 300, a=1.0, b=2.0, c=3.0, g=100.0, n=near) == "bgn"


def test_entities_of_a_callback_beyond_the_cap_are_one_entity() -> None:
    """The largest entities stay, and the rest is one with the longest throttle, whose tags all say so."""
    tagged = [
        EntityUsage(
            entity=Entity(broker="1", quota_type=QuotaType.PRODUCE, user="", client_id="", tags=(tenant, "gold")),
            usage=amount,
            throttle_time_seconds=throttle,
        )
        for tenant, amount, throttle in (("a", 9.0, 0.0), ("b", 1.0, 0.5), ("c", 2.0, 0.25), ("d", 8.0, 0.0))
    ]
    joined = replace(taken(()), nodes=(NodeUsage(broker="1"),), columns=Columns.of(tagged))
    capped = cardinality(max_entities=2).apply(replace(joined, callbacks=Callbacks(labels=("tenant", "tier"))))
    assert lines(capped, "kafka_quota_callback") == [
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="__overflow__",tier="__overflow__"} 17.0',
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="b",tier="gold"} 1.0',
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="c",tier="gold"} 2.0',
        (
            'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="__overflow__",'
            'tier="__overflow__"} 0.0'
        ),
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="b",tier="gold"} 0.5',
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="c",tier="gold"} 0.25',
    ]  # fmt: skip
    assert capped.callbacks.crowded == {QuotaType.PRODUCE: 4}
    of_exporter = lines(capped, "quotascope_")
    assert 'quotascope_entities{state="exported"} 2.0' in of_exporter
    assert 'quotascope_entities{state="overflow"} 2.0' in of_exporter
    assert 'quotascope_series_dropped{reason="overflow"} 4.0' in of_exporter


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
    """Draw the usage of an entity as a broker or our engine reports it, in whole numbers so that sums are exact."""
    broker, kind, user, client_id = key
    resolution = RULES.limit(user, client_id)
    limited = resolution is not None
    throttle = draw(whole)
    mutations = kind is QuotaType.CONTROLLER_MUTATION
    entity_usage = usage(
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
    return replace(entity_usage, entity=replace(entity_usage.entity, resolution=resolution))


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


def key_of(entity_usage: EntityUsage) -> Key:
    entity = entity_usage.entity
    return entity.broker, entity.quota_type, entity.user, entity.client_id


@pytest.mark.slow
@given(crowd=crowds(), config=configs, repetitions=st.integers(1, 20))
def test_nothing_moves_while_nothing_changes(
    crowd: list[EntityUsage], config: dict[str, Any], repetitions: int
) -> None:
    """The same numbers give the same series, for as long as they stay the same."""
    config.pop("idle_after_seconds", None)
    bounded = cardinality(**config)
    first_page = page(bounded.apply(taken(crowd)))
    for number in range(repetitions):
        assert page(bounded.apply(taken(crowd, 60 * number))) == first_page


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
    tagged_usages,
    max_size=12,
    unique_by=lambda entity_usage: (
        entity_usage.entity.broker,
        entity_usage.entity.quota_type,
        entity_usage.entity.tags,
    ),
)


@pytest.mark.slow
@given(crowd=crowds(), tagged=callbacks, config=configs, maxima=st.booleans())
def test_every_series_that_is_not_shown_is_counted(
    crowd: list[EntityUsage], tagged: list[EntityUsage], config: dict[str, Any], *, maxima: bool
) -> None:
    """Hidden series of Kafka's quotas, of callbacks and of sampling are counted, as a page without bounds shows."""
    own_usages = [entity_usage for entity_usage in crowd if OVERFLOW not in key_of(entity_usage)]
    tagged_usages_left = [entity_usage for entity_usage in tagged if OVERFLOW not in (entity_usage.entity.tags or ())]
    unbounded = replace(
        taken([*own_usages, *tagged_usages_left], up="12"), callbacks=Callbacks(labels=("tenant", "tier"))
    )
    scraped = with_maxima if maxima else copy
    all_series = set(page(scraped(unbounded)))
    config.pop("idle_after_seconds", None)
    capped = cardinality(maxima=maxima, **config).apply(unbounded)
    shown_series = {series for series in page(scraped(capped)) if not is_fold(series)}
    assert shown_series <= all_series
    assert len(all_series - shown_series) == sum(capped.folds.series_dropped.values())
    folded = capped.folds.overflow + capped.folds.excluded
    assert len(capped.measured) == len(own_usages)
    assert len(capped.entities) - len(folds(capped)) == len(own_usages) - folded
    alone = [entity_usage for entity_usage in capped.columns.tagged if not entity_usage.entity.stands_in]
    assert len(tagged_usages_left) == capped.callbacks.folded + len(alone)


def is_fold(series: tuple[str, Labels]) -> bool:
    return not {("user", OVERFLOW), ("tenant", OVERFLOW)}.isdisjoint(series[1])


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[float, str, list[EntityUsage]]]:
    members = draw(st.lists(keys, min_size=1, max_size=25, unique=True))
    tagged = draw(st.lists(st.tuples(nodes, kinds, labels), max_size=8, unique=True))
    serials: dict[object, int] = {}
    seconds, moments = 0.0, []
    for _ in range(draw(st.integers(1, 8))):
        up = draw(st.sampled_from(("12", "12", "1")))
        crowd = [draw(entity_usages(key)) for key in members if key[0] in up]
        for node, kind, tags in tagged:
            entity = usage(kind, "", broker=node, tags=tags).entity
            used = EntityUsage(entity=entity, usage=draw(st.none() | whole), throttle_time_seconds=draw(few))
            crowd.append(used)
        present = [entity_usage for entity_usage in crowd if draw(st.integers(0, 9))]
        for entity_usage in present:
            entity = entity_usage.entity
            key = (*key_of(entity_usage), entity.tags)
            serial = serials.setdefault(key, entity.serial)
            entity_usage.entity = replace(entity, serial=serial)
            if entity_usage.reported_utilization is not None and isnan(entity_usage.reported_utilization):
                entity_usage.reported_utilization = None  # as columns have it
        moments.append((seconds, up, present))
        seconds += draw(st.sampled_from((0.0, 15.0, 15.0, 15.0, 150.0, 299.0, 300.0)))
    return moments


@pytest.mark.slow
@given(history=histories(), config=configs)
def test_what_is_shown_follows_plainly(
    history: list[tuple[float, str, list[EntityUsage]]], config: dict[str, Any]
) -> None:
    """A plain model gives the same rows, overflows and counts, also for clients that change their identity."""
    if any(later > earlier + 15 for (earlier, *_), (later, *_) in pairwise(history)):
        # for how long one that is away is remembered is a case of its own
        config.pop("idle_after_seconds", None)
    bounded = cardinality(**config)
    plain = Plain(CardinalityConfig(**config))
    for seconds, up, crowd in history:
        capped = bounded.apply(taken(crowd, seconds, up))
        expected = plain.apply(crowd, set(up), seconds)
        shown_usages = [*capped.entities, *capped.columns.tagged]
        alone = [entity_usage for entity_usage in shown_usages if not entity_usage.entity.stands_in]
        assert sorted(alone, key=str) == sorted(expected.shown, key=str)
        assert {fold_of(entity_usage) for entity_usage in shown_usages if entity_usage.entity.stands_in} == (
            expected.folds()
        )
        folds, callbacks = capped.folds, capped.callbacks
        left_out = {"overflow": folds.overflow + callbacks.folded}
        left_out |= {"excluded": folds.excluded, "idle": folds.idle}
        assert Counter(left_out) == expected.entities
        crowded = {(False, kind): count for kind, count in folds.crowded.items()}
        crowded |= {(True, kind): count for kind, count in callbacks.crowded.items()}
        assert crowded == expected.crowded


def fold_of(entity_usage: EntityUsage) -> tuple[object, ...]:
    """Return an entity that stands for others, as ``Outcome.folds`` has it."""
    entity = entity_usage.entity
    pool = entity.tags is not None, entity.quota_type
    return pool, entity.broker, entity_usage.usage, entity_usage.throttle_time_seconds


_MOMENTS = st.tuples(
    st.sampled_from(("", "1", "2", "12")), st.sets(st.sampled_from("abcd")), st.sampled_from((0.0, 15.0))
)


@pytest.mark.slow
@given(st.lists(_MOMENTS, max_size=8))
def test_sums_are_right_behind_the_join(history: list[tuple[str, set[str], float]]) -> None:
    """Successive layouts, as of partial answers, lose no entity and count none twice."""
    world = World(configured({QuotaType.PRODUCE: {QuotaEntity(user): 100.0 for user in "abcd"}}, nodes=("1", "2")))
    cap = cardinality(max_entities=2)
    for nodes, members, seconds in history:
        beans = [entity(QuotaType.PRODUCE, user, usage=float(ord(user))) for user in sorted(members)]
        used = Counter[str]()
        for entity_usage in cap.apply(world.collect(dict.fromkeys(nodes, beans), seconds)).entities:
            used[entity_usage.entity.broker] += entity_usage.usage or 0.0  # type: ignore[assignment]
        assert used == (dict.fromkeys(nodes, sum(map(ord, members))) if members else {})
