"""The coverage of a source's answer."""

from collections.abc import Iterable, Sequence

import pytest
from tests.exporter import recorded

from quotascope.exporter.coverage import Coverage, EntityKind, Unplaced
from quotascope.exporter.mapping import SERVER, Bean, BeanColumn, BeanLayout
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.exporter.sources.source import CoverageTracker
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType

USER, CLIENT_ID, PAIR = EntityKind
PRODUCE, FETCH = QuotaType.PRODUCE, QuotaType.FETCH
UNPLACED = Unplaced(count=1, example="x", labels=())


def column(quota_type: str, attribute: str = "byte-rate", **tags: str) -> BeanColumn:
    properties = {key.replace("_", "-"): value for key, value in tags.items()}
    return BeanColumn(Bean.of(SERVER, {"type": quota_type, **properties}), attribute)


def covered(columns: Iterable[BeanColumn], *, complete: bool = False, alike: bool = False) -> Coverage:
    return CoverageTracker(complete=complete, alike=alike).of(BeanLayout(tuple(columns)))


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (QuotaEntity("alice"), USER),
        (QuotaEntity(DEFAULT), USER),
        (QuotaEntity(None, "app"), CLIENT_ID),
        (QuotaEntity(None, DEFAULT), CLIENT_ID),
        (QuotaEntity(DEFAULT, "app"), PAIR),
        (QuotaEntity("alice", DEFAULT), PAIR),
    ],
)
def test_a_default_is_a_name_of_its_clients(rule: QuotaEntity, kind: EntityKind) -> None:
    assert EntityKind.of_rule(rule) is kind


def test_a_coverage_lists_kinds_numbers_and_queues_by_quota_type() -> None:
    coverage = covered([
        column("Produce", user="alice"),
        column("Produce", "throttle-time", user="alice", client_id="app"),
        column("Fetch", "queue-size"),
        column("ControllerMutation", "tokens", user="alice"),
        column("Request", "request-time"),  # of the clients without client-id: a line with no name shows no kind
        column("socket-server-metrics", "connection-accept-rate", listener="PLAIN"),
    ])  # fmt: skip
    assert coverage.kinds == {PRODUCE: {USER, PAIR}, QuotaType.CONTROLLER_MUTATION: {USER}}
    assert coverage.usages == {PRODUCE, QuotaType.REQUEST}
    assert coverage.throttle_times == {PRODUCE}
    assert coverage.queues == {FETCH}
    assert (coverage.tokens, coverage.tagged, coverage.has_entities) == (True, False, True)


def test_tags_of_a_callback_are_entities_of_no_kind() -> None:
    coverage = covered([column("Fetch", tenant="a")])
    assert (coverage.kinds, coverage.tagged, coverage.has_entities) == ({}, True, True)


@pytest.mark.parametrize(
    ("coverage", "certain"),
    [
        (covered([]), []),
        (covered([column("Produce", user="a")]), [USER]),
        (covered([column("Produce", user="a")], alike=True), [USER, CLIENT_ID, PAIR]),
        (covered([column("Fetch", user="a")], alike=True), []),
        (covered([column("Produce", "queue-size")], complete=True), [USER, CLIENT_ID, PAIR]),
        (covered([column("Produce", "queue-size")]), []),
        (covered([column("Fetch", "queue-size")], complete=True), []),
        (Coverage(kinds={PRODUCE: frozenset([USER])}, unplaced=UNPLACED), []),
        (Coverage(complete=True, queues=frozenset([PRODUCE]), unplaced=UNPLACED), []),
    ],
)
def test_it_is_certain_only_with_evidence_that_an_entity_would_be_shown(
    coverage: Coverage, certain: Sequence[EntityKind]
) -> None:
    assert [kind for kind in EntityKind if coverage.would_show(PRODUCE, kind)] == certain


def test_the_coverage_follows_columns_that_come_and_leave() -> None:
    tracker = CoverageTracker()
    pair, user, queue = (
        column("Produce", user="a", client_id="b"),
        column("Fetch", user="a"),
        column("Fetch", "queue-size"),
    )
    first_layout = BeanLayout((pair, user, user))
    assert tracker.of(first_layout).kinds == {PRODUCE: {PAIR}, FETCH: {USER}}
    assert tracker.of(first_layout) is tracker.of(first_layout)
    assert tracker.of(BeanLayout((queue, user))).kinds == {FETCH: {USER}}
    assert tracker.of(BeanLayout((queue,))) == Coverage(queues=frozenset([FETCH]))


def test_a_page_is_looked_at_again_only_when_its_series_change() -> None:
    reader = TextReader()
    page = b'kafka_server_quota_byte_rate{resource="Produce",user="a"} %d\n'
    first_coverage = reader.read(page % 1).coverage
    assert reader.read(page % 2).coverage is first_coverage
    both = page + b'kafka_server_quota_byte_rate{resource="Fetch",user="a"} 3\n'
    assert reader.read(both % 2).coverage.kinds == {PRODUCE: {USER}, FETCH: {USER}}


def test_series_named_like_quota_metrics_are_counted_where_no_dialect_places_them() -> None:
    page = (
        b'kafka_server_quota_byte_rate{client_id="writer",type="Produce"} 5\n'
        b'kafka_server_quota_throttle_time{client_id="writer",type="Produce"} 5\n'
    )
    unplaced = TextReader().read(page).coverage.unplaced
    assert unplaced is None or (unplaced.count, unplaced.labels) == (2, ("client_id", "type"))


@pytest.mark.parametrize("name", ["dialects/jmx_default.txt", "dialects/strimzi.txt", "dialects/kafka_2_0_0.txt"])
def test_every_series_of_a_recorded_page_is_placed(name: str) -> None:
    assert recorded.table(name).coverage.unplaced is None


def test_jolokia_and_our_rules_leave_nothing_out_of_a_type_with_a_delay_queue() -> None:
    for name in ("combined/noquota.jolokia2.json", "strimzi_quotas/throttled.quotascope_rules.txt"):
        coverage = recorded.table(name).coverage
        assert all(coverage.would_show(quota_type, kind) for quota_type in QuotaType for kind in EntityKind)
