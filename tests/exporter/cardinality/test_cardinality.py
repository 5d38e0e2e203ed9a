from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from numpy import flatnonzero
from tests.exporter.cardinality.examples import cardinality, fold, page, taken, users
from tests.exporter.examples import NOW, limits, usage

from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

MUTATION = QuotaType.CONTROLLER_MUTATION


def test_within_the_cap_nothing_changes() -> None:
    """A cluster of usual size is shown as it is."""
    joined = taken([usage(user=name, usage=1.0) for name in "abc"])
    shown = cardinality(max_entities=3).apply(joined)
    assert shown.entities == joined.entities
    assert shown.shown is joined.shown
    assert shown.joined is None
    assert shown.folds.crowded == {}
    assert page(shown) == page(joined)


def test_a_fold_has_no_tokens() -> None:
    """The bucket of one does not pay for another."""
    crowd = [usage(MUTATION, name, tokens=5.0, burst_tokens=9.0) for name in "ab"]
    found = fold(cardinality(max_entities=1).apply(taken(crowd)))
    assert found.tokens is found.burst_used is found.usage is None


def test_entities_of_a_fold_stay_the_same_objects() -> None:
    """What was derived from an entity may be kept under its identity."""
    kept = cardinality(max_entities=1)
    crowd = [usage(user=name, usage=1.0) for name in "ab"]
    first = fold(kept.apply(taken(crowd)))
    second = fold(kept.apply(taken(crowd, 15)))
    assert first.entity is second.entity


def test_details_above_a_utilization() -> None:
    """Usage and limit are there for all, what only matters near a limit only for those near it."""
    configured = limits()
    crowd = [
        usage(of=configured, limit=10.0, usage=6.0),
        usage(user="b", of=configured, limit=10.0, usage=5.0),
        usage(user="c", of=configured, limit=10.0, throttle_time_seconds=1.0),
        usage(MUTATION, "d", burst_tokens=10.0, tokens=-1.0),
    ]
    shown = cardinality(detail_above=0.5).apply(taken(crowd))
    detailed = {each.entity.user: each.detailed for each in shown.entities}
    assert detailed == {"alice": True, "b": False, "c": True, "d": True}
    text = Renderer().render(shown, 0.0).decode()
    assert 'kafka_quota_produce_limit_bytes_per_second{client_id="",user="b"}' in text
    assert 'kafka_quota_utilization_ratio{broker="1",client_id="",quota_type="produce",user="b"}' not in text


def test_leaving_details_out_changes_nothing_that_was_joined() -> None:
    """What the join made belongs to other snapshots, too."""
    joined = taken([usage(of=limits(), limit=10.0, usage=5.0)])
    shown = cardinality(detail_above=0.5).apply(joined)
    assert [each.detailed for each in joined.entities] == [True]
    assert [each.detailed for each in shown.entities] == [False]
    assert [each.detailed for each in shown.measured] == [True]


def test_a_layout_lasts_while_the_same_rows_are_shown() -> None:
    """What was derived from it may be kept: as long as neither the entities nor the choice change, it is the same."""
    kept = cardinality(max_entities=2)
    amounts = {"a": 1.0, "b": 2.0, "c": 30.0, "d": 40.0}
    first = taken([usage(user=user, usage=used) for user, used in amounts.items()])
    shown = kept.apply(first).shown
    later = replace(
        first, shown=replace(first.shown, usage=first.shown.usage[::-1]), taken_at=NOW + 1
    )  # fmt: skip
    again = kept.apply(later).shown
    assert again.layout is shown.layout
    assert [each.usage for each in again.usages] == [70.0, 2.0, 1.0]
    moved = kept.apply(replace(later, taken_at=NOW + 300)).shown
    assert moved.layout is not shown.layout
    rows = moved.layout.rows_in(shown.layout)
    assert [moved.layout.entities[row].user for row in flatnonzero(rows >= 0)] == [OVERFLOW]


