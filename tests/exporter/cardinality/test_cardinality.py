"""Which entities are shown one by one, which are folded, and what is remembered of them."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from numpy import flatnonzero
from tests.exporter.cardinality.examples import cardinality, fold, page, taken, users
from tests.exporter.examples import NOW, limits, usage
from tests.exporter.exposition.oracle import lines

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import Callbacks, Columns, Entity, EntityUsage, NodeUsage
from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

MUTATION = QuotaType.CONTROLLER_MUTATION


def crowd(**amounts: float | EntityUsage) -> list[EntityUsage]:
    """Users: of each what it uses is given, or all that is known of it."""
    return [usage(user=user, usage=each) if isinstance(each, float) else each for user, each in amounts.items()]


def shown(bounds: Cardinality, at: float, up: str = "1", /, **amounts: float | EntityUsage) -> str:
    """The users that are shown when these nodes have answered."""
    return "".join(users(bounds.apply(taken(crowd(**amounts), at, up))))


def test_within_the_cap_nothing_changes() -> None:
    """A cluster of usual size is shown as it is."""
    joined = taken(crowd(a=1.0, b=1.0, c=1.0))
    found = cardinality(max_entities=3).apply(joined)
    assert found.shown is joined.shown
    assert (found.entities, found.joined, found.folds.crowded) == (joined.entities, None, {})
    assert page(found) == page(joined)


def test_a_fold_has_no_tokens() -> None:
    """The bucket of one does not pay for another."""
    buckets = [usage(MUTATION, name, tokens=5.0, burst_tokens=9.0) for name in "ab"]
    found = fold(cardinality(max_entities=1).apply(taken(buckets)))
    assert (found.tokens, found.burst_used, found.usage) == (None, None, None)


def test_entities_of_a_fold_stay_the_same_objects() -> None:
    """What was derived from an entity may be kept under its identity."""
    kept = cardinality(max_entities=1)
    first, second = (fold(kept.apply(taken(crowd(a=1.0, b=1.0), at))) for at in (0, 15))
    assert first.entity is second.entity


def test_details_above_a_utilization() -> None:
    """What only matters near a limit is there only for those near it; what the join made is left as it is."""
    configured = limits()
    joined = taken(
        [
            usage(of=configured, limit=10.0, usage=6.0),
            usage(user="b", of=configured, limit=10.0, usage=5.0),
            usage(user="c", of=configured, limit=10.0, throttle_time_seconds=1.0),
            usage(MUTATION, "d", burst_tokens=10.0, tokens=-1.0),
        ]
    )
    found = cardinality(detail_above=0.5).apply(joined)
    detailed = {each.entity.user: each.detailed for each in found.entities}
    assert detailed == {"alice": True, "b": False, "c": True, "d": True}
    assert all(each.detailed for each in (*joined.entities, *found.measured))
    text = Renderer().render(found, 0.0).decode()
    assert 'kafka_quota_produce_limit_bytes_per_second{client_id="",user="b"}' in text
    assert 'kafka_quota_utilization_ratio{broker="1",client_id="",quota_type="produce",user="b"}' not in text


def test_a_layout_lasts_while_the_same_rows_are_shown() -> None:
    """What was derived from it may be kept: as long as neither the entities nor the choice change, it is the same."""
    kept = cardinality(max_entities=2)
    first = taken(crowd(a=1.0, b=2.0, c=30.0, d=40.0))
    before = kept.apply(first).shown
    later = replace(first, shown=replace(first.shown, usage=first.shown.usage[::-1]), taken_at=NOW + 1)
    again = kept.apply(later).shown
    assert again.layout is before.layout
    assert [each.usage for each in again.usages] == [70.0, 2.0, 1.0]
    moved = kept.apply(replace(later, taken_at=NOW + 300)).shown
    assert moved.layout is not before.layout
    rows = moved.layout.rows_in(before.layout)
    assert [moved.layout.entities[row].user for row in flatnonzero(rows >= 0)] == [OVERFLOW]


@pytest.mark.parametrize(("amounts", "total"), [((1e308, 1e308), inf), ((inf, 1.0), inf), ((inf, -inf), None)])
def test_numbers_that_cannot_be_added_up(amounts: tuple[float, ...], total: float | None) -> None:
    """What an agent says is no reason to fail, however large."""
    others = [usage(user=str(at), usage=each) for at, each in enumerate(amounts)]
    others.append(usage(user="shown", throttle_time_seconds=1.0))
    assert fold(cardinality(max_entities=1).apply(taken(others))).usage == total


def test_first_entity_leaves() -> None:
    """The cap holds also when the layout begins with the second entity that was ever seen."""
    bounded = cardinality(max_entities=1)
    assert shown(bounded, 0, a=1.0, b=2.0, c=3.0) == "c"
    assert shown(bounded, 15, b=2.0, c=3.0) == "c"


def test_counters_are_of_those_that_are_shown() -> None:
    """A sum of counters falls when a member leaves, as if the node had been started again: a fold has none."""
    others = [usage(user=name, usage=float(ord(name)), throttled_requests_total=9.0) for name in "abc"]
    found = cardinality(max_entities=1).apply(taken(others))
    assert {e.entity.user: e.throttled_requests_total for e in found.entities} == {"c": 9.0, OVERFLOW: None}


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
    """Whether one that never uses anything is shown at the last of these times, at some of which it is there."""
    kept = cardinality(idle_after_seconds=60)
    found = [shown(kept, at, **({"a": 0.0} if there else {})) for at, there in times]
    assert found[-1] == expected


def test_nodes_that_are_gone_leave_no_folds() -> None:
    """In some clusters nodes get new ids again and again."""
    kept = cardinality(max_entities=1)
    for at in range(0, 36_000, 600):
        kept.apply(taken([usage(user=u, broker=str(at), usage=1.0) for u in "ab"], at))
    assert len(kept._overflow._stand_ins) <= 7


def test_other_bounds_leave_what_they_do_not_concern() -> None:
    """An entity keeps its place while the number of places is the same; more places count with the next snapshot."""
    bounded = cardinality(max_entities=1)
    assert shown(bounded, 0, a=3.0, b=2.0) == "a"
    bounded.configure(CardinalityConfig(max_entities=1, detail_above=0.5))
    assert shown(bounded, 1, a=3.0, b=5.0) == "a"
    bounded.configure(CardinalityConfig(max_entities=1, exclude_users=("a",)))
    found = bounded.apply(taken(crowd(a=4.0, b=6.0), 2))
    assert (users(found), fold(found).usage) == (["b"], 4.0)
    bounded.configure(CardinalityConfig(max_entities=3))
    assert shown(bounded, 3, a=4.0, b=6.0, c=1.0) == "abc"


def test_idle_entities_stay_away_when_another_bound_changes() -> None:
    """Else every change of the configuration would bring all of them back for a while."""
    bounded = cardinality(idle_after_seconds=60)
    found = [shown(bounded, at, a=0.0) for at in (0, 61)]
    bounded.configure(CardinalityConfig(idle_after_seconds=60, detail_above=0.5))
    found.append(shown(bounded, 62, a=0.0))
    bounded.configure(CardinalityConfig())
    found.append(shown(bounded, 63, a=0.0))
    assert found == ["a", "", "", "a"]


def test_a_clock_that_is_set_back_holds_nothing_for_ever() -> None:
    """What was decided in the future is over."""
    bounds = cardinality(max_entities=1)
    assert shown(bounds, 10_000, a=2.0, b=1.0) == "a"
    assert shown(bounds, 0, a=2.0, b=5.0) == "b"


def test_names_are_forgotten() -> None:
    """However many come and go, what is remembered is bounded by those that are there, and is not that of others."""
    bounds = cardinality(max_entities=10)
    for at in range(0, 3_000, 15):
        others = {f"{at}-{number:02}": float(number) for number in range(50)}
        strongest = "".join(sorted(others, key=lambda name: others[name])[-10:])
        assert shown(bounds, at, **others) == strongest
        assert len(bounds._identities._numbers) <= 1_200
    assert len(bounds._identities.known) <= 2_500


def test_one_away_is_not_taken_for_another() -> None:
    """A place that is kept for a silent node is that of one identity, however many others come and go meanwhile."""
    bounds = cardinality(max_entities=1)
    there = usage(user="a", broker="2", usage=2.0)
    assert shown(bounds, 0, "12", a=there, b=1.0) == "a"
    for at in range(1, 200):
        others = {f"{at}-{number}": 1.0 for number in range(50)}
        assert shown(bounds, at, "1", **others) == ""
    assert shown(bounds, 200, "12", a=there, b=1.0) == "a"


def test_a_place_that_does_not_make_way_yet_protects_no_other() -> None:
    """Of those that a newcomer could push out some came a moment ago: it takes the next place."""
    bounds = cardinality(max_entities=3)
    assert shown(bounds, 0, x=5.0, y=5.0, c=3.0, z=0.1) == "cxy"
    assert shown(bounds, 290, a=1.0, b=2.0, c=3.0, z=0.1) == "abc"
    near = usage(user="n", limit=100.0, usage=75.0)
    assert shown(bounds, 300, a=1.0, b=2.0, c=3.0, g=100.0, n=near) == "bgn"


def test_entities_of_a_callback_beyond_the_cap_are_one_entity() -> None:
    """The largest stay; every tag of the fold says so, its throttle is the longest, and all of it is counted."""
    tagged = [
        EntityUsage(
            entity=Entity(broker="1", quota_type=QuotaType.PRODUCE, user="", client_id="", tags=(tenant, "gold")),
            usage=amount,
            throttle_time_seconds=throttle,
        )
        for tenant, amount, throttle in (("a", 9.0, 0.0), ("b", 1.0, 0.5), ("c", 2.0, 0.25), ("d", 8.0, 0.0))
    ]
    joined = replace(taken(()), nodes=(NodeUsage(broker="1"),), shown=Columns.of(tagged))
    found = cardinality(max_entities=2).apply(replace(joined, callbacks=Callbacks(labels=("tenant", "tier"))))
    assert lines(found, "kafka_quota_callback") == [
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="__overflow__",tier="__overflow__"} 17.0',
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="b",tier="gold"} 1.0',
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="c",tier="gold"} 2.0',
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="__overflow__",tier="__overflow__"} 0.0',
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="b",tier="gold"} 0.5',
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="c",tier="gold"} 0.25',
    ]  # fmt: skip
    assert found.callbacks.crowded == {QuotaType.PRODUCE: 4}
    of_exporter = lines(found, "quotascope_")
    assert 'quotascope_entities{state="exported"} 2.0' in of_exporter
    assert 'quotascope_entities{state="overflow"} 2.0' in of_exporter
    assert 'quotascope_series_dropped{reason="overflow"} 4.0' in of_exporter
