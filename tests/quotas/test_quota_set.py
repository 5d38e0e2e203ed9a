"""Sets of quotas, and rules without effect."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.quotas.names import quota_sets

from quotascope.clients import ConfiguredQuota
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType
from quotascope.quotas import (
    UNREACHED,
    Entity,
    InvalidQuotas,
    IpEntity,
    QuotaSet,
    measure_only,
    overruled_by,
    overruling_rules,
    to_admin,
    unnamed,
)

ALICE = QuotaEntity("alice")


@given(quota_sets)
def test_a_set_is_what_the_cluster_reports(quotas: QuotaSet) -> None:
    """One answer for each entity and key, in any order, makes the same set."""
    reported = [
        ConfiguredQuota(entity=to_admin(entity), key=key, value=value) for entity, key, value in quotas.items_by_key()
    ]
    assert QuotaSet.of(reversed(reported)) == quotas


def test_entities_without_quotas_are_not_in_it() -> None:
    """To remove the last quota of an entity is to remove the entity."""
    assert QuotaSet({ALICE: {}}) == QuotaSet()


def test_the_order_is_that_of_people() -> None:
    """Users with their clients below them, then clients, then addresses; a default before names."""
    values = {"producer_byte_rate": 1.0}
    entities: list[Entity] = [
        QuotaEntity(DEFAULT),
        QuotaEntity(DEFAULT, "c"),
        ALICE,
        QuotaEntity("alice", DEFAULT),
        QuotaEntity("alice", "c"),
        QuotaEntity("bob", "a"),
        QuotaEntity(None, DEFAULT),
        QuotaEntity(None, "c"),
        IpEntity(DEFAULT),
        IpEntity("10.0.0.1"),
    ]
    assert list(QuotaSet(dict.fromkeys(reversed(entities), values))) == entities


def test_tables_hold_the_rules_by_type() -> None:
    """Addresses, and keys of later versions of Kafka, have no part in the precedence of clients."""
    quotas = QuotaSet(
        {
            ALICE: {"consumer_byte_rate": 5.0, "of_the_future": 1.0},
            IpEntity(DEFAULT): {"connection_creation_rate": 3.0},
        }
    )
    tables = quotas.tables()
    assert {kind: dict(table) for kind, table in tables.items() if table} == {QuotaType.FETCH: {ALICE: 5.0}}


def test_some_entities_only() -> None:
    """Those that have no quota are not in it."""
    quotas = QuotaSet(
        {
            ALICE: {"request_percentage": 5.0},
            QuotaEntity("bob"): {"request_percentage": 6.0},
        }
    )
    assert quotas.of_entities([ALICE, QuotaEntity("carol")]) == QuotaSet({ALICE: {"request_percentage": 5.0}})
    assert "alice" in repr(quotas)


NAMES = ("u", DEFAULT, None)
EVERY = tuple(QuotaEntity(user, client) for user, client in product(NAMES, NAMES) if user or client)
DEFAULTS = QuotaEntity(DEFAULT, DEFAULT)
USER, CLIENT = QuotaEntity("u"), QuotaEntity(None, "u")
DEFAULT_USER, DEFAULT_CLIENT = QuotaEntity(DEFAULT), QuotaEntity(None, DEFAULT)
entities = st.sets(st.sampled_from(EVERY), min_size=1)


def rules(*configured: QuotaEntity) -> QuotaRules:
    """A limit for each."""
    return QuotaRules(dict.fromkeys(configured, 5.0))


@pytest.mark.parametrize(
    ("configured", "overruled"),
    [
        ({DEFAULT_USER, DEFAULTS}, {DEFAULT_USER: DEFAULTS}),
        ({CLIENT, DEFAULTS}, {CLIENT: DEFAULTS}),
        ({DEFAULT_CLIENT, DEFAULTS}, {DEFAULT_CLIENT: DEFAULTS}),
        ({CLIENT, DEFAULT_USER}, {CLIENT: DEFAULT_USER}),
        ({DEFAULT_CLIENT, DEFAULT_USER}, {DEFAULT_CLIENT: DEFAULT_USER}),
        ({USER, QuotaEntity("u", DEFAULT)}, {USER: QuotaEntity("u", DEFAULT)}),
        ({CLIENT, QuotaEntity(DEFAULT, "u")}, {CLIENT: QuotaEntity(DEFAULT, "u")}),
        ({USER, DEFAULTS}, {}),
        ({DEFAULT_CLIENT, CLIENT}, {}),
        ({DEFAULT_CLIENT, USER}, {}),
        ({DEFAULT_USER, QuotaEntity(DEFAULT, "u")}, {}),
        ({QuotaEntity("u", "u"), QuotaEntity("u", DEFAULT)}, {}),
    ],
)
def test_rules_without_effect(configured: set[QuotaEntity], overruled: dict[QuotaEntity, QuotaEntity]) -> None:
    """Kafka's documentation orders the levels; one for all names of the next weaker ones leaves these nothing."""
    assert overruling_rules(rules(*configured)) == overruled