@pytest.mark.parametrize(("amounts", "total"), [((1e308, 1e308), inf), ((inf, 1.0), inf), ((inf, -inf), None)])
def test_numbers_that_cannot_be_added_up(amounts: tuple[float, ...], total: float | None) -> None:
    """What an agent says is no reason to fail, however large."""
    crowd = [usage(user=str(at), usage=each) for at, each in enumerate(amounts)]
    crowd.append(usage(user="shown", throttle_time_seconds=1.0))
    assert fold(cardinality(max_entities=1).apply(taken(crowd))).usage == total


def test_counters_are_of_those_that_are_shown() -> None:
    """A sum of counters falls when a member leaves, as if the node had been started again: a fold has none."""
    crowd = [usage(user=name, usage=float(ord(name)), throttled_requests_total=9.0) for name in "abc"]
    shown = cardinality(max_entities=1).apply(taken(crowd))
    counters = {e.entity.user: e.throttled_requests_total for e in shown.entities}
    assert counters == {"c": 9.0, OVERFLOW: None}


def test_an_idle_entity_that_was_away_counts_as_moving() -> None:
    """For a moment it is remembered, whatever the pause between two scrapes; later it is a new one."""
    idle = [usage(user="a", usage=0.0)]
    for back, expected in ((75.0, []), (115.0, []), (400.0, ["a"])):
        kept = cardinality(idle_after_seconds=60)
        kept.apply(taken(idle))
        kept.apply(taken([], back / 2))
        assert (back, users(kept.apply(taken(idle, back)))) == (back, expected)
    kept = cardinality(idle_after_seconds=60)
    kept.apply(taken(idle))
    assert users(kept.apply(taken(idle, 900))) == []


def test_a_clock_that_is_set_back_makes_nothing_idle() -> None:
    """Time passes from there on."""
    idle = [usage(user="a", usage=0.0)]
    kept = cardinality(idle_after_seconds=60)
    kept.apply(taken(idle, 10_000))
    assert users(kept.apply(taken(idle, 0))) == ["a"]
    assert users(kept.apply(taken(idle, 60))) == []


def test_nodes_that_are_gone_leave_no_folds() -> None:
    """In some clusters nodes get new ids again and again."""
    kept = cardinality(max_entities=1)
    for at in range(0, 36_000, 600):
        kept.apply(taken([usage(user=u, broker=str(at), usage=1.0) for u in "ab"], at))
    assert len(kept._overflow._stand_ins) <= 7


def test_other_bounds_leave_what_they_do_not_concern() -> None:
    """An entity that has a place keeps it while the number of places is the same."""

    def crowd(after: float, **amounts: float) -> Snapshot:
        usages = [usage(user=user, usage=amount) for user, amount in amounts.items()]
        return taken(usages, after)

    bounded = cardinality(max_entities=1)
    bounded.apply(crowd(0, a=3.0, b=2.0))
    bounded.configure(CardinalityConfig(max_entities=1, detail_above=0.5))
    shown = bounded.apply(crowd(1, a=3.0, b=5.0))
    assert users(shown) == ["a"]
    bounded.configure(CardinalityConfig(max_entities=1, exclude_users=("a",)))
    shown = bounded.apply(crowd(2, a=4.0, b=6.0))
    assert users(shown) == ["b"]
    assert fold(shown).usage == 4.0


def test_more_places_show_more() -> None:
    """A greater number counts with the next snapshot."""
    joined = taken([usage(user=name, usage=1.0) for name in "abc"])
    bounded = cardinality(max_entities=1)
    assert users(bounded.apply(joined)) == ["c"]
    bounded.configure(CardinalityConfig(max_entities=3))
    assert users(bounded.apply(joined)) == ["a", "b", "c"]


def test_idle_entities_stay_away_when_another_bound_changes() -> None:
    """Else every change of the configuration would bring all of them back for a while."""
    joined = [usage(user="a", usage=0.0)]
    bounded = cardinality(idle_after_seconds=60)
    bounded.apply(taken(joined))
    assert users(bounded.apply(taken(joined, 61))) == []
    bounded.configure(CardinalityConfig(idle_after_seconds=60, detail_above=0.5))
    assert users(bounded.apply(taken(joined, 62))) == []
    bounded.configure(CardinalityConfig())
    assert users(bounded.apply(taken(joined, 63))) == ["a"]
