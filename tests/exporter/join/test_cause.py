"""The quota that a throttle comes from."""

from math import nan
from typing import Any

import pytest
from tests.exporter.join.world import Numbers, Rules, World, entity, leads
from tests.exporter.recorded import limits

from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import Snapshot, ThrottleCause
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType

REQUEST, MUTATION = QuotaType.REQUEST, QuotaType.CONTROLLER_MUTATION
RULES = {REQUEST: {QuotaEntity(DEFAULT): 100.0}, MUTATION: {QuotaEntity(DEFAULT): 2.0}}
FOR_CLIENTS = {REQUEST: {QuotaEntity(DEFAULT): 100.0}, MUTATION: {QuotaEntity(None, DEFAULT): 2.0}}
FOR_PAIRS = {REQUEST: {QuotaEntity(DEFAULT, DEFAULT): 100.0}, MUTATION: {QuotaEntity(DEFAULT): 2.0}}


def waiting(*, usage: float = 5.0, throttle_ms: float = 500.0) -> Numbers:
    return entity(REQUEST, "bob", usage=usage, throttle_ms=throttle_ms)


def bucket(tokens: float, user: str = "bob", client_id: str = "") -> Numbers:
    return entity(MUTATION, user, client_id, tokens=tokens)


ON_CONTROLLER = leads(1)
"""The node is broker and active controller in one: a client without a bucket there made no mutations."""


def cause(snapshot: Snapshot) -> ThrottleCause | None:
    (cause,) = (usage.cause for usage in snapshot.entities if usage.entity.quota_type is REQUEST)
    return cause


OWN, UNKNOWN = ThrottleCause.OWN, ThrottleCause.UNKNOWN
MUTATED = ThrottleCause.CONTROLLER_MUTATION
EACH_PAIR = {QuotaEntity(DEFAULT, DEFAULT): 100.0}
PAIRS = {REQUEST: EACH_PAIR, MUTATION: EACH_PAIR}
OF_CAROL = {REQUEST: {QuotaEntity("carol"): 1.0}}
SLOW, LONG, LITTLE = (waiting(throttle_ms=ms) for ms in (4_000.0, 9_000.0, 20.0))
PAIR = entity(REQUEST, "bob", "admin", usage=5.0, throttle_ms=500.0)


@pytest.mark.parametrize(
    ("rules", "settings", "parts", "expected"),
    [
        # a request quota is clamped to one window, whatever the usage is: longer is proof
        (RULES, {}, [waiting(usage=500.0, throttle_ms=1_000.5)], MUTATED),
        (RULES, {}, [waiting(usage=500.0, throttle_ms=1_000.0)], OWN),
        # no request time at all is within a limit of zero
        ({**RULES, REQUEST: {QuotaEntity(DEFAULT): 0.0}}, {}, [waiting(usage=1.0), bucket(-1.0)], OWN),
        # the window is the broker's own: with quota.window.size.seconds = 5 it may take 5 s
        (RULES, {"settings": NodeSettings(quota_window_seconds=5.0)}, [ON_CONTROLLER, SLOW], OWN),
        # where the settings of a node could not be read, four seconds may be its own
        (RULES, {"nodes": ()}, [ON_CONTROLLER, SLOW], OWN),
        # a broker alone does not show which clients made mutations; without mutation quotas that does not matter
        (RULES, {}, [waiting()], UNKNOWN),
        (RULES, {}, [waiting(), leads(0)], UNKNOWN),
        ({REQUEST: RULES[REQUEST]}, {}, [waiting()], OWN),
        ({**RULES, MUTATION: {QuotaEntity("carol"): 1.0}}, {}, [waiting()], OWN),
        # little request time and an empty bucket are evidence
        (RULES, {}, [waiting(), bucket(-1.0)], MUTATED),
        # without mutations within the minute nothing speaks for their quota
        (RULES, {}, [ON_CONTROLLER, waiting(), bucket(0.0)], OWN),
        (RULES, {}, [ON_CONTROLLER, waiting(), bucket(22.0)], OWN),
        # carol's bucket throttles carol
        (RULES, {}, [ON_CONTROLLER, waiting(), bucket(-1.0, "carol")], OWN),
        # a mutation quota for client ids does not show whose clients they are: any user's, or others alone
        (FOR_CLIENTS, {}, [ON_CONTROLLER, waiting(), bucket(-1.0, "", "admin")], UNKNOWN),
        # pairs under the request quota, users under the mutation quota: the user must be the same
        (FOR_PAIRS, {}, [ON_CONTROLLER, PAIR, bucket(-1.0, "bob")], MUTATED),
        (FOR_PAIRS, {}, [ON_CONTROLLER, PAIR, bucket(-1.0, "carol")], OWN),
        # both quotas for pairs: another client of the same user is another entity
        (PAIRS, {}, [ON_CONTROLLER, PAIR, bucket(-1.0, "bob", "admin")], MUTATED),
        (PAIRS, {}, [ON_CONTROLLER, PAIR, bucket(-1.0, "bob", "other")], OWN),
        # without a request limit what is left is a mutation quota that may be one of its clients', in debt or not
        ({**OF_CAROL, MUTATION: {QuotaEntity("bob"): 2.0}}, {}, [LITTLE], MUTATED),
        ({**OF_CAROL, MUTATION: {QuotaEntity(DEFAULT): 2.0}}, {}, [LITTLE], MUTATED),
        ({**OF_CAROL, MUTATION: {QuotaEntity("bob", "admin"): 2.0}}, {}, [LITTLE], MUTATED),
        ({**OF_CAROL, MUTATION: {QuotaEntity(None, "admin"): 2.0}}, {}, [LITTLE], MUTATED),
        ({**OF_CAROL, MUTATION: {QuotaEntity("carol"): 2.0}}, {}, [LITTLE], UNKNOWN),
        ({**OF_CAROL, MUTATION: {QuotaEntity("carol", DEFAULT): 2.0}}, {}, [LITTLE], UNKNOWN),
        # without any rule it lingers from one that went, of requests or of mutations
        (OF_CAROL, {}, [LITTLE], UNKNOWN),
        # before the limits are read debt is the only evidence: a bucket below zero is under some limit
        (None, {}, [LONG], UNKNOWN),
        (None, {}, [LONG, bucket(-1.0)], MUTATED),
    ]
)  # fmt: skip
def test_cause_of_a_throttle(rules: Rules | None, settings: Any, parts: list[Numbers], expected: ThrottleCause) -> None:
    """A collection shows a throttle's cause by the entity, its buckets and the leader."""
    configured = None if rules is None else limits(rules, **settings)
    assert cause(World(configured).collect_one(*parts)) is expected


