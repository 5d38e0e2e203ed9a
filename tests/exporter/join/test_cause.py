"""Which quota a throttle comes from."""

from math import nan
from typing import Any

import pytest
from tests.exporter.join.world import Numbers, Rules, World, entity, leads
from tests.exporter.recorded import limits

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
    """By what one collection shows of the entity, its buckets and who leads."""
    known = None if rules is None else limits(rules, **settings)
    assert cause(World(known).collect_one(*parts)) is expected


FULL = [ON_CONTROLLER, waiting(), bucket(22.0)]
FOR_CAROL = {**RULES, MUTATION: {QuotaEntity("carol"): 1.0}}


@pytest.mark.parametrize(
    "history",
    [
        # the average lingers for a minute, while the bucket fills again
        [(RULES, [ON_CONTROLLER, waiting(), bucket(-1.0)], 15, MUTATED), (RULES, FULL, 60, MUTATED), (RULES, FULL, 1, OWN)],
        # above its request limit an entity is throttled by that, debt or no debt
        [(RULES, [waiting(usage=100.0), bucket(-1.0)], 15, OWN), (RULES, [waiting(usage=1.0), bucket(-1.0)], 15, OWN)],
        # mutations leave it open: the bucket may have been in debt between two collections, as the request time may have been above its limit
        *(
            [(RULES, [ON_CONTROLLER, waiting(), entity(MUTATION, "bob", usage=rate, tokens=20.0)], 15, UNKNOWN), (RULES, FULL, 60, UNKNOWN), (RULES, FULL, 1, OWN)]
            for rate in (0.1, None, nan)
        ),
        # whose clients are under a mutation quota is worked out again when the rules change
        [(FOR_CAROL, [waiting()], 15, OWN), (RULES, [waiting()], 15, UNKNOWN), ({REQUEST: RULES[REQUEST]}, [waiting()], 15, OWN)],
    ]
)  # fmt: skip
def test_cause_over_several_collections(history: list[tuple[Rules, list[Numbers], float, ThrottleCause]]) -> None:
    """What was seen counts for a minute; rules that change are followed."""
    world, last = World(), None
    for rules, parts, after, expected in history:
        if rules is not last:
            last, world.limits = rules, limits(rules)
        assert cause(world.collect_one(*parts, after=after)) is expected


def test_debt_on_a_former_controller_is_no_evidence() -> None:
    """Its buckets stand still for an hour."""
    world = World(limits(RULES, nodes=("1", "101", "102")))
    snapshot = world.collect({"1": [waiting()], "101": [bucket(-5.0), leads(0)], "102": [leads(1)]})
    assert cause(snapshot) is OWN
