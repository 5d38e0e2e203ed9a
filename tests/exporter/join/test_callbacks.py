"""Custom quota callbacks: their tags are shown as they are, and no limit is made up."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.exposition.oracle import lines
from tests.exporter.join.world import Numbers, World, bean, entity
from tests.exporter.recorded import SETTINGS, joined, limits
from tests.strategies import texts

from quotascope.exporter.coverage import Unplaced
from quotascope.exporter.join.placing import MOST_TAGS, labels_of
from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import Entity, EntityUsage, LimitState
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

PRODUCE, REQUEST = QuotaType.PRODUCE, QuotaType.REQUEST
RULES = {PRODUCE: {QuotaEntity("alice"): 1_000.0}}
CALLBACK = replace(SETTINGS, quota_callback_class="org.example.Quotas")
CUSTOM = limits(RULES, settings=CALLBACK)


def tagged(kind: QuotaType, usage: float, throttle_ms: float = 0.0, /, **tags: str) -> Numbers:
    """Return the bean of a callback; an underscore in a key stands for a dot."""
    properties = {key.replace("_", "."): value for key, value in tags.items()}
    return bean(kind.group, {kind.attribute: usage, "throttle-time": throttle_ms}, **properties)


def test_tags_become_labels_and_units_are_ours() -> None:
    """Every bean has all tags as labels, empty where it lacks one, and values in base units."""
    snapshot = World(CUSTOM).collect_one(
        tagged(PRODUCE, 500.0, 1_500.0, quota_type="PRODUCE", group="a,b"), tagged(REQUEST, 250.0, tenant="t")
    )
    assert snapshot.callbacks.labels == ("group", "tag_quota_type", "tenant")
    first_usage, second = snapshot.columns.tagged
    produced = Entity(broker="1", quota_type=PRODUCE, user="", client_id="", tags=("a,b", "PRODUCE", ""))
    assert first_usage == EntityUsage(entity=produced, usage=500.0, throttle_time_seconds=1.5)
    assert (second.entity.tags, second.usage) == (("", "", "t"), 2.5)
    assert lines(snapshot, "kafka_quota_callback") == [
        ('kafka_quota_callback_produce_bytes_per_second{broker="1",group="a,b",tag_quota_type="PRODUCE",tenant=""} '
        '500.0'),
        'kafka_quota_callback_request_threads{broker="1",group="",tag_quota_type="",tenant="t"} 2.5',
        (
            'kafka_quota_callback_throttle_time_seconds{broker="1",group="a,b",quota_type="produce",'
            'tag_quota_type="PRODUCE",tenant=""} 1.5'
        ),
        (
            'kafka_quota_callback_throttle_time_seconds{broker="1",group="",quota_type="request",tag_quota_type="",'
            'tenant="t"} 0.0'
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", QuotaType)
def test_a_throttle_time_that_an_agent_leaves_out_is_unknown(kind: QuotaType) -> None:
    """A throttle time that an agent leaves out is unknown, and not zero."""
    numbers = tagged(kind, 1.0, tenant="t")
    rate = {column: value for column, value in numbers.items() if column.attribute != "throttle-time"}
    for given_, expected in ((numbers, 0.0), (rate, None)):
        state = World(CUSTOM).collect_one(given_)
        (usage,) = state.columns.tagged
        assert usage.throttle_time_seconds == expected
        rows = lines(state, "kafka_quota_callback_throttle_time_seconds{")
        assert len(rows) == (expected is not None)


def test_entities_that_differ_in_a_tag_too_many_are_one() -> None:
    """Entities that differ only in a surplus tag are one, with the sum of usages and the longest known throttle."""
    tags = {f"k{number}": "v" for number in range(MOST_TAGS)}
    given_ = [(0.1, 3.0), (0.2, float("nan")), (1e9, 5.0), (-1e9, 4.0), (float("nan"), 1.0)]
    beans = [tagged(PRODUCE, usage, wait, **tags, zone=f"z{number}") for number, (usage, wait) in enumerate(given_)]
    unknown = [tagged(REQUEST, float("nan"), 0.0, **tags, zone=zone) for zone in "ab"]
    sums = set()
    for beans_in_order in (beans, beans[::-1], beans[2:] + beans[:2]):
        state = World().collect_one(*beans_in_order, *unknown)
        assert state.callbacks.left_out == ("zone",)
        produced, requested = state.columns.tagged
        assert (produced.entity.tags, produced.throttle_time_seconds) == (("v",) * MOST_TAGS, 0.005)
        assert (requested.usage, requested.throttle_time_seconds) == (None, 0.0)
        sums.add(produced.usage)
    assert sums == {sum(sorted((0.1, 0.2, 1e9, -1e9)))}


OWN = entity(PRODUCE, "alice", usage=100.0)
TAGGED = tagged(PRODUCE, 1.0, tenant="t")


@pytest.mark.parametrize(
    ("settings", "beans", "callbacks", "limited", "expected"),
    [
        # DescribeConfigs answered for both nodes: beans prove nothing against it
        ({"1": SETTINGS, "2": SETTINGS}, [OWN, TAGGED], [False, False], [True, True], 0),
        ({"1": SETTINGS, "2": CALLBACK}, [OWN, TAGGED], [False, True], [True, False], 1),
        ({"1": SETTINGS, "2": CALLBACK}, [OWN], [False, True], [True, False], 0),
        ({"1": CALLBACK, "2": CALLBACK}, [OWN], [True, True], [False, False], 0),
        # it did not answer for node 2, which may have a callback if its beans look so, or if another node has one
        ({"1": SETTINGS}, [OWN], [False, None], [True, True], 0),
        ({"1": SETTINGS}, [OWN, TAGGED], [False, None], [True, False], 1),
        ({"1": CALLBACK}, [OWN], [True, None], [False, False], 0),
        # it is denied
        ({}, [OWN, TAGGED], [None, None], [True, False], 1),
    ],
)
def test_the_admin_api_decides_on_each_node_and_beans_only_where_it_is_silent(
    settings: Mapping[str, NodeSettings],
    beans: Sequence[Numbers],
    callbacks: Sequence[bool | None],
    limited: Sequence[bool],
    expected: int,
) -> None:
    """
    The Admin API decides if a node has a callback, and beans only where it says nothing.

    Nodes 1 and 2 have the same quota; node 2 has beans with tags that Kafka's own quotas do not have.
    """
    snapshot = World(replace(limits(RULES), nodes=settings)).collect({"1": [OWN], "2": beans})
    assert [node.quota_callback for node in snapshot.nodes] == callbacks
    assert [usage.entity.limit == 1_000.0 for usage in snapshot.entities] == limited
    assert [usage.entity.limit_state is LimitState.UNKNOWN for usage in snapshot.entities] == [
        not is_limited for is_limited in limited
    ]
    assert [node.overruled for node in snapshot.nodes] == [not is_limited for is_limited in limited]
    assert len(snapshot.columns.tagged) == expected
    detected = {node.broker: float(node.quota_callback) for node in snapshot.nodes if node.quota_callback is not None}
    assert lines(snapshot, "quotascope_callback_detected") == [
        f'quotascope_callback_detected{{broker="{node}"}} {value}' for node, value in detected.items()
    ]


def test_tags_are_series_that_could_not_be_placed_where_no_callback_explains_them() -> None:
    without = World(limits(RULES)).collect_one(OWN, TAGGED).nodes[0]
    assert without.coverage is not None
    assert without.coverage.unplaced == Unplaced(
        count=2,
        example="kafka.server:tenant=t,type=Produce byte-rate",
        labels=("tenant",),
        expected=("user", "client-id"),
    )
    unknown = World().collect_one(OWN, TAGGED).nodes[0]
    assert (unknown.foreign_labels, unknown.coverage) == (("tenant",), without.coverage)
    custom = World(CUSTOM).collect_one(OWN, TAGGED).nodes[0]
    assert custom.coverage is not None
    assert (custom.foreign_labels, custom.coverage.unplaced) == ((), None)


def test_entities_under_tags_come_and_go_with_what_the_admin_api_says() -> None:
    world, counts = World(), []
    for configured in (None, limits(RULES), CUSTOM, limits(RULES), None):
        world.limits = configured
        state = world.collect_one(OWN, TAGGED)
        counts.append((len(state.columns.tagged), state.callbacks.labels))
    assert counts == [(1, ("tenant",)), (0, ()), (1, ("tenant",)), (0, ()), (1, ("tenant",))]


def strimzi(bound: float, factor: float | None = None, name: str = "Produce") -> Numbers:
    """Return a limit of Strimzi's quotas plugin, and the factor of its storage check."""
    domain = "io.strimzi.kafka.quotas"
    checked = {} if factor is None else {"Value": factor}
    return {
        **bean("StaticQuotaCallback", {"Value": bound}, domain, name=name),
        **bean("ThrottleFactor", checked, domain, name="ThrottleFactor", observingBrokerId="1"),
    }


