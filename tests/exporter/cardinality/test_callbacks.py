"""The entities of custom quota callbacks come under the cap, too."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.cardinality.examples import cardinality, page, taken
from tests.exporter.exposition.oracle import lines

from quotascope.exporter.snapshot import Callbacks, Columns, Entity, EntityUsage, NodeUsage, Snapshot
from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

LABELS = ("tenant", "tier")
whole = st.integers(0, 100).map(float)
values = st.sampled_from(("a", "b", "c", "d", "e", OVERFLOW))


def callbacks(*usages: EntityUsage, after: float = 0.0) -> Snapshot:
    """A snapshot of these so many seconds after the first one."""
    nodes = tuple(NodeUsage(broker=broker) for broker in ("1", "2"))
    joined = taken((), after)
    return replace(joined, nodes=nodes, shown=Columns.of(usages), callbacks=Callbacks(labels=LABELS))


def tagged(tenant: str, amount: float | None, throttle: float = 0.0, broker: str = "1") -> EntityUsage:
    """What a tenant produced."""
    return EntityUsage(
        entity=entity(broker, QuotaType.PRODUCE, (tenant, "gold")), usage=amount, throttle_time_seconds=throttle
    )


def entity(broker: str, kind: QuotaType, tags: tuple[str, ...]) -> Entity:
    """One that a callback distinguishes."""
    return Entity(broker=broker, quota_type=kind, user="", client_id="", tags=tags)


@st.composite
def crowds(draw: st.DrawFn) -> list[EntityUsage]:
    """Entities of two brokers and two quota types."""
    kinds = st.sampled_from((QuotaType.PRODUCE, QuotaType.REQUEST))
    brokers = st.sampled_from(("1", "2"))
    keys = draw(st.sets(st.tuples(brokers, kinds, values, values), max_size=30))
    return [
        EntityUsage(
            entity=entity(broker, kind, (tenant, tier)),
            usage=draw(st.none() | whole),
            throttle_time_seconds=draw(whole),
        )
        for broker, kind, tenant, tier in sorted(keys, key=str)
    ]


def test_what_is_beyond_the_cap_is_one_entity() -> None:
    """The largest stay; every tag of the fold says so, its throttle is the longest, and all of it is counted."""
    joined = callbacks(tagged("a", 9.0), tagged("b", 1.0, 0.5), tagged("c", 2.0, 0.25), tagged("d", 8.0))
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
    assert 'quotascope_series_dropped{reason="overflow"} 4.0' in lines(shown, "quotascope_")


@given(crowd=crowds(), most=st.integers(1, 4))
def test_every_series_that_is_not_shown_is_counted(crowd: list[EntityUsage], most: int) -> None:
    """The page without a cap has as many series more as the counts say."""
    unbounded = [each for each in crowd if OVERFLOW not in (each.entity.tags or ())]
    before = set(page(callbacks(*unbounded)))
    shown = cardinality(max_entities=most).apply(callbacks(*unbounded))
    after = {each for each in page(shown) if ("tenant", OVERFLOW) not in each[1]}
    assert after <= before
    assert len(before - after) == shown.folds.series_dropped.get("overflow", 0)
    alone = [each for each in shown.shown.tagged if not each.entity.stands_in]
    assert len(unbounded) == shown.callbacks.folded + len(alone)
