"""Rules that others leave without effect."""

from collections.abc import Iterable
from itertools import combinations, product

from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules
from quotascope.quotas import overruled_by, overruling_rules, unnamed

EVERY = [QuotaEntity(user, client) for user, client in product(("u", DEFAULT, None), repeat=2) if user or client]
"""A rule of each level."""
SOME = [some for size in range(len(EVERY) + 1) for some in combinations(EVERY, size)]
"""All that can be configured of them."""


def table_of(configured: Iterable[QuotaEntity]) -> QuotaRules:
    return QuotaRules(dict.fromkeys(configured, 5.0))


def decisions(configured: Iterable[QuotaEntity]) -> list[QuotaEntity | None]:
    """What decides for each user with each client-id, one without a rule of its own included."""
    table = table_of(configured)
    return [table.decide(user, client).entity for user, client in product("ux", repeat=2)]


def test_rules_without_effect() -> None:
    """Kafka's documentation orders the levels; of two rules, one for all names of the next weaker ones leaves these nothing."""
    overruling = [overruling_rules(table_of(pair)) for pair in combinations(EVERY, 2)]
    assert sorted((rule.rule, other.rule) for each in overruling for rule, other in each.items()) == [
        ("3 user u", "2 u / <default>"),
        ("6 user <default>", "5 <default> / <default>"),
        ("7 client-id u", "4 <default> / u"),
        ("7 client-id u", "5 <default> / <default>"),
        ("7 client-id u", "6 user <default>"),
        ("8 client-id <default>", "5 <default> / <default>"),
        ("8 client-id <default>", "6 user <default>"),
    ]


def test_no_client_is_under_a_rule_without_effect() -> None:
    """An overruled rule decides for no client, each other one for some; so does each that overrules."""
    for configured in SOME:
        overruling = overruling_rules(table_of(configured))
        deciding = set(decisions(configured))
        assert set(configured) - deciding == set(overruling)
        assert set(overruling.values()) <= deciding


def test_a_rule_that_is_added_takes_clients_from_others() -> None:
    """Just from those that decided for an entity that it decides for then."""
    for configured, added in product(SOME, EVERY):
        changed = zip(decisions(configured), decisions([*configured, added]), strict=True)
        lost = {before for before, after in changed if before not in (None, after)}
        assert set(overruled_by(table_of(configured), added)) == lost


def test_a_name_that_no_rule_has() -> None:
    """However many there are, and in whichever dimension."""
    table = table_of([QuotaEntity("any-other-0"), QuotaEntity(None, "any-other-1")])
    assert unnamed(table, table_of([QuotaEntity("any-other-2", DEFAULT)])) == "any-other-3"