FULL = [ON_CONTROLLER, waiting(), bucket(22.0)]
FOR_CAROL = {**RULES, MUTATION: {QuotaEntity("carol"): 1.0}}


@pytest.mark.parametrize(
    "history",
    [
        # the average lingers for a minute, while the bucket fills again
        [
            (RULES, [ON_CONTROLLER, waiting(), bucket(-1.0)], 15, MUTATED),
            (RULES, FULL, 60, MUTATED),
            (RULES, FULL, 1, OWN),
        ],
        # above its request limit an entity is throttled by that, debt or no debt
        [(RULES, [waiting(usage=100.0), bucket(-1.0)], 15, OWN), (RULES, [waiting(usage=1.0), bucket(-1.0)], 15, OWN)],
        # mutations leave it open: the bucket may have been in debt between two collections, as the request time may
        # have been above its limit
        *(
            [
                (RULES, [ON_CONTROLLER, waiting(), entity(MUTATION, "bob", usage=rate, tokens=20.0)], 15, UNKNOWN),
                (RULES, FULL, 60, UNKNOWN),
                (RULES, FULL, 1, OWN),
            ]
            for rate in (0.1, None, nan)
        ),
        # whose clients are under a mutation quota is worked out again when the rules change
        [
            (FOR_CAROL, [waiting()], 15, OWN),
            (RULES, [waiting()], 15, UNKNOWN),
            ({REQUEST: RULES[REQUEST]}, [waiting()], 15, OWN),
        ],
    ]
)  # fmt: skip
def test_cause_over_several_collections(history: list[tuple[Rules, list[Numbers], float, ThrottleCause]]) -> None:
    """Evidence counts for a minute; rules that change are followed."""
    world, last_state = World(), None
    for rules, parts, seconds, expected in history:
        if rules is not last_state:
            last_state, world.limits = rules, limits(rules)
        assert cause(world.collect_one(*parts, seconds=seconds)) is expected


def test_debt_on_a_former_controller_is_no_evidence() -> None:
    """A bucket in debt on a former controller, where it stands still for an hour, is no evidence of a cause."""
    world = World(limits(RULES, nodes=("1", "101", "102")))
    snapshot = world.collect({"1": [waiting()], "101": [bucket(-5.0), leads(0)], "102": [leads(1)]})
    assert cause(snapshot) is OWN


def of_type(snapshot: Snapshot, quota_type: QuotaType) -> Any:
    (entity_usage,) = (usage for usage in snapshot.entities if usage.entity.quota_type is quota_type)
    return entity_usage


APART = limits(RULES, nodes=("1", "101"))
LEADER = leads(1)


