"""Rules that others leave without effect."""

from collections.abc import Iterable
from itertools import combinations, product

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.quotas import overruled_by, overruling_rules, unnamed

EVERY = [QuotaEntity(user, client) for user, client in product(("u", DEFAULT, None), repeat=2) if user or client]
"""A rule of each level."""
SOME = [entities for size in range(len(EVERY) + 1) for entities in combinations(EVERY, size)]
"""All that can be configured of them."""


def table_of(configured: Iterable[QuotaEntity]) -> QuotaRules:
    return QuotaRules(dict.fromkeys(configured, 5.0))


def decisions(configured: Iterable[QuotaEntity]) -> list[QuotaEntity | None]:
    """Return the rule that decides for each user with each client-id, including a name without a rule of its own."""
    table = table_of(configured)
    return [table.decide(user, client).entity for user, client in product("ux", repeat=2)]


def test_rules_without_effect() -> None:
    """A rule has no effect below a rule for all names of the next stronger level, in Kafka's order."""
    overruling = [overruling_rules(table_of(pair)) for pair in combinations(EVERY, 2)]
    assert sorted((rule.rule, stronger.rule) for by_rule in overruling for rule, stronger in by_rule.items()) == [
        ("3 user u", "2 u / <default>"),
        ("6 user <default>", "5 <default> / <default>"),
        ("7 client-id u", "4 <default> / u"),
        ("7 client-id u", "5 <default> / <default>"),
        ("7 client-id u", "6 user <default>"),
        ("8 client-id <default>", "5 <default> / <default>"),
        ("8 client-id <default>", "6 user <default>"),
    ]


def test_no_client_is_under_a_rule_without_effect() -> None:
    """An overruled rule decides for no client, and any other rule, also an overruling one, for some client."""
    for configured in SOME:
        overruling = overruling_rules(table_of(configured))
        deciding = set(decisions(configured))
        assert set(configured) - deciding == set(overruling)
        assert set(overruling.values()) <= deciding


def test_a_rule_that_is_added_takes_clients_from_others() -> None:
    """An added rule takes clients exactly from the rules that decided before for an entity that it decides for."""
    for configured, added in product(SOME, EVERY):
        changed = zip(decisions(configured), decisions([*configured, added]), strict=True)
        lost = {
            decided_before for decided_before, decided_after in changed if decided_before not in (None, decided_after)
        }
        assert set(overruled_by(table_of(configured), added)) == lost


def test_a_name_that_no_rule_has() -> None:
    """The name is new in each dimension, however many rules there are."""
    table = table_of([QuotaEntity("any-other-0"), QuotaEntity(None, "any-other-1")])
    assert unnamed(table, table_of([QuotaEntity("any-other-2", DEFAULT)])) == "any-other-3"
