"""Which quota a throttle comes from."""

import pytest
from tests.exporter.join.world import Numbers, World, entity, leads, limits

from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import Snapshot, ThrottleCause
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

REQUEST, MUTATION = QuotaType.REQUEST, QuotaType.CONTROLLER_MUTATION
RULES = {REQUEST: {QuotaEntity(DEFAULT): 100.0}, MUTATION: {QuotaEntity(DEFAULT): 2.0}}
FOR_CLIENTS = {
    REQUEST: {QuotaEntity(DEFAULT): 100.0},
    MUTATION: {QuotaEntity(None, DEFAULT): 2.0},
}
FOR_PAIRS = {
    REQUEST: {QuotaEntity(DEFAULT, DEFAULT): 100.0},
    MUTATION: {QuotaEntity(DEFAULT): 2.0},
}


def waiting(*, usage: float = 5.0, throttle_ms: float = 500.0) -> Numbers:
    """Bob's requests are throttled."""
    return entity(REQUEST, "bob", usage=usage, throttle_ms=throttle_ms)


def bucket(tokens: float, user: str = "bob", client_id: str = "") -> Numbers:
    """A bucket of mutations."""
    return entity(MUTATION, user, client_id, tokens=tokens)


ON_CONTROLLER = leads(1)
"""The node is broker and active controller in one: a client without a bucket there made no mutations."""


def cause(snapshot: Snapshot) -> ThrottleCause | None:
    """The cause of the one throttle in group Request."""
    (found,) = (
        usage.cause for usage in snapshot.entities if usage.entity.quota_type is REQUEST
    )
    return found


def test_no_throttle_has_no_cause() -> None:
    """Debt alone throttles nobody yet."""
    snapshot = World(limits(RULES)).collect_one(
        entity(REQUEST, "bob", usage=5.0), bucket(-3.0)
    )
    assert {usage.cause for usage in snapshot.entities} == {None}


@pytest.mark.parametrize("quota_type", [QuotaType.PRODUCE, QuotaType.FETCH, MUTATION])
def test_throttles_in_other_groups_are_their_own(quota_type: QuotaType) -> None:
    """Only group Request is ambiguous."""
    world = World(limits({quota_type: {QuotaEntity("bob"): 1.0}}))
    snapshot = world.collect_one(entity(quota_type, "bob", throttle_ms=9_000.0))
    assert snapshot.entities[0].cause is ThrottleCause.OWN


def test_longer_than_a_window_is_proof() -> None:
    """A request quota is clamped to one window, whatever the usage says."""
    world = World(limits(RULES))
    assert cause(world.collect_one(waiting(usage=500.0, throttle_ms=1_000.5))) is (
        ThrottleCause.CONTROLLER_MUTATION
    )
    assert cause(world.collect_one(waiting(usage=500.0, throttle_ms=1_000.0))) is (
        ThrottleCause.OWN
    )


def test_the_window_is_the_brokers_own() -> None:
    """With quota.window.size.seconds = 5 a request throttle may take 5 s."""
    world = World(limits(RULES, settings=NodeSettings(quota_window_seconds=5.0)))
    snapshot = world.collect_one(ON_CONTROLLER, waiting(throttle_ms=4_000.0))
    assert cause(snapshot) is ThrottleCause.OWN


def test_an_unknown_window_proves_nothing() -> None:
    """Where the settings of a node could not be read, four seconds may be its own."""
    world = World(limits(RULES, nodes=()))
    snapshot = world.collect_one(ON_CONTROLLER, waiting(throttle_ms=4_000.0))
    assert cause(snapshot) is ThrottleCause.OWN


def test_without_the_controllers_buckets_little_is_known() -> None:
    """A broker alone does not say which clients made mutations; without mutation quotas that does not matter."""
    world = World(limits(RULES))
    assert cause(world.collect_one(waiting())) is ThrottleCause.UNKNOWN
    assert cause(world.collect_one(waiting(), leads(0))) is ThrottleCause.UNKNOWN
    world = World(limits({REQUEST: RULES[REQUEST]}))
    assert cause(world.collect_one(waiting())) is ThrottleCause.OWN
    others = {REQUEST: RULES[REQUEST], MUTATION: {QuotaEntity("carol"): 1.0}}
    assert cause(World(limits(others)).collect_one(waiting())) is ThrottleCause.OWN


