"""The answers of real nodes, joined with the rules that were in force."""

import pytest
from tests.exporter.recorded import COMBINED_RULES, SPLIT_RULES, TAKEN_AT, joined, limits

from quotascope.exporter.join.join import Join
from quotascope.exporter.snapshot import EntityUsage, Snapshot, ThrottleCause
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType

PRODUCE, FETCH, REQUEST = QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST
MUTATION = QuotaType.CONTROLLER_MUTATION


def find(snapshot: Snapshot, quota_type: QuotaType, user: str = "", client_id: str = "") -> EntityUsage:
    (entity_usage,) = (
        usage
        for usage in snapshot.entities
        if usage.entity.quota_type is quota_type and usage.entity.user == user and usage.entity.client_id == client_id
    )
    return entity_usage


@pytest.mark.parametrize(
    ("entity", "rule", "limit"),
    [
        ((PRODUCE, "alice", "app1"), QuotaEntity("alice", "app1"), 50_000.0),
        ((PRODUCE, "alice", "app2"), QuotaEntity("alice", DEFAULT), 200_000.0),
        ((PRODUCE, "svc:team a", ""), QuotaEntity("svc:team a", None), 40_000.0),
        ((PRODUCE, "carol", "spam"), QuotaEntity(DEFAULT, "spam"), 100_000.0),
        ((PRODUCE, "carol", "my app/1=x,*?"), QuotaEntity(DEFAULT, DEFAULT), 500_000.0),
        ((FETCH, "carol", ""), QuotaEntity(DEFAULT, None), 300_000.0),
        ((REQUEST, "", "bulk"), QuotaEntity(None, "bulk"), 0.01),
        ((REQUEST, "", "line\nbreak"), QuotaEntity(None, DEFAULT), 10.0),
    ],
)
def test_every_level_resolves_to_its_rule(
    split_throttled: Snapshot, entity: tuple[QuotaType, str, str], rule: QuotaEntity, limit: float
) -> None:
    """Each entity has its limit on a real broker, for all eight levels."""
    limited_entity = find(split_throttled, *entity).entity
    assert limited_entity.resolution is not None
    assert (limited_entity.limit, limited_entity.resolution.entity, limited_entity.resolution.level) == (
        limit,
        rule,
        rule.level,
    )


def test_units_are_base_units_and_throttles_have_causes(combined_throttled: Snapshot) -> None:
    """
    Percent become threads, milliseconds seconds; bytes stay. A throttle of NaN is 0, and has no cause.

    Bob used 0.07 % of his 1000 %, and waited nine seconds: that was his mutation quota.
    """
    carol = find(combined_throttled, REQUEST, "carol")
    assert (carol.usage, carol.entity.limit) == (2.2297051420220937 / 100, 0.02)
    assert carol.throttle_time_seconds == 0.05081132075471698
    assert carol.utilization == pytest.approx(1.1149, abs=1e-4)
    alice = find(combined_throttled, PRODUCE, "alice", "app1")
    assert (alice.usage, alice.throttle_time_seconds, alice.entity.limit) == (91241.75723810394, 9.604, 50_000)
    assert find(combined_throttled, MUTATION, "bob").usage == pytest.approx(0.780_868_7)
    spam2 = find(combined_throttled, PRODUCE, "", "spam2")
    assert (spam2.throttle_time_seconds, spam2.cause) == (0.0, None)
    throttled = [(REQUEST, "bob"), (REQUEST, "carol"), (PRODUCE, "alice")]
    causes = [find(combined_throttled, *names).cause for names in throttled]
    assert causes == [ThrottleCause.CONTROLLER_MUTATION, ThrottleCause.OWN, ThrottleCause.OWN]


def test_tokens_only_under_a_limit(combined_throttled: Snapshot) -> None:
    """Bob is in debt; alice has no limit, of which the broker makes 1e20 tokens, before the limits are read as well."""
    bob = find(combined_throttled, MUTATION, "bob")
    assert (bob.tokens, bob.entity.burst_tokens) == (-0.9839999999999989, 22.0)
    assert bob.burst_used == pytest.approx(1.0447, abs=1e-4)
    alice = find(combined_throttled, MUTATION, "alice")
    assert (alice.tokens, alice.entity.limit, alice.burst_used) == (None, None, None)
    unread = joined(["combined/throttled.jolokia2.json"], None)
    assert [find(unread, MUTATION, user).tokens for user in ("bob", "alice")] == [-0.9839999999999989, None]