@pytest.mark.parametrize("name", ["jolokia2.json", "quotascope_rules.txt", "jmx_default.txt", "strimzi.txt"])
def test_a_real_broker_reports_the_limits_of_strimzis_plugin(name: str) -> None:
    """
    The limits are there in each dialect.

    The rules in force were 50,000 and 80,000 bytes/s, and 200 % of a thread, with carol excluded.
    """
    snapshot = joined([f"strimzi_quotas/throttled.{name}"], CUSTOM)
    usages = {
        (usage.entity.quota_type, "true" in (usage.entity.tags or ())): usage for usage in snapshot.columns.tagged
    }
    under = {kind: usage.entity.limit for (kind, excluded), usage in usages.items() if not excluded}
    assert under == {PRODUCE: 50_000.0, QuotaType.FETCH: 80_000.0, REQUEST: 2.0, QuotaType.CONTROLLER_MUTATION: None}
    states = [usage.entity.limit_state for (_, excluded), usage in usages.items() if excluded]
    assert states == [LimitState.UNLIMITED] * 2
    assert usages[PRODUCE, False].utilization == pytest.approx(1.15, abs=0.1)
    (node,) = snapshot.nodes
    assert (node.quota_callback, node.number(catalog.CALLBACK_THROTTLE_FACTOR)) == (True, 1.0)
    assert lines(snapshot, "kafka_quota_produce_limit") == []


