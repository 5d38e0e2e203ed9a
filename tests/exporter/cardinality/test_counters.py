from __future__ import annotations

from tests.exporter.cardinality.examples import cardinality, fold, folds, taken
from tests.exporter.examples import usage

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.snapshot import EntityUsage


def crowd(*members: tuple[str, float, float], broker: str = "1") -> list[EntityUsage]:
    """Users with their usage and how often they were throttled."""
    return [
        usage(user=user, usage=amount, throttled_requests_total=count, broker=broker)
        for user, amount, count in members
    ]


def counted(kept: Cardinality, usages: list[EntityUsage], after: float) -> float:
    """The counter of the fold at this moment."""
    total = fold(kept.apply(taken(usages, after))).throttled_requests_total
    assert total is not None
    return total


def test_a_fold_begins_with_what_its_members_counted() -> None:
    """At first the sum over all series is the sum over all entities."""
    kept = cardinality(max_entities=1)
    assert counted(kept, crowd(("a", 9, 1), ("b", 1, 2), ("c", 1, 4)), 0) == 6


def test_a_member_that_leaves_takes_nothing_with_it() -> None:
    """A counter that falls would look like a restart."""
    kept = cardinality(max_entities=1)
    assert counted(kept, crowd(("a", 9, 0), ("b", 1, 100), ("c", 1, 1)), 0) == 101
    assert counted(kept, crowd(("a", 9, 0), ("b", 99, 105), ("c", 1, 2)), 300) == 107
    assert counted(kept, crowd(("a", 9, 3), ("b", 99, 110), ("c", 1, 2)), 600) == 110


def test_a_member_that_comes_brings_only_what_grew() -> None:
    """Its own series has shown the rest."""
    kept = cardinality(max_entities=1)
    assert counted(kept, crowd(("a", 9, 100), ("b", 1, 0)), 0) == 0
    assert counted(kept, crowd(("a", 9, 100), ("b", 99, 0)), 300) == 0
    assert counted(kept, crowd(("a", 9, 101), ("b", 99, 0)), 315) == 1


def test_a_member_that_is_gone_keeps_its_count_in_the_fold() -> None:
    """Kafka forgets idle clients; a counter does not go back for that."""
    kept = cardinality(max_entities=1)
    assert counted(kept, crowd(("a", 9, 0), ("b", 1, 5), ("c", 1, 1)), 0) == 6
    assert counted(kept, crowd(("a", 9, 0), ("c", 1, 2)), 15) == 7


def test_a_restart_counts_from_zero() -> None:
    """What was counted since is added."""
    kept = cardinality(max_entities=1)
    assert counted(kept, crowd(("a", 9, 0), ("b", 1, 50)), 0) == 50
    assert counted(kept, crowd(("a", 9, 0), ("b", 1, 3)), 15) == 53


def test_a_fold_that_emptied_goes_on() -> None:
    """It stays on the page with what it counted, and has no usage."""
    kept = cardinality(max_entities=1)
    assert counted(kept, crowd(("a", 9, 0), ("b", 1, 50)), 0) == 50
    empty = fold(kept.apply(taken(crowd(("a", 9, 0)), 15)))
    assert (empty.usage, empty.throttled_requests_total) == (None, 50)


def test_a_node_that_was_away_is_not_counted_twice() -> None:
    """One failed read is no growth."""
    kept = cardinality(max_entities=1)
    here = crowd(("a", 9, 0), ("b", 1, 50))
    there = crowd(("a", 9, 0), ("b", 1, 50), broker="2")
    kept.apply(taken([*here, *there]))
    kept.apply(taken(here, 15))
    again = folds(kept.apply(taken([*here, *there], 30)))
    assert [each.throttled_requests_total for each in again] == [50, 50]


def test_an_idle_member_is_not_counted_twice() -> None:
    """One that leaves as idle and moves again counts on."""
    kept = cardinality(max_entities=1, idle_after_seconds=60)
    assert counted(kept, crowd(("a", 9, 0), ("b", 1, 50), ("c", 2, 0)), 0) == 50
    kept.apply(taken(crowd(("a", 9, 0), ("b", 0, 50), ("c", 2, 0)), 60))
    assert counted(kept, crowd(("a", 9, 0), ("b", 1, 51), ("c", 2, 0)), 75) == 51


def test_brokers_without_counters_have_none() -> None:
    """Kafka itself does not count by entity."""
    shown = cardinality(max_entities=1).apply(
        taken([usage(user=user, usage=1.0) for user in "ab"])
    )
    assert fold(shown).throttled_requests_total is None