def test_the_node_itself(combined_throttled: Snapshot) -> None:
    """The node reports muted connections, time that no quota counts, and the throttle times of requests."""
    (node,) = combined_throttled.nodes
    assert node.delay_queue_size == {PRODUCE: 6, FETCH: 3, REQUEST: 2, MUTATION: 0}
    assert node.number(catalog.EXEMPT_REQUEST_THREADS) == pytest.approx(0.0234, abs=1e-4)
    assert node.number(catalog.REQUEST_CAPACITY_THREADS) == 11.0
    assert node.by_name(catalog.REQUEST_THROTTLED_SECONDS)["Produce"] == 256.673
    assert node.by_name(catalog.REQUEST_THROTTLED_SECONDS)["Fetch"] == 89.358
    assert "FetchConsumer" not in node.by_name(catalog.REQUEST_THROTTLED_SECONDS)
    assert sum(node.stale_entities.values()) == 0


def test_idle_after_load_averages_linger(combined_idle: Snapshot, combined_without_quotas: Snapshot) -> None:
    """After a load the averages of the last minute stay; a node without rules has delay queues alone."""
    app1 = find(combined_idle, PRODUCE, "alice", "app1")
    assert (app1.usage, app1.throttle_time_seconds) == (0.0, 7.769)
    assert set(combined_idle.nodes[0].delay_queue_size.values()) == {0.0}
    assert combined_without_quotas.entities == ()
    assert len(combined_without_quotas.nodes[0].delay_queue_size) == 4


def test_a_refused_mutation_shows_on_controller_and_broker(split_throttled: Snapshot) -> None:
    """
    A broker has mutation beans of its own, from auto-created topics; the active controller's count.

    The request is refused once, forwarded: each of the two nodes counts its response. The controller mutes no client:
    bob's wait is on the broker, in group Request.
    """
    brokers = {usage.entity.broker for usage in split_throttled.entities if usage.entity.quota_type is MUTATION}
    assert brokers == {"100"}
    numbers = [
        (node.active_controller, node.stale_entities[MUTATION], node.by_name(catalog.THROTTLING_ERRORS))
        for node in split_throttled.nodes
    ]
    assert numbers == [(None, 2, {"CreateTopics": 1.0}), (True, 0, {"CreateTopics": 1.0})]
    throttled = {
        (usage.entity.broker, usage.entity.client_id, usage.cause)
        for usage in split_throttled.entities
        if usage.entity.quota_type is REQUEST and usage.throttle_time_seconds
    }
    assert throttled == {("1", "bob-admin", ThrottleCause.CONTROLLER_MUTATION), ("1", "bulk", ThrottleCause.OWN)}


def test_after_the_removal_of_all_rules_every_bean_is_stale(split_removed: Snapshot) -> None:
    """The beans stay for an hour, and say nothing any more."""
    assert split_removed.entities == ()
    assert split_removed.nodes[0].stale_entities == {PRODUCE: 16, FETCH: 2, REQUEST: 20, MUTATION: 2}


def test_without_request_quotas_a_forwarded_throttle_still_shows(split_forwarded: Snapshot) -> None:
    """Without request quotas, the throttle of a forwarded request is still shown with its cause."""
    bob = find(split_forwarded, REQUEST, "", "bob-admin")
    state_of_bob = bob.throttle_time_seconds, bob.entity.limit, bob.cause
    assert state_of_bob == (3.893, None, ThrottleCause.CONTROLLER_MUTATION)


def test_a_limit_removed_within_the_minute_is_still_the_cause() -> None:
    """A limit that was removed within the last minute is still the cause of its lingering throttle."""
    join, nodes = Join(), ("1", "100")
    joined([f"split/throttled.{node}.jolokia2.json" for node in nodes], limits(SPLIT_RULES, nodes), join)
    names = [f"split/forwarded.{node}.jolokia2.json" for node in nodes]
    later = joined(names, limits({MUTATION: SPLIT_RULES[MUTATION]}, nodes), join, TAKEN_AT + 20)
    assert find(later, REQUEST, "", "bulk").cause is ThrottleCause.OWN


def test_before_the_limits_are_read_usage_is_shown_without_them() -> None:
    """Before the limits are known, all usage is shown without them, and none is called stale."""
    names = [f"split/removed.{node}.jolokia2.json" for node in ("1", "100")]
    snapshot = joined(names, None)
    assert len(snapshot.entities) == 16 + 2 + 20 + 4 + 2
    assert {(usage.entity.resolution, usage.utilization, usage.tokens) for usage in snapshot.entities} == {(None,) * 3}
    assert [node.stale_entities for node in snapshot.nodes] == [{MUTATION: 2}, {}]


@pytest.mark.parametrize("agent", ["jolokia1.json", "jmx_exporter.txt"])
def test_other_agents_give_the_same_entities(combined_throttled: Snapshot, agent: str) -> None:
    """Limits, rules and causes are the same, whatever the dialect."""
    other_agent = joined([f"combined/throttled.{agent}"], limits(COMBINED_RULES))
    causes, theirs = (
        {usage.entity: usage.cause for usage in state.entities} for state in (combined_throttled, other_agent)
    )
    assert theirs == causes
