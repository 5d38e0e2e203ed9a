"""Entities and numbers as text, sets of quotas, and rules without effect."""

import re
from ast import literal_eval
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.quotas.names import entities, quota_sets

from quotascope.clients import ConfiguredQuota
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.entities import Name
from quotascope.quotas import (
    UNREACHED,
    Entity,
    InvalidQuotas,
    IpEntity,
    QuotasError,
    QuotaSet,
    from_admin,
    measure_only,
    number,
    number_text,
    overruled_by,
    overruling_rules,
    to_admin,
    unnamed,
)


def test_a_default_is_no_name() -> None:
    """The default entity is None for the Admin API; a name that only looks like it is a name."""
    assert to_admin(QuotaEntity(DEFAULT, "<default>")) == {"user": None, "client-id": "<default>"}
    assert to_admin(IpEntity(DEFAULT)) == {"ip": None}


def test_an_unknown_kind_of_entity_is_an_error() -> None:
    """It must not be taken for another one, nor be left out in silence."""
    with pytest.raises(QuotasError, match="'group'"):
        from_admin({"group": "a"})
    with pytest.raises(QuotasError):
        from_admin({"ip": "1.2.3.4", "user": "a"})


_TOKEN = r'<default>|"(?:[^"\\]|\\.)*"|[^\s"<>]+'
_SHAPE = re.compile(rf"([1-8]) (?:({_TOKEN}) / ({_TOKEN})|(user|client-id) ({_TOKEN}))")


def _read(rule: str) -> QuotaEntity:
    """What a rule was spelled from, by a reader of its own."""
    found = _SHAPE.fullmatch(rule)
    assert found is not None, rule

    def name(text: str | None) -> Name | None:
        if text is None or text == "<default>":
            return text and DEFAULT
        name: str = literal_eval(text) if text.startswith('"') else text
        return name

    user, client_id = (found[5], None) if found[4] == "user" else (None, found[5]) if found[4] else found.group(2, 3)
    entity = QuotaEntity(name(user), name(client_id))
    assert entity.level.number == int(found[1])
    return entity


@given(entities)
@example(QuotaEntity("<default>"))
@example(QuotaEntity("user", "/"))
@example(QuotaEntity("a / b"))
@example(QuotaEntity("\ud800", '\\"'))
@example(QuotaEntity(None, ""))
def test_a_rule_is_one_printable_line_that_can_be_read_back(entity: QuotaEntity) -> None:
    """So no two rules are spelled alike, whatever clients call themselves."""
    assert entity.rule.isprintable()
    assert _read(entity.rule) == entity


def test_long_names_stay_short_and_distinct() -> None:
    """Of ten thousand characters some are shown; a name that looks like what is shown is another."""
    long = "x" * 10_000
    names = [long, long + "y", "x" * 200, "x" * 201]
    names += [QuotaEntity(long).rule.removeprefix("3 user ")]
    rules = [QuotaEntity(name).rule for name in names]
    assert len(set(rules)) == len(names)
    assert max(map(len, rules)) < 300


@pytest.mark.parametrize(
    ("entity", "rule"),
    [
        (QuotaEntity("alice", "etl"), "1 alice / etl"),
        (QuotaEntity("alice", DEFAULT), "2 alice / <default>"),
        (QuotaEntity("svc:team a"), '3 user "svc:team a"'),
        (QuotaEntity(DEFAULT, "etl"), "4 <default> / etl"),
        (QuotaEntity(DEFAULT, DEFAULT), "5 <default> / <default>"),
        (QuotaEntity(DEFAULT), "6 user <default>"),
        (QuotaEntity(None, "etl"), "7 client-id etl"),
        (QuotaEntity(None, DEFAULT), "8 client-id <default>"),
        (IpEntity("::1"), "ip ::1"),
        (IpEntity(DEFAULT), "ip <default>"),
    ],
)
def test_the_shapes_of_rules(entity: QuotaEntity | IpEntity, rule: str) -> None:
    """A pair has a slash, a default angle brackets, and users and client-ids alone say which they are."""
    assert entity.rule == rule


@given(st.floats(1e-9) | st.integers(1, 2**63).map(float))
def test_a_value_is_read_back_exactly(value: float) -> None:
    """Nothing is rounded on the way through a file or a command."""
    assert number(number_text(value)) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", ".5", "0100", "1:30", "0x10", "1__0", "1e", "٣", "1 0", "1\n"])
