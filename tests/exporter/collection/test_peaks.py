from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import snapshot, usage

from quotascope.exporter.collection.peaks import (
    FORGET_AFTER_SECONDS,
    MOST_SCRAPERS,
    PeakKeeper,
)
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Peaks, Snapshot
from quotascope.metrics import QuotaType

MUTATION = QuotaType.CONTROLLER_MUTATION
ALICE = usage(limit=100.0, usage=0.0).entity


def used(amount: float, **changes: object) -> EntityUsage:
    """What alice used of her 100 bytes/s."""
    given = EntityUsage(entity=ALICE, usage=amount)
    for name, value in changes.items():
        setattr(given, name, value)
    return given


def shown(amount: float) -> Snapshot:
    """A snapshot of alice alone."""
    return snapshot(used(amount))


def of(peaks: Peaks, entity: EntityUsage) -> float | None:
    """The greatest utilisation of an entity."""
    return peaks.utilization.get(id(entity.entity))


class Scrapes:
    """A keeper, and scrapes of snapshots that are taken for them."""

    def __init__(self) -> None:
        self.keeper = PeakKeeper()
        self.at = 0.0

    def sample(self, *amounts: float) -> None:
        """Samples of alice."""
        for amount in amounts:
            self.keeper.note(shown(amount), self.at)

    def scrape(self, who: str, amount: float) -> float | None:
        """What a scrape is told of alice's maximum."""
        taken = shown(amount)
        self.keeper.note(taken, self.at)
        return of(self.keeper.since_last(who, taken, self.at), taken.entities[0])


def test_maximum_since_the_last_scrape() -> None:
    """The samples between two scrapes count, and the scrape's own value does."""
    scrapes = Scrapes()
    assert scrapes.scrape("a", 10) == 0.1
    scrapes.sample(20, 90, 30)
    assert scrapes.scrape("a", 40) == 0.9
    scrapes.sample(5)
    assert scrapes.scrape("a", 50) == 0.5


def test_one_scraper_takes_nothing_from_another() -> None:
    """Of two Prometheus servers, and somebody with curl, each gets the maximum since its own last scrape."""
    scrapes = Scrapes()
    scrapes.scrape("a", 0)
    scrapes.sample(80)
    scrapes.scrape("b", 0)
    scrapes.sample(60)
    assert scrapes.scrape("curl", 1) == 0.01
    assert scrapes.scrape("a", 0) == 0.8
    scrapes.sample(10)
    assert scrapes.scrape("b", 0) == 0.6
    assert scrapes.scrape("a", 0) == 0.1
    assert scrapes.scrape("curl", 0) == 0.1


def test_many_scrapers_in_any_order() -> None:
    """However scrapes of several follow each other, each maximum is that of its own stretch of time."""
    scrapes = Scrapes()
    since: dict[str, list[float]] = {}
    for step in range(200):
        amount = float((step * 7919) % 101)
        who = "abcde"[(step * step + step // 3) % 5]
        for values in since.values():
            values.append(amount / 100)
        told = scrapes.scrape(who, amount)
        assert told == max(since.get(who, [amount / 100]))
        since[who] = []
    assert len(scrapes.keeper._stretches) <= 5


def test_limit_that_changes_in_between() -> None:
    """The entity is the same, whatever object stands for it: the maximum is of ratios, each under the limit of its time."""
    keeper = PeakKeeper()
    keeper.since_last("a", shown(0), 0)
    keeper.note(shown(90), 0)
    later = snapshot(EntityUsage(entity=replace(ALICE, limit=1000.0), usage=100.0))
    keeper.note(later, 0)
    assert of(keeper.since_last("a", later, 0), later.entities[0]) == 0.9


def test_node_that_missed_a_sample_keeps_its_maximum() -> None:
    """A broker too busy to answer was likely at its peak before."""
    keeper = PeakKeeper()
    keeper.since_last("a", shown(0), 0)
    keeper.note(shown(90), 0)
    keeper.note(snapshot(nodes=()), 0)
    taken = shown(1)
    assert of(keeper.since_last("a", taken, 0), taken.entities[0]) == 0.9


def test_only_what_the_snapshot_shows_in_detail() -> None:
    """An entity that is folded, gone, or without detail has no maximum, whatever it was."""
    keeper = PeakKeeper()
    keeper.since_last("a", shown(0), 0)
    keeper.note(shown(90), 0)
    plain = snapshot(used(50, detailed=False))
    assert keeper.since_last("a", plain, 0).utilization == {}
    keeper.note(shown(90), 0)
    assert keeper.since_last("a", snapshot(), 0).utilization == {}


@pytest.mark.parametrize("amount", [nan, inf])
def test_no_maximum_is_no_number(amount: float) -> None:
    """What is no finite number never becomes a maximum."""
    scrapes = Scrapes()
    assert scrapes.scrape("a", amount) is None
    scrapes.sample(amount, 20, amount)
    assert scrapes.scrape("a", amount) == 0.2


def test_burst_and_delay_queues() -> None:
    """So do the used part of a burst and the muted connections of a node that is there."""
    bob = usage(MUTATION, "bob", limit=2.0, burst_tokens=20.0, tokens=20.0)
    nodes = {
        size: (NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: size}),)
        for size in (0.0, 7.0)
    }
    keeper = PeakKeeper()
    keeper.since_last("a", snapshot(bob), 0)
    debt = EntityUsage(entity=bob.entity, tokens=-5.0)
    keeper.note(snapshot(debt, nodes=nodes[7.0]), 0)
    taken = snapshot(bob, nodes=nodes[0.0])
    peaks = keeper.since_last("a", taken, 0)
    assert peaks.burst_used == {id(bob.entity): 1.25}
    assert peaks.delay_queue_size == {("1", QuotaType.PRODUCE): 7.0}
    keeper.note(snapshot(debt, nodes=nodes[7.0]), 0)
    assert keeper.since_last("a", snapshot(nodes=()), 0).delay_queue_size == {}