@given(configured=entities)
def test_no_client_is_under_a_rule_without_effect(configured: set[QuotaEntity]) -> None:
    """Asked of every user and client-id, one without a rule included: who is overruled decides for none, the others for some."""
    table = rules(*configured)
    deciding = {table.decide(user, client).entity for user in ("u", "x") for client in ("u", "x")}
    assert configured - deciding == set(overruling_rules(table))
    assert set(overruling_rules(table).values()) <= deciding


@given(configured=entities, added=st.sampled_from(EVERY))
def test_a_rule_that_is_added_takes_clients_from_others(configured: set[QuotaEntity], added: QuotaEntity) -> None:
    """Just from those that decided for an entity that it decides for then."""
    before, after = rules(*configured), rules(*configured, added)
    lost = {
        before.decide(user, client).entity
        for user in ("u", "x")
        for client in ("u", "x")
        if before.decide(user, client).entity != after.decide(user, client).entity
    }
    assert set(overruled_by(before, added)) == lost - {None}


def test_a_name_that_no_rule_has() -> None:
    """However many there are, and in whichever dimension."""
    table = rules(QuotaEntity("any-other-0"), QuotaEntity(None, "any-other-1"))
    assert unnamed(table, rules(QuotaEntity("any-other-2", DEFAULT))) == "any-other-3"


def test_measuring_only() -> None:
    """All keys of an entity without any; what it has stays, and so does everybody else's."""
    old = QuotaSet(
        {
            DEFAULT_USER: {"producer_byte_rate": 7.0},
            USER: {"consumer_byte_rate": 3.0},
            IpEntity(DEFAULT): {"connection_creation_rate": 1.0},
        }
    )
    new = measure_only(old, DEFAULT_USER, UNREACHED)
    assert new == {
        **old,
        DEFAULT_USER: {
            "producer_byte_rate": 7.0,
            "consumer_byte_rate": 1e12,
            "request_percentage": 1e6,
            "controller_mutation_rate": 1e9,
        },
    }
    assert measure_only(new, DEFAULT_USER, UNREACHED) == new


@pytest.mark.parametrize("entity", [DEFAULT_USER, CLIENT, DEFAULT_CLIENT])
def test_no_limit_is_lifted_by_measuring(entity: QuotaEntity) -> None:
    """Levels 6 to 8 lose their clients to the default pair; the message names whose, and what to do."""
    old = QuotaSet({entity: {"producer_byte_rate": 7.0}})
    with pytest.raises(InvalidQuotas) as refused:
        measure_only(old, DEFAULTS, UNREACHED)
    (problem,) = refused.value.problems
    assert problem.startswith("producer_byte_rate would overrule the limit of ")
    assert problem.endswith("name the other keys only")
    assert measure_only(old, DEFAULTS, ["request_percentage"])[DEFAULTS] == {"request_percentage": 1e6}


def test_keys_of_addresses_are_not_measured_so() -> None:
    """The message has those that are."""
    with pytest.raises(InvalidQuotas, match="is none of producer_byte_rate, "):
        measure_only(QuotaSet(), DEFAULT_USER, ["connection_creation_rate"])
