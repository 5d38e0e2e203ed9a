"""Entities and numbers as text, and sets of quotas."""

from ast import literal_eval
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.quotas.examples import ALICE, CONSUME, PERCENT, PRODUCE, SHAPES, configured, names, quota_sets

from quotascope.metrics.kafka.entities import DEFAULT, Name, QuotaEntity, QuotaType
from quotascope.quotas import Entity, IpEntity, QuotasError, QuotaSet, from_admin, number, number_text, to_admin


def test_a_default_is_no_name() -> None:
    """The default entity is None in the Admin API, and a name that looks like it is a name."""
    assert to_admin(QuotaEntity(DEFAULT, "<default>")) == {"user": None, "client-id": "<default>"}
    assert to_admin(IpEntity(DEFAULT)) == {"ip": None}


@pytest.mark.parametrize(
    ("entity", "kinds"), [({"group": "a"}, "'group'"), ({"ip": "::1", "user": "a"}, "'ip', 'user'")]
)
def test_an_unknown_kind_of_entity_is_an_error(entity: dict[str, str | None], kinds: str) -> None:
    """The entity is neither taken for another one nor left out in silence."""
    with pytest.raises(QuotasError, match=f"{kinds}$"):
        from_admin(entity)


@pytest.mark.parametrize(("entity", "rule", "_written"), SHAPES)
def test_the_shapes_of_rules(entity: Entity, rule: str, _written: str) -> None:
    """A pair has a slash, a default angle brackets, and users and client-ids alone say which they are."""
    assert entity.rule == rule


@given(names)
@example("<default>")
@example('\ud800\\"')
def test_a_name_in_a_rule_is_printable_and_can_be_read_back(name: str) -> None:
    """A client can put any text into its name, at any place of the rule."""
    spelled = QuotaEntity(name).rule.removeprefix("3 user ")
    assert spelled.isprintable()
    assert (literal_eval(spelled) if spelled.startswith('"') else spelled) == name
    assert QuotaEntity(name, name).rule == f"1 {spelled} / {spelled}"
    assert QuotaEntity(None, name).rule == f"7 client-id {spelled}"


def test_no_two_rules_are_spelled_alike() -> None:
    """Names that look like other names or defaults in their spelling stay distinct."""
    parts = "x", '"', "\\", "\n", "n", " ", "/", "<default>", "user", "client-id"
    pairs = list(product([None, DEFAULT, "", *parts, *map("".join, product(parts, repeat=2))], repeat=2))[1:]
    assert len({QuotaEntity(user, client_id).rule for user, client_id in pairs}) == len(pairs)


def test_long_names_stay_short_and_distinct() -> None:
    """A name of ten thousand characters is shortened, and differs from one that looks like its short form."""
    long = "x" * 10_000
    names = [long, long + "y", "x" * 200, "x" * 201, QuotaEntity(long).rule.removeprefix("3 user ")]
    rules = {QuotaEntity(name).rule for name in names}
    assert len(rules) == len(names)
    assert max(map(len, rules)) < 300


@given(st.floats(1e-9) | st.integers(1, 2**63).map(float))
def test_a_value_is_read_back_exactly(value: float) -> None:
    """A value is read back exactly from a file and from a command."""
    assert number(number_text(value)) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", ".5", "0100", "1:30", "0x10", "1__0", "1e", "٣", "1 0", "1\n"])
def test_what_is_no_plain_number_is_none(text: str) -> None:
    """A text that is no plain number is refused, although YAML or Python would convert it."""
    assert number(text) is None


def test_plain_numbers_may_be_grouped_and_have_an_exponent() -> None:
    """Large numbers can be written as people write them."""
    assert [number(text) for text in ("10_485_760", "5e6", "5.0E+6", "-1")] == [10_485_760, 5_000_000, 5_000_000, -1]


@given(quota_sets)
def test_a_set_is_what_the_cluster_reports(quotas: QuotaSet) -> None:
    """Reported quotas in any order make the same set."""
    assert QuotaSet.of(reversed(configured(quotas))) == quotas


def test_the_order_is_that_of_people() -> None:
    """Users are before client-ids and addresses, a pair is before its user, a name before the default, 2 before 10."""
    ordered: list[Entity] = [
        QuotaEntity("alice", "etl"),
        QuotaEntity("alice", DEFAULT),
        QuotaEntity("alice"),
        QuotaEntity("Bob"),
        QuotaEntity("job-2"),
        QuotaEntity("job-10"),
        QuotaEntity("job-" + "9" * 5_000),
        QuotaEntity(DEFAULT, "etl"),
        QuotaEntity(DEFAULT, DEFAULT),
        QuotaEntity(DEFAULT),
        QuotaEntity(None, "etl"),
        QuotaEntity(None, DEFAULT),
        IpEntity("10.0.0.2"),
        IpEntity("10.0.0.10"),
        IpEntity(DEFAULT),
    ]
    assert list(QuotaSet({entity: {PRODUCE: 1.0} for entity in reversed(ordered)})) == ordered


@given(quota_sets, names, names, st.sets(st.sampled_from(list(product(["own", DEFAULT, None], repeat=2))[:-1])))
def test_the_first_rule_that_fits_a_client_applies(
    others: QuotaSet, user: str, client_id: str, shapes: set[tuple[Name | None, Name | None]]
) -> None:
    """The order of a set is that of Kafka's precedence, for each client."""
    own: dict[Entity, dict[str, float]] = {
        QuotaEntity(user if first == "own" else first, client_id if second == "own" else second): {PRODUCE: 1.0}
        for first, second in shapes
    }
    quotas = QuotaSet({**others, **own})
    rules = quotas.tables()[QuotaType.PRODUCE]
    fitting = [
        entity
        for entity in quotas
        if isinstance(entity, QuotaEntity)
        and PRODUCE in quotas[entity]
        and entity.user in {user, DEFAULT, None}
        and entity.client_id in {client_id, DEFAULT, None}
    ]
    decided = rules.decide(user, client_id)
    assert (decided.entity if fitting else None) == next(iter(fitting), None)


def test_tables_hold_the_rules_by_type() -> None:
    """Tables hold the rules of clients by type, without addresses and keys of later versions of Kafka."""
    future = {CONSUME: 5.0, "of_the_future": 1.0}
    tables = QuotaSet({ALICE: future, IpEntity(DEFAULT): {"connection_creation_rate": 3.0}}).tables()
    assert {kind: dict(table) for kind, table in tables.items() if table} == {QuotaType.FETCH: {ALICE: 5.0}}


def test_some_entities_only() -> None:
    """Entities without a quota are left out: to remove the last quota of an entity is to remove the entity."""
    quotas = QuotaSet({ALICE: {PERCENT: 5.0}, QuotaEntity("bob"): {PERCENT: 6.0}, QuotaEntity("carol"): {}})
    assert quotas.of_entities([ALICE, QuotaEntity("carol")]) == {ALICE: {PERCENT: 5.0}}
    assert "alice" in repr(quotas)
