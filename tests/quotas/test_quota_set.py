from hypothesis import given
from tests.quotas.names import quota_sets

from quotascope.clients import ConfiguredQuota
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType
from quotascope.quotas import Entity, IpEntity, QuotaSet, to_admin

ALICE = QuotaEntity("alice")


@given(quota_sets)
def test_a_set_is_what_the_cluster_tells(quotas: QuotaSet) -> None:
    """One answer for each entity and key, in any order, makes the same set."""
    told = [
        ConfiguredQuota(entity=to_admin(entity), key=key, value=value)
        for entity, key, value in quotas.items_by_key()
    ]
    assert QuotaSet.of(reversed(told)) == quotas


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
    assert {kind: dict(table) for kind, table in tables.items() if table} == {
        QuotaType.FETCH: {ALICE: 5.0}
    }


def test_some_entities_only() -> None:
    """Those that have no quota are not in it."""
    quotas = QuotaSet(
        {
            ALICE: {"request_percentage": 5.0},
            QuotaEntity("bob"): {"request_percentage": 6.0},
        }
    )
    assert quotas.of_entities([ALICE, QuotaEntity("carol")]) == QuotaSet(
        {ALICE: {"request_percentage": 5.0}}
    )
    assert "alice" in repr(quotas)