def test_debt_of_the_same_user_is_evidence() -> None:
    """Little request time, and an empty bucket."""
    world = World(limits(RULES))
    snapshot = world.collect_one(waiting(), bucket(-1.0))
    assert cause(snapshot) is ThrottleCause.CONTROLLER_MUTATION


def test_debt_is_remembered_for_a_minute() -> None:
    """The average lingers as long, while the bucket fills again."""
    world = World(limits(RULES))
    world.collect_one(ON_CONTROLLER, waiting(), bucket(-1.0))
    full = ON_CONTROLLER, waiting(), bucket(22.0)
    assert (
        cause(world.collect_one(*full, after=60)) is ThrottleCause.CONTROLLER_MUTATION
    )
    assert cause(world.collect_one(*full, after=1)) is ThrottleCause.OWN


def test_usage_at_the_limit_is_the_entitys_own() -> None:
    """Above its request limit an entity is throttled by that, debt or no debt."""
    world = World(limits(RULES))
    assert (
        cause(world.collect_one(waiting(usage=100.0), bucket(-1.0)))
        is ThrottleCause.OWN
    )
    assert (
        cause(world.collect_one(waiting(usage=1.0), bucket(-1.0))) is ThrottleCause.OWN
    )


@pytest.mark.parametrize("tokens", [0.0, 22.0])
def test_a_bucket_at_rest_is_no_evidence(tokens: float) -> None:
    """Without mutations within the minute nothing speaks for their quota."""
    world = World(limits(RULES))
    snapshot = world.collect_one(ON_CONTROLLER, waiting(), bucket(tokens))
    assert cause(snapshot) is ThrottleCause.OWN


@pytest.mark.parametrize("rate", [0.1, None, float("nan")])
def test_mutations_without_a_debt_leave_it_open(rate: float | None) -> None:
    """The bucket may have been in debt between two collections, as the request time may have been above its limit."""
    world = World(limits(RULES))
    mutating = entity(MUTATION, "bob", usage=rate, tokens=20.0)
    assert cause(world.collect_one(ON_CONTROLLER, waiting(), mutating)) is (
        ThrottleCause.UNKNOWN
    )
    full = ON_CONTROLLER, waiting(), bucket(22.0)
    assert cause(world.collect_one(*full, after=60)) is ThrottleCause.UNKNOWN
    assert cause(world.collect_one(*full, after=1)) is ThrottleCause.OWN


def test_debt_of_another_user_is_no_evidence() -> None:
    """Carol's bucket throttles carol."""
    world = World(limits(RULES))
    snapshot = world.collect_one(ON_CONTROLLER, waiting(), bucket(-1.0, "carol"))
    assert cause(snapshot) is ThrottleCause.OWN


def test_debt_that_names_neither_user_nor_client_is_no_evidence() -> None:
    """A mutation quota for client ids does not say whose clients they are: any user's, or others alone."""
    world = World(limits(FOR_CLIENTS))
    snapshot = world.collect_one(ON_CONTROLLER, waiting(), bucket(-1.0, "", "admin"))
    assert cause(snapshot) is ThrottleCause.UNKNOWN


@pytest.mark.parametrize(
    ("user", "expected"),
    [("bob", ThrottleCause.CONTROLLER_MUTATION), ("carol", ThrottleCause.OWN)],
)
def test_debt_of_a_user_counts_for_each_client(
    user: str, expected: ThrottleCause
) -> None:
    """Pairs under the request quota, users under the mutation quota: the user must be the same."""
    world = World(limits(FOR_PAIRS))
    snapshot = world.collect_one(
        ON_CONTROLLER,
        entity(REQUEST, "bob", "admin", usage=5.0, throttle_ms=500.0),
        bucket(-1.0, user),
    )
    assert cause(snapshot) is expected