def test_a_full_volume_leaves_nothing_of_the_produce_limit() -> None:
    """A full volume leaves nothing of the produce limit, as recorded from a real broker whose plugin keeps 1 byte/s."""
    snapshot = joined(["strimzi_quotas/full.jolokia2.json"], None)
    assert lines(snapshot, "kafka_quota_callback_produce_limit") == [
        (
            'kafka_quota_callback_produce_limit_bytes_per_second{broker="1",excluded_principal_quota_key="",'
            'tag_quota_type="PRODUCE"} 1.0'
        )
    ]
    assert lines(snapshot, "kafka_quota_callback_throttle_factor") == [
        'kafka_quota_callback_throttle_factor_ratio{broker="1"} 0.0'
    ]


@pytest.mark.parametrize(
    ("reported", "limit", "state"),
    [
        (strimzi(1_000.0), 1_000.0, LimitState.LIMITED),
        (strimzi(1_000.0, 0.5), 500.0, LimitState.LIMITED),
        (strimzi(sys.float_info.max, 1.0), None, LimitState.UNLIMITED),
        (strimzi(float("nan"), 1.0), None, LimitState.UNKNOWN),
        (strimzi(2_000.0, name="Fetch"), None, LimitState.UNKNOWN),
        ({}, None, LimitState.UNKNOWN),
    ],
)
def test_unlimited_and_unknown_are_two_things(reported: Numbers, limit: float | None, state: LimitState) -> None:
    """Unlimited and unknown differ under Strimzi's plugin and under any other callback, also after new limits."""
    world = World()
    for _ in range(2):
        joined_state = world.collect_one(tagged(PRODUCE, 1.0, quota_type="PRODUCE"), reported)
        (usage,) = joined_state.columns.tagged
        assert (usage.entity.limit, usage.entity.limit_state) == (limit, state)


def test_a_limit_of_the_plugin_moves() -> None:
    """Each node has the plugin's own limit, and a node that left leaves no limit behind."""
    world, own_bean = World(), tagged(PRODUCE, 250.0, quota_type="PRODUCE")

    def limits_shown(*of_nodes: Numbers) -> list[float | None]:
        tables = {str(number): [own_bean, bean] for number, bean in enumerate(of_nodes, 1)}
        return [usage.entity.limit for usage in world.collect(tables).columns.tagged]

    assert limits_shown(strimzi(1_000.0, 1.0), strimzi(500.0)) == [1_000.0, 500.0]
    assert limits_shown(strimzi(1_000.0, 0.0), strimzi(500.0)) == [1.0, 500.0]
    assert limits_shown({}, strimzi(500.0)) == [None, 500.0]


@pytest.mark.parametrize(
    ("tags", "labels"),
    [
        (("tenant", "client-id"), ("tenant", "client_id")),
        (("a.b", "a_b"), ("a_b", "a_b_")),
        (("broker", "cluster", "le"), ("tag_broker", "tag_cluster", "tag_le")),
        (("1st", "__name__", "é"), ("tag_1st", "tag___name__", "tag__")),
    ],
)
def test_labels_are_names_that_are_free(tags: tuple[str, ...], labels: tuple[str, ...]) -> None:
    """A label with a meaning for Prometheus, the families or the exporter is not taken."""
    assert labels_of(tags) == labels


@given(tags=st.lists(texts, unique=True, max_size=MOST_TAGS))
def test_labels_of_any_tags_are_valid_and_different(tags: list[str]) -> None:
    """Labels of any tags are valid and differ, whatever a callback calls its tags."""
    labels = labels_of(tags)
    assert len(set(labels)) == len(tags)
    assert all(label.isidentifier() and label.isascii() for label in labels)
    assert not any(label.startswith("_") for label in labels)
