"""Changes of quotas, and sending them to a cluster."""

from itertools import chain, repeat
from math import nan
from typing import Any
from unittest.mock import create_autospec

import pytest
from hypothesis import given
from tests.quotas.examples import ALICE, CONSUME, DEFAULT_PAIR, DEFAULT_USER, PERCENT, PRODUCE, configured, quota_sets

from quotascope.clients import AdminRequestFailed, PermissionMissing, QuotaAdmin
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.quotas import InvalidQuotas, IpEntity, NotApplied, QuotaSet, from_admin, merged
from quotascope.quotas.change import UNREACHED, RuleChange, altered, apply_changes, difference, measure_only, without

BOB = QuotaEntity("bob", DEFAULT)
NOW = QuotaSet({ALICE: {PRODUCE: 1.0, PERCENT: 2.0}})


@given(quota_sets, quota_sets)
def test_a_difference_leads_from_one_to_the_other(old: QuotaSet, new: QuotaSet) -> None:
    """The changes lead to the other set when they are applied one after the other, as a controller does."""
    quotas = {(entity, key): value for entity, key, value in old.items_by_key()}
    for change in difference(old, new):
        request = change.for_admin
        place = from_admin(request.entity), request.key
        assert quotas.pop(place, None) == change.old
        if request.value is not None:
            quotas[place] = request.value
    assert quotas == {(entity, key): value for entity, key, value in new.items_by_key()}
    assert difference(new, new) == ()


def test_changes_are_reported_in_words_and_for_programs() -> None:
    """A change has the old and the new value, None where there is none."""
    changes = difference(NOW, QuotaSet({ALICE: {PERCENT: 3.0}, BOB: {PRODUCE: 4.0}}))
    assert list(map(str, changes)) == [
        "user alice: producer_byte_rate 1 -> none",
        "user alice: request_percentage 2 -> 3",
        "bob / <default>: producer_byte_rate none -> 4",
    ]
    bob = {"user": "bob", "client-id": None}
    assert changes[2].as_json() == {"entity": bob, "key": PRODUCE, "old": None, "new": 4.0}
    never = RuleChange(entity=BOB, key=PRODUCE, old=nan, new=None)
    assert never.as_json() == {"entity": bob, "key": PRODUCE, "old": "NaN", "new": None}


def test_quotas_of_one_entity_are_set_and_removed() -> None:
    """
    Removing a quota leaves the entity's others, and removing the last one removes the entity.

    Merging sets, key by key, and removes nothing.
    """
    assert altered(NOW, ALICE, {PRODUCE: None, CONSUME: 5.0}) == {ALICE: {PERCENT: 2.0, CONSUME: 5.0}}
    assert without(NOW, ALICE, [PRODUCE]) == {ALICE: {PERCENT: 2.0}}
    assert without(NOW, ALICE, None) == {}
    united = merged(NOW, QuotaSet({ALICE: {PRODUCE: 9.0}, BOB: {PRODUCE: 4.0}}))
    assert united == {ALICE: {PRODUCE: 9.0, PERCENT: 2.0}, BOB: {PRODUCE: 4.0}}


def test_what_a_controller_refuses_is_refused_before() -> None:
    """A change that a controller would refuse is refused before, with all problems."""
    with pytest.raises(InvalidQuotas, match=r"^user alice: 2 problems\n"):
        altered(NOW, ALICE, {PRODUCE: -1.0, "nix": 1.0})
    with pytest.raises(InvalidQuotas, match="is not a number"):
        altered(NOW, ALICE, {PERCENT: nan})


def test_what_is_not_there_cannot_be_removed() -> None:
    """Removing a quota that does not exist is an error, as another entity is probably meant."""
    with pytest.raises(InvalidQuotas, match=r"^user alice: has no 'consumer_byte_rate' to remove"):
        without(NOW, ALICE, [CONSUME])
    with pytest.raises(InvalidQuotas, match=r"^bob / <default>: has no quota to remove"):
        without(NOW, BOB, None)


