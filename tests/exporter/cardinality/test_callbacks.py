"""The entities of custom quota callbacks come under the cap, too."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.cardinality.examples import cardinality, page, taken
from tests.exporter.examples import usage
from tests.exporter.exposition.pages import lines

from quotascope.exporter.snapshot import Callbacks, CallbackUsage, NodeUsage, Snapshot
from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

LABELS = ("tenant", "tier")
whole = st.integers(0, 100).map(float)
values = st.sampled_from(("a", "b", "c", "d", "e", OVERFLOW))


def callbacks(*usages: CallbackUsage, after: float = 0.0) -> Snapshot:
    """A snapshot of these so many seconds after the first one."""
    nodes = tuple(NodeUsage(broker=broker) for broker in ("1", "2"))
    joined = taken((), after)
    return replace(
        joined, nodes=nodes, callbacks=Callbacks(labels=LABELS, usages=usages)
    )


def tagged(
    tenant: str, amount: float | None, throttle: float = 0.0, broker: str = "1"
) -> CallbackUsage:
    """What a tenant produced."""
    return CallbackUsage(
        broker=broker,
        quota_type=QuotaType.PRODUCE,
        tags=(tenant, "gold"),
        usage=amount,
        throttle_time_seconds=throttle,
    )


@st.composite
def crowds(draw: st.DrawFn) -> list[CallbackUsage]:
    """Entities of two brokers and two quota types."""
    kinds = st.sampled_from((QuotaType.PRODUCE, QuotaType.REQUEST))
    brokers = st.sampled_from(("1", "2"))
    keys = draw(st.sets(st.tuples(brokers, kinds, values, values), max_size=30))
    return [
        CallbackUsage(
            broker=broker,
            quota_type=kind,
            tags=(tenant, tier),
            usage=draw(st.none() | whole),
            throttle_time_seconds=draw(whole),
        )
        for broker, kind, tenant, tier in sorted(keys, key=str)
    ]


def sums(shown: Snapshot) -> dict[tuple[str, QuotaType], float]:
    """The sum of usages by node and quota type."""
    added: dict[tuple[str, QuotaType], float] = defaultdict(float)
    for each in shown.callbacks.usages:
        added[each.broker, each.quota_type] += each.usage or 0.0
    return added


def test_within_the_cap_nothing_changes() -> None:
    """A callback of usual size is shown as it is."""
    joined = callbacks(tagged("a", 1.0), tagged("b", 2.0))
    assert cardinality(max_entities=2).apply(joined).callbacks == joined.callbacks


def test_what_is_beyond_the_cap_is_one_entity() -> None:
    """The largest stay; every tag of the fold says so, its throttle is the longest, and all of it is counted."""
    joined = callbacks(
        tagged("a", 9.0),
        tagged("b", 1.0, 0.5),
        tagged("c", 2.0, 0.25),
        tagged("d", 8.0),
    )
    shown = cardinality(max_entities=2).apply(joined)
    assert lines(shown, "kafka_quota_callback") == [
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="__overflow__",tier="__overflow__"} 17.0',
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="b",tier="gold"} 1.0',
        'kafka_quota_callback_produce_bytes_per_second{broker="1",tenant="c",tier="gold"} 2.0',
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="__overflow__",tier="__overflow__"} 0.0',
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="b",tier="gold"} 0.5',
        'kafka_quota_callback_throttle_time_seconds{broker="1",quota_type="produce",tenant="c",tier="gold"} 0.25',
    ]  # fmt: skip
    assert shown.callbacks.crowded == {QuotaType.PRODUCE: 4}
    assert 'quotascope_entities{state="exported"} 2.0' in lines(shown, "quotascope_")
    assert 'quotascope_entities{state="overflow"} 2.0' in lines(shown, "quotascope_")
    assert 'quotascope_series_dropped{reason="overflow"} 4.0' in lines(
        shown, "quotascope_"
    )


def test_the_count_is_their_own() -> None:
    """Users and client ids take no room from what a callback tells apart, nor the other way round."""
    joined = replace(
        callbacks(tagged("a", 1.0)), entities=(usage(user="u", usage=1.0),)
    )
    shown = cardinality(max_entities=1).apply(joined)
    assert page(shown) == page(joined)


@given(crowd=crowds(), most=st.integers(1, 4))
def test_sums_are_those_of_all(crowd: list[CallbackUsage], most: int) -> None:
    """No usage gets lost, and what has no number gets none."""
    joined = callbacks(*crowd)
    shown = cardinality(max_entities=most).apply(joined)
    assert sums(shown) == sums(joined)


@given(crowd=crowds(), most=st.integers(1, 4))
def test_every_series_that_is_not_shown_is_counted(
    crowd: list[CallbackUsage], most: int
) -> None:
    """The page without a cap has as many series more as the counts say."""
    unbounded = [each for each in crowd if OVERFLOW not in each.tags]
    before = set(page(callbacks(*unbounded)))
    shown = cardinality(max_entities=most).apply(callbacks(*unbounded))
    after = {each for each in page(shown) if ("tenant", OVERFLOW) not in each[1]}
    assert after <= before
    assert len(before - after) == shown.folds.series_dropped["overflow"]
    assert (
        len(unbounded)
        == shown.callbacks.folded
        + len(shown.callbacks.usages)
        - shown.callbacks.stand_ins
    )


@given(moments=st.lists(crowds(), max_size=6), most=st.integers(1, 4))
def test_no_more_than_the_cap_are_shown(
    moments: list[list[CallbackUsage]], most: int
) -> None:
    """Neither at first nor later, and a tenant called as the fold is part of it."""
    kept = cardinality(max_entities=most)
    for number, crowd in enumerate(moments):
        shown = kept.apply(callbacks(*crowd, after=15 * number)).callbacks
        for kind in QuotaType:
            names = {each.tags for each in shown.usages if each.quota_type is kind}
            assert len(names - {(OVERFLOW, OVERFLOW)}) <= most
        assert len({(e.broker, e.quota_type, e.tags) for e in shown.usages}) == len(
            shown.usages
        )