def test_the_mutation_quota_has_the_throttle_that_it_decides() -> None:
    """
    A mutation throttle is shown on the controller with its rule, and the broker's request throttle refers to it.

    It is 0 when the broker throttles no more.
    """
    world = World(APART)
    brokers = {"1": [waiting(throttle_ms=9_000.0)], "101": [bucket(-4.0), LEADER]}
    state = world.collect(brokers)
    request, mutation = of_type(state, REQUEST), of_type(state, MUTATION)
    assert (mutation.throttle_time_seconds, mutation.cause, mutation.entity.broker) == (9.0, OWN, "101")
    assert mutation.entity.resolution.entity == QuotaEntity(DEFAULT)
    assert (request.throttle_time_seconds, request.cause) == (9.0, MUTATED)
    assert request.decided_by is mutation.entity
    later = world.collect({"1": [waiting(throttle_ms=nan)], "101": [bucket(22.0), LEADER]})
    assert of_type(later, MUTATION).throttle_time_seconds == 0.0
    # a broker that is not read may throttle on
    assert of_type(world.collect({"101": [bucket(22.0), LEADER]}), MUTATION).throttle_time_seconds is None


@pytest.mark.parametrize("throttle_ms", [-3.0, 0.0, 5.0])
def test_a_bucket_that_decides_nothing_any_more_has_its_own_throttle_time(throttle_ms: float) -> None:
    """A bucket that decides nothing any more has the throttle time that its node reports, however absurd."""
    world = World(APART)
    world.collect({"1": [waiting(throttle_ms=9_000.0)], "101": [bucket(-4.0), LEADER]})
    own = entity(MUTATION, "bob", usage=0.0, tokens=22.0, throttle_ms=throttle_ms)
    state = world.collect({"1": [waiting(throttle_ms=nan)], "101": [own, LEADER]})
    assert of_type(state, MUTATION).throttle_time_seconds == throttle_ms / 1000


def test_a_bucket_that_never_throttled_has_an_unknown_throttle_time() -> None:
    """A bucket has an unknown throttle time while a broker that may throttle for it is not read."""
    state = World(APART).collect({"1": [waiting(throttle_ms=nan)], "101": [bucket(22.0), LEADER]})
    assert of_type(state, MUTATION).throttle_time_seconds is None


def test_the_longest_throttle_of_several_brokers_counts() -> None:
    """A client whose requests several brokers forward has the longest of their throttle times."""
    state = World(limits(RULES, nodes=("1", "2", "101"))).collect(
        {"1": [waiting(throttle_ms=2_000.0)], "2": [waiting(throttle_ms=7_000.0)], "101": [bucket(-4.0), LEADER]}
    )
    assert of_type(state, MUTATION).throttle_time_seconds == 7.0
    assert [entity_usage.decided_by.user for entity_usage in state.entities if entity_usage.decided_by is not None] == [
        "bob",
        "bob",
    ]


def test_the_emptiest_of_the_buckets_that_may_decide() -> None:
    """A request quota for a user counts clients together that have buckets of their own."""
    pairs = {REQUEST: RULES[REQUEST], MUTATION: {QuotaEntity(DEFAULT, DEFAULT): 2.0}}
    parts = [waiting(throttle_ms=9_000.0), bucket(5.0, "bob", "calm"), bucket(-5.0, "bob", "busy"), LEADER]
    state = World(limits(pairs)).collect_one(*parts)
    assert of_type(state, REQUEST).decided_by.client_id == "busy"
    times = {entity_usage.entity.client_id: entity_usage.throttle_time_seconds for entity_usage in state.entities}
    assert (times["busy"], times["calm"]) == (9.0, None)


@pytest.mark.parametrize(
    ("mutations", "rule"),
    [
        ({QuotaEntity(DEFAULT): 2.0}, QuotaEntity(DEFAULT)),
        ({QuotaEntity("bob"): 2.0, QuotaEntity(DEFAULT): 3.0}, QuotaEntity("bob")),
        # which of the clients it was cannot be seen
        ({QuotaEntity("bob", "one"): 2.0, QuotaEntity("bob", "two"): 2.0}, None),
    ],
)
def test_the_rule_of_a_bucket_that_is_not_measured(mutations: Any, rule: QuotaEntity | None) -> None:
    """Without a reading of the controller, the deciding rule is known if only one rule may apply."""
    state = World(limits({REQUEST: RULES[REQUEST], MUTATION: mutations})).collect_one(waiting(throttle_ms=9_000.0))
    decider = of_type(state, REQUEST).decided_by
    assert (None if decider is None else decider.resolution.entity) == rule
    assert decider is None or decider.broker == ""


def test_the_only_bucket_in_debt_decides_without_a_name_in_common() -> None:
    """The only bucket in debt is the cause, even if it is a user's and the broker measures by client-id."""
    rules = {MUTATION: {QuotaEntity(DEFAULT): 2.0}}
    client = entity(REQUEST, "", "app", usage=5.0, throttle_ms=9_000.0)
    world = World(limits(rules))
    state = world.collect_one(client, bucket(-4.0), bucket(5.0, "carol"), LEADER)
    assert of_type(state, REQUEST).decided_by.user == "bob"
    # both may have refused it: the rule is the same
    state = world.collect_one(client, bucket(-4.0), bucket(-5.0, "carol"), LEADER)
    decider = of_type(state, REQUEST).decided_by
    assert (decider.broker, decider.resolution.entity) == ("", QuotaEntity(DEFAULT))