def test_measuring_only() -> None:
    """An entity without any quota gets all keys; existing quotas stay, and so do all others."""
    old = QuotaSet(
        {DEFAULT_USER: {PRODUCE: 7.0}, ALICE: {CONSUME: 3.0}, IpEntity(DEFAULT): {"connection_creation_rate": 1.0}}
    )
    new = measure_only(old, DEFAULT_USER, UNREACHED)
    assert new == {**old, DEFAULT_USER: {PRODUCE: 7.0, CONSUME: 1e12, PERCENT: 1e6, "controller_mutation_rate": 1e9}}
    assert measure_only(new, DEFAULT_USER, UNREACHED) == new


@pytest.mark.parametrize("entity", [DEFAULT_USER, QuotaEntity(None, "c"), QuotaEntity(None, DEFAULT)])
def test_no_limit_is_lifted_by_measuring(entity: QuotaEntity) -> None:
    """Measuring that would free clients of levels 6 to 8 from their limits is refused with their rules."""
    old = QuotaSet({entity: {PRODUCE: 7.0}})
    with pytest.raises(InvalidQuotas) as refused:
        measure_only(old, DEFAULT_PAIR, UNREACHED)
    (problem,) = refused.value.problems
    assert problem.startswith(f"producer_byte_rate would overrule the limit of {entity}, ")
    assert problem.endswith("name the other keys only")
    assert measure_only(old, DEFAULT_PAIR, [PERCENT])[DEFAULT_PAIR] == {PERCENT: 1e6}


def test_keys_of_addresses_are_not_measured_so() -> None:
    """The message names the keys that can be measured."""
    with pytest.raises(InvalidQuotas, match="is none of producer_byte_rate, "):
        measure_only(QuotaSet(), DEFAULT_USER, ["connection_creation_rate"])


CHANGES = difference(NOW, QuotaSet({ALICE: {PRODUCE: 5.0, CONSUME: 6.0}}))
HALF, WHOLE = QuotaSet({ALICE: {PRODUCE: 5.0}}), QuotaSet({ALICE: {PRODUCE: 5.0, CONSUME: 6.0}})


def apply(*reported: QuotaSet, refusal: Exception | None = None) -> tuple[Any, list[float]]:
    """
    Apply the changes to a cluster that shows one set of quotas after the other, the last one for good.

    Return it and the pauses.
    """
    admin = create_autospec(QuotaAdmin, instance=True)
    admin.describe_quotas.side_effect = chain(map(configured, reported), repeat(configured(reported[-1])))
    admin.alter_quotas.side_effect = refusal
    pauses: list[float] = []
    apply_changes(admin, CHANGES, clock=lambda: sum(pauses), pause=pauses.append)
    return admin, pauses


def test_changes_go_in_one_request_and_are_read_back() -> None:
    """Changes are read back as often as the broker that is asked needs to learn of them."""
    admin, pauses = apply(NOW, NOW, WHOLE)
    assert len(pauses) == 2
    ((request,),) = (call.args for call in admin.alter_quotas.call_args_list)
    assert [(change.key, change.value) for change in request] == [(CONSUME, 6.0), (PRODUCE, 5.0), (PERCENT, None)]


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (None, "the cluster shows something else"),
        (AdminRequestFailed("AlterClientQuotas", 42, "no"), "AlterClientQuotas failed (error 42): no"),
    ],
)
def test_what_does_not_come_into_force_is_reported(refusal: Exception | None, reason: str) -> None:
    """
    The error lists changes that are in force and those that are not.

    It comes after ten seconds, or after a refusal, as a controller stores each entity by itself.
    """
    with pytest.raises(NotApplied) as caught:
        apply(HALF, refusal=refusal)
    missing = "user alice: consumer_byte_rate none -> 6"
    assert (caught.value.done, caught.value.missing) == (2, (missing,))
    assert str(caught.value) == f"{reason}; in force: 2, not in force:\n  {missing}"


def test_a_missing_permission_is_an_error_of_its_own() -> None:
    """A missing permission is an error that names the ACL."""
    missing = PermissionMissing(request="AlterClientQuotas", operation="AlterConfigs", username="me")
    with pytest.raises(PermissionMissing, match="--operation AlterConfigs"):
        apply(NOW, refusal=missing)
