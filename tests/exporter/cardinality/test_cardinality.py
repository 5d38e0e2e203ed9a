from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from numpy import flatnonzero
from tests.exporter.cardinality.examples import (
    cardinality,
    fold,
    folds,
    page,
    taken,
    users,
)
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


@pytest.mark.parametrize(
    "names", [(OVERFLOW, OVERFLOW), (OVERFLOW, ""), ("", OVERFLOW)]
)
def test_a_client_called_as_the_fold_is_folded(names: tuple[str, str]) -> None:
    """Nobody can pretend to be the fold, or make two series of one name."""
    joined = taken([usage(user=names[0], client_id=names[1], usage=2.0)])
    for excluded in ("overflow", "drop"):
        shown = cardinality(excluded=excluded).apply(joined)
        assert fold(shown).usage == 2.0
        assert len(shown.entities) == shown.folds.excluded == 1


def test_excluded_names_can_be_dropped() -> None:
    """Who wants no trace of them gets none, but their number."""
    crowd = [usage(client_id=name, usage=1.0) for name in ("app", "c-1", "c-2")]
    kept = cardinality(exclude_client_ids=["c-.*"], excluded="drop")
    shown = kept.apply(taken(crowd))
    assert [each.entity.client_id for each in shown.entities] == ["app"]
    assert shown.folds.excluded == 2


def test_included_names_only() -> None:
    """A team's exporter shows its own users; client quotas, which have no user, are not concerned."""
    crowd = [usage(user="team-a"), usage(user="other"), usage(user="", client_id="app")]
    shown = cardinality(include_users=["team-.*"]).apply(taken(crowd))
    assert users(shown) == ["", "team-a"]


def test_idle_entities_leave_until_they_move() -> None:
    """Kafka keeps a bean for an hour after the last request; Prometheus need not."""
    kept = cardinality(idle_after_seconds=60)
    for after, amount, expected in (
        (0, 5.0, ["a"]),
        (30, 0.0, ["a"]),
        (59, 0.0, ["a"]),
        (60, 0.0, []),
        (600, 0.0, []),
        (615, 1.0, ["a"]),
        (630, 0.0, ["a"]),
        (675, 0.0, []),
    ):
        shown = kept.apply(taken([usage(user="a", usage=amount)], after))
        assert (after, users(shown)) == (after, expected)
        assert shown.folds.idle == 1 - len(expected)
        assert folds(shown) == []


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
    assert (
        'kafka_quota_utilization_ratio{broker="1",client_id="",quota_type="produce",user="b"}'
        not in text
    )


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
    assert [moved.layout.entities[row].user for row in flatnonzero(rows >= 0)] == [
        OVERFLOW
    ]


@pytest.mark.parametrize(
    ("amounts", "total"),
    [((1e308, 1e308), inf), ((inf, 1.0), inf), ((inf, -inf), None)],
)
def test_numbers_that_cannot_be_added_up(
    amounts: tuple[float, ...], total: float | None
) -> None:
    """What an agent says is no reason to fail, however large."""
    crowd = [usage(user=str(at), usage=each) for at, each in enumerate(amounts)]
    crowd.append(usage(user="shown", throttle_time_seconds=1.0))
    assert fold(cardinality(max_entities=1).apply(taken(crowd))).usage == total


def test_counters_are_of_those_that_are_shown() -> None:
    """A sum of counters falls when a member leaves, as if the node had been started again: a fold has none."""
    crowd = [
        usage(user=name, usage=float(ord(name)), throttled_requests_total=9.0)
        for name in "abc"
    ]
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


def test_details_begin_when_an_entity_is_shown() -> None:
    """One that was near its limit while it was folded has nothing to hold on to."""
    kept = cardinality(max_entities=1, detail_above=0.5)
    throttled = usage(user="t", throttle_time_seconds=1.0)
    kept.apply(taken([throttled, usage(limit=10.0, usage=9.0)]))
    (shown,) = kept.apply(taken([usage(limit=10.0, usage=1.0)], 15)).entities
    assert (shown.entity.user, shown.detailed) == ("alice", False)


def test_maxima_that_are_not_shown_are_counted() -> None:
    """With sampling an entity under a limit has one series more."""
    crowd = [usage(user=name, limit=10.0, usage=1.0) for name in "ab"]
    for maxima, series in ((False, 4), (True, 5)):
        kept = cardinality(max_entities=1, maxima=maxima)
        dropped = kept.apply(taken(crowd)).folds.series_dropped
        assert (maxima, dropped["overflow"]) == (maxima, series)


def test_nodes_that_are_gone_leave_no_folds() -> None:
    """In some clusters nodes get new ids again and again."""
    kept = cardinality(max_entities=1)
    for at in range(0, 36_000, 600):
        kept.apply(taken([usage(user=u, broker=str(at), usage=1.0) for u in "ab"], at))
    assert len(kept._overflow._stand_ins) <= 7


def test_the_measured_are_told_from_the_stand_ins() -> None:
    """A terminal shows everybody, folded or not."""
    crowd = [usage(user=name, usage=1.0) for name in "abc"]
    shown = cardinality(max_entities=1).apply(taken(crowd))
    assert sorted(each.entity.user for each in shown.measured) == ["a", "b", "c"]


def test_who_was_shown_before_it_got_crowded_keeps_the_place() -> None:
    """As long as all fit nobody is looked at one by one; who it was is known all the same when they no longer do."""
    bounds = cardinality(max_entities=3)
    first = [
        usage(user=name, broker=node, usage=1.0) for name in "abc" for node in "12"
    ]
    for at in range(2):
        bounds.apply(taken(first, float(at)))
    crowd = [*first, *(usage(user=name, usage=1.5) for name in "xyz")]
    shown = bounds.apply(taken(crowd, 2.0))
    assert set(users(shown)) == {"a", "b", "c"}


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
