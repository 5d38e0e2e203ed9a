import pytest
from hypothesis import given
from tests.quotas.names import quota_sets

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import (
    InvalidQuotas,
    QuotaSet,
    altered,
    difference,
    from_admin,
    merged,
    without,
)

ALICE, BOB = QuotaEntity("alice"), QuotaEntity("bob", DEFAULT)
PRODUCE, PERCENT = "producer_byte_rate", "request_percentage"
NOW = QuotaSet({ALICE: {PRODUCE: 1.0, PERCENT: 2.0}})


@given(quota_sets, quota_sets)
def test_a_difference_leads_from_one_to_the_other(old: QuotaSet, new: QuotaSet) -> None:
    """Applied one after the other, as a controller does."""
    quotas = {entity: dict(values) for entity, values in old.items()}
    for change in difference(old, new):
        request = change.for_admin
        values = quotas.setdefault(from_admin(request.entity), {})
        assert values.get(request.key) == change.old
        if request.value is None:
            del values[request.key]
        else:
            values[request.key] = request.value
    assert QuotaSet(quotas) == new
    assert difference(new, new) == ()


def test_changes_are_told_in_words_and_for_programs() -> None:
    """Old and new value, none where there is none."""
    new = QuotaSet({ALICE: {PERCENT: 3.0}, BOB: {PRODUCE: 4.0}})
    changes = difference(NOW, new)
    assert list(map(str, changes)) == [
        "user 'alice': producer_byte_rate 1 -> none",
        "user 'alice': request_percentage 2 -> 3",
        "user 'bob', default client-id: producer_byte_rate none -> 4",
    ]
    assert changes[2].as_json() == {
        "entity": {"user": "bob", "client-id": None},
        "key": PRODUCE,
        "old": None,
        "new": 4.0,
    }


def test_some_quotas_of_one_entity_are_set_and_removed() -> None:
    """Its others stay."""
    new = altered(NOW, ALICE, {PRODUCE: None, "consumer_byte_rate": 5.0})
    assert new == QuotaSet({ALICE: {PERCENT: 2.0, "consumer_byte_rate": 5.0}})


def test_what_a_controller_refuses_is_refused_before() -> None:
    """With all that is wrong."""
    with pytest.raises(InvalidQuotas) as caught:
        altered(NOW, ALICE, {PRODUCE: -1.0, "nix": 1.0})
    assert str(caught.value).startswith("user 'alice': 2 problems\n")
    with pytest.raises(InvalidQuotas, match="is not a number"):
        altered(NOW, ALICE, {PERCENT: float("nan")})


def test_quotas_are_removed_by_key_or_all() -> None:
    """The last one takes the entity with it."""
    assert without(NOW, ALICE, [PRODUCE]) == QuotaSet({ALICE: {PERCENT: 2.0}})
    assert without(NOW, ALICE, None) == QuotaSet()


def test_what_is_not_there_cannot_be_removed() -> None:
    """Most likely another entity was meant, such as the pair instead of the user."""
    with pytest.raises(InvalidQuotas, match="has no 'consumer_byte_rate' to remove"):
        without(NOW, ALICE, ["consumer_byte_rate"])
    with pytest.raises(
        InvalidQuotas, match="default client-id: has no quota to remove"
    ):
        without(NOW, BOB, None)


def test_merging_sets_and_removes_nothing() -> None:
    """Key by key."""
    both = merged(NOW, QuotaSet({ALICE: {PRODUCE: 9.0}, BOB: {PRODUCE: 4.0}}))
    assert both == QuotaSet({ALICE: {PRODUCE: 9.0, PERCENT: 2.0}, BOB: {PRODUCE: 4.0}})
