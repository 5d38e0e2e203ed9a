"""Which quota a throttle comes from."""

from typing import Any

import pytest
from tests.exporter.join.world import Numbers, Rules, World, entity, leads, limits

from quotascope.exporter.limits import NodeSettings
from quotascope.exporter.snapshot import Snapshot, ThrottleCause
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType

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
    (found,) = (usage.cause for usage in snapshot.entities if usage.entity.quota_type is REQUEST)
    return found


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
    """By what one collection shows of the entity, its buckets and who leads."""
    known = None if rules is None else limits(rules, **settings)
    assert cause(World(known).collect_one(*parts)) is expected


def test_debt_is_remembered_for_a_minute() -> None:
    """The average lingers as long, while the bucket fills again."""
    world = World(limits(RULES))
    world.collect_one(ON_CONTROLLER, waiting(), bucket(-1.0))
    full = ON_CONTROLLER, waiting(), bucket(22.0)
    assert cause(world.collect_one(*full, after=60)) is MUTATED
    assert cause(world.collect_one(*full, after=1)) is OWN


def test_usage_at_the_limit_is_the_entitys_own() -> None:
    """Above its request limit an entity is throttled by that, debt or no debt."""
    world = World(limits(RULES))
    assert cause(world.collect_one(waiting(usage=100.0), bucket(-1.0))) is OWN
    assert cause(world.collect_one(waiting(usage=1.0), bucket(-1.0))) is OWN
    blocked = World(limits({**RULES, REQUEST: {QuotaEntity(DEFAULT): 0.0}}))
    assert cause(blocked.collect_one(waiting(usage=1.0), bucket(-1.0))) is OWN


@pytest.mark.parametrize("rate", [0.1, None, float("nan")])
def test_mutations_without_a_debt_leave_it_open(rate: float | None) -> None:
    """The bucket may have been in debt between two collections, as the request time may have been above its limit."""
    world = World(limits(RULES))
    mutating = entity(MUTATION, "bob", usage=rate, tokens=20.0)
    assert cause(world.collect_one(ON_CONTROLLER, waiting(), mutating)) is UNKNOWN
    full = ON_CONTROLLER, waiting(), bucket(22.0)
    assert cause(world.collect_one(*full, after=60)) is UNKNOWN
    assert cause(world.collect_one(*full, after=1)) is OWN


def test_rules_that_change_are_followed() -> None:
    """Whose clients are under a mutation quota is worked out again."""
    world = World(limits({**RULES, MUTATION: {QuotaEntity("carol"): 1.0}}))
    found = [cause(world.collect_one(waiting()))]
    for rules in (RULES, {REQUEST: RULES[REQUEST]}):
        world.limits = limits(rules)
        found.append(cause(world.collect_one(waiting())))
    assert found == [OWN, UNKNOWN, OWN]


def test_debt_on_a_former_controller_is_no_evidence() -> None:
    """Its buckets stand still for an hour."""
    world = World(limits(RULES, nodes=("1", "101", "102")))
    snapshot = world.collect({"1": [waiting()], "101": [bucket(-5.0), leads(0)], "102": [leads(1)]})
    assert cause(snapshot) is OWN