def test_what_is_no_plain_number_is_none(text: str) -> None:
    """YAML and Python would make something else of most of them."""
    assert number(text) is None


def test_plain_numbers_may_be_grouped_and_have_an_exponent() -> None:
    """As people write large numbers."""
    assert [number(text) for text in ("10_485_760", "5e6", "5.0E+6", "-1")] == [10_485_760, 5_000_000, 5_000_000, -1]


ALICE = QuotaEntity("alice")


@given(quota_sets)
def test_a_set_is_what_the_cluster_reports(quotas: QuotaSet) -> None:
    """One answer for each entity and key, in any order, makes the same set."""
    reported = [
        ConfiguredQuota(entity=to_admin(entity), key=key, value=value) for entity, key, value in quotas.items_by_key()
    ]
    assert QuotaSet.of(reversed(reported)) == quotas


def test_the_order_is_that_of_people() -> None:
    """Users with their clients below them, then clients, then addresses; a default before names."""
    values = {"producer_byte_rate": 1.0}
    entities: list[Entity] = [QuotaEntity(DEFAULT), QuotaEntity(DEFAULT, "c"), ALICE, QuotaEntity("alice", DEFAULT)]
    entities += [QuotaEntity("alice", "c"), QuotaEntity("bob", "a"), QuotaEntity(None, DEFAULT), QuotaEntity(None, "c")]
    entities += [IpEntity(DEFAULT), IpEntity("10.0.0.1")]
    assert list(QuotaSet(dict.fromkeys(reversed(entities), values))) == entities


def test_tables_hold_the_rules_by_type() -> None:
    """Addresses, and keys of later versions of Kafka, have no part in the precedence of clients."""
    future = {"consumer_byte_rate": 5.0, "of_the_future": 1.0}
    tables = QuotaSet({ALICE: future, IpEntity(DEFAULT): {"connection_creation_rate": 3.0}}).tables()
    assert {kind: dict(table) for kind, table in tables.items() if table} == {QuotaType.FETCH: {ALICE: 5.0}}


def test_some_entities_only() -> None:
    """Those that have no quota are not in it: to remove the last quota of an entity is to remove the entity."""
    quotas = QuotaSet({ALICE: {"request_percentage": 5.0}, QuotaEntity("bob"): {"request_percentage": 6.0}})
    assert quotas.of_entities([ALICE, QuotaEntity("carol")]) == QuotaSet({ALICE: {"request_percentage": 5.0}})
    assert QuotaSet({ALICE: {}}) == QuotaSet()
    assert "alice" in repr(quotas)


NAMES = ("u", DEFAULT, None)
EVERY = tuple(QuotaEntity(user, client) for user, client in product(NAMES, NAMES) if user or client)
DEFAULTS = QuotaEntity(DEFAULT, DEFAULT)
USER, CLIENT = QuotaEntity("u"), QuotaEntity(None, "u")
DEFAULT_USER, DEFAULT_CLIENT = QuotaEntity(DEFAULT), QuotaEntity(None, DEFAULT)
some = st.sets(st.sampled_from(EVERY), min_size=1)


def rules(*configured: QuotaEntity) -> QuotaRules:
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


@given(configured=some)
def test_no_client_is_under_a_rule_without_effect(configured: set[QuotaEntity]) -> None:
    """Asked of every user and client-id, one without a rule included: who is overruled decides for none, the others for some."""
    table = rules(*configured)
    deciding = {table.decide(user, client).entity for user in ("u", "x") for client in ("u", "x")}
    assert configured - deciding == set(overruling_rules(table))
    assert set(overruling_rules(table).values()) <= deciding


@given(configured=some, added=st.sampled_from(EVERY))
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
    """All keys of an entity without any; what it has stays, and so do all others."""
    old = QuotaSet(
        {
            DEFAULT_USER: {"producer_byte_rate": 7.0},
            USER: {"consumer_byte_rate": 3.0},
            IpEntity(DEFAULT): {"connection_creation_rate": 1.0},
        }
    )
    new = measure_only(old, DEFAULT_USER, UNREACHED)
    added = {"consumer_byte_rate": 1e12, "request_percentage": 1e6, "controller_mutation_rate": 1e9}
    assert new == {**old, DEFAULT_USER: {"producer_byte_rate": 7.0, **added}}
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