def test_scraper_that_stays_away_is_forgotten() -> None:
    """It costs nothing any more, and begins anew when it comes back."""
    scrapes = Scrapes()
    scrapes.scrape("a", 0)
    scrapes.sample(90)
    scrapes.at = FORGET_AFTER_SECONDS + 1
    scrapes.sample(95)
    assert scrapes.keeper._stretches == []
    assert scrapes.scrape("a", 10) == 0.1


def test_too_many_scrapers_push_nobody_out() -> None:
    """Those that come too late get their own value, which is told once; a place that becomes free is given again."""
    scrapes = Scrapes()
    with capture_logs() as lines:
        for number in range(MOST_SCRAPERS + 5):
            scrapes.scrape(str(number), 0)
        scrapes.sample(90)
        assert scrapes.scrape("0", 0) == 0.9
        assert scrapes.scrape("late", 10) == 0.1
    assert [line["event"] for line in lines] == ["too many scrapers to keep maxima for"]
    scrapes.at = FORGET_AFTER_SECONDS
    scrapes.scrape("0", 0)
    scrapes.at += 1
    scrapes.scrape("late", 0)
    scrapes.sample(70)
    assert scrapes.scrape("late", 0) == 0.7


def test_names_that_come_and_go_take_no_memory() -> None:
    """A hundred thousand client ids between two scrapes of each other leave no more than those of the last few samples."""
    keeper = PeakKeeper()
    keeper.since_last("a", snapshot(), 0)
    for number in range(1000):
        many = [
            usage(client_id=f"{number}-{each}", limit=1.0, usage=1.0)
            for each in range(100)
        ]
        keeper.note(snapshot(*many), 0)
    assert len(keeper._slots._by_identity) <= 1400
    assert len(keeper._slots._by_name) <= 1400
    assert len(keeper._stretches[0].utilization) <= 1400


def test_each_maximum_is_of_its_own_column() -> None:
    """Limit and burst are filled at different moments, and by different amounts: neither maximum is the other's."""
    bob = usage(MUTATION, "bob", limit=2.0, burst_tokens=20.0, usage=0.5, tokens=16.0)
    keeper = PeakKeeper()
    keeper.since_last("a", snapshot(bob), 0)
    keeper.note(snapshot(EntityUsage(entity=bob.entity, usage=1.5, tokens=18.0)), 0)
    keeper.note(snapshot(EntityUsage(entity=bob.entity, usage=0.25, tokens=-2.0)), 0)
    peaks = keeper.since_last("a", snapshot(bob), 0)
    assert peaks.utilization == {id(bob.entity): 0.75}
    assert peaks.burst_used == {id(bob.entity): 1.1}
