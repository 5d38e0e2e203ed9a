from __future__ import annotations

from tests.exporter.examples import ALICE, limits

from quotascope.exporter.limits.changes import (
    LimitChange,
    keep_unchanged,
    limit_changes,
)
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType

BOB = QuotaEntity("bob", DEFAULT)


def test_what_was_set_changed_and_removed() -> None:
    """Each change is one line with old and new value, an absent one None."""
    old = limits(rules={QuotaType.PRODUCE: QuotaRules({ALICE: 1.0, BOB: 2.0})})
    new = limits(
        rules={
            QuotaType.PRODUCE: QuotaRules({ALICE: 1.5}),
            QuotaType.FETCH: QuotaRules({ALICE: 3.0}),
        },
        connection_limits={"<default>": 7.0, "10.0.0.1": 1.0},
    )

    def change(
        key: str, entity: str, before: float | None, after: float | None
    ) -> LimitChange:
        return LimitChange(quota_key=key, entity=entity, old=before, new=after)

    assert limit_changes(old, new) == [
        change("connection_creation_rate", "ip 10.0.0.1", None, 1.0),
        change("producer_byte_rate", "user 'alice'", 1.0, 1.5),
        change("producer_byte_rate", "user 'bob', default client-id", 2.0, None),
        change("consumer_byte_rate", "user 'alice'", None, 3.0),
    ]


def test_same_limits_have_no_changes() -> None:
    """Reading the same twice says nothing."""
    assert limit_changes(limits(), limits()) == []


def test_unchanged_rules_stay_the_same_object() -> None:
    """What the join derived from rules holds until they change."""
    old = limits()
    new = limits(
        rules={
            QuotaType.PRODUCE: QuotaRules(dict(old.rules[QuotaType.PRODUCE])),
            QuotaType.REQUEST: QuotaRules({ALICE: 1.0}),
        }
    )
    kept = keep_unchanged(old, new)
    assert kept.rules[QuotaType.PRODUCE] is old.rules[QuotaType.PRODUCE]
    assert kept.rules[QuotaType.REQUEST] is new.rules[QuotaType.REQUEST]