@pytest.mark.parametrize(
    ("client_id", "expected"),
    [("admin", ThrottleCause.CONTROLLER_MUTATION), ("other", ThrottleCause.OWN)],
)
def test_pairs_match_in_both_dimensions(
    client_id: str, expected: ThrottleCause
) -> None:
    """Both quotas for pairs: another client of the same user is another entity."""
    pairs = {QuotaEntity(DEFAULT, DEFAULT): 100.0}
    world = World(limits({REQUEST: pairs, MUTATION: pairs}))
    snapshot = world.collect_one(
        ON_CONTROLLER,
        entity(REQUEST, "bob", "admin", usage=5.0, throttle_ms=500.0),
        bucket(-1.0, "bob", client_id),
    )
    assert cause(snapshot) is expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (QuotaEntity("bob"), ThrottleCause.CONTROLLER_MUTATION),
        (QuotaEntity(DEFAULT), ThrottleCause.CONTROLLER_MUTATION),
        (QuotaEntity("bob", "admin"), ThrottleCause.CONTROLLER_MUTATION),
        (QuotaEntity(None, "admin"), ThrottleCause.CONTROLLER_MUTATION),
        (QuotaEntity("carol"), ThrottleCause.UNKNOWN),
        (QuotaEntity("carol", DEFAULT), ThrottleCause.UNKNOWN),
    ],
)
def test_an_entity_without_a_request_limit_has_no_own_throttle(
    rule: QuotaEntity, expected: ThrottleCause
) -> None:
    """What is left is a mutation quota that may be one of its clients', seen in debt or not; another one's throttles nobody else."""
    world = World(limits({REQUEST: {QuotaEntity("carol"): 1.0}, MUTATION: {rule: 2.0}}))
    assert cause(world.collect_one(waiting(throttle_ms=20.0))) is expected


def test_a_quota_may_come_and_go() -> None:
    """Rules are looked at as they are at each collection."""
    request = {REQUEST: {QuotaEntity("carol"): 1.0}}
    world = World(limits(request))
    assert cause(world.collect_one(waiting(throttle_ms=20.0))) is ThrottleCause.UNKNOWN
    world.limits = limits({**request, MUTATION: {QuotaEntity("bob"): 2.0}})
    assert cause(world.collect_one(waiting(throttle_ms=20.0))) is (
        ThrottleCause.CONTROLLER_MUTATION
    )


def test_without_any_rule_it_lingers_from_one_that_went() -> None:
    """Whether that was one of requests or of mutations is not known any more, unless the bucket was seen in debt."""
    world = World(limits({REQUEST: {QuotaEntity("carol"): 1.0}}))
    assert cause(world.collect_one(waiting(throttle_ms=20.0))) is ThrottleCause.UNKNOWN
    world = World(limits(RULES))
    world.collect_one(waiting(throttle_ms=20.0), bucket(-1.0))
    world.limits = limits({REQUEST: RULES[REQUEST]})
    assert cause(world.collect_one(waiting(throttle_ms=20.0))) is (
        ThrottleCause.CONTROLLER_MUTATION
    )


def test_before_the_limits_are_read_debt_is_the_only_evidence() -> None:
    """A bucket below zero is under some limit."""
    world = World(None)
    assert (
        cause(world.collect_one(waiting(throttle_ms=9_000.0))) is ThrottleCause.UNKNOWN
    )
    snapshot = world.collect_one(waiting(throttle_ms=9_000.0), bucket(-1.0))
    assert cause(snapshot) is ThrottleCause.CONTROLLER_MUTATION


def test_debt_on_a_former_controller_is_no_evidence() -> None:
    """Its buckets stand still for an hour."""
    world = World(limits(RULES, nodes=("1", "101", "102")))
    snapshot = world.collect(
        {"1": [waiting()], "101": [bucket(-5.0), leads(0)], "102": [leads(1)]}
    )
    assert cause(snapshot) is ThrottleCause.OWN
