"""Changes of quotas, and sending them to a cluster."""

from collections.abc import Sequence
from math import nan

import pytest
from hypothesis import given
from tests.exporter.limits.test_admin import ScriptedAdmin
from tests.quotas.names import quota_sets

from quotascope.clients import AdminRequestFailed, ConfiguredQuota, PermissionMissing, QuotaChange
from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.quotas import (
    InvalidQuotas,
    NotApplied,
    QuotaSet,
    RuleChange,
    altered,
    apply_changes,
    difference,
    from_admin,
    merged,
    to_admin,
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


def test_changes_are_reported_in_words_and_for_programs() -> None:
    """Old and new value, none where there is none."""
    new = QuotaSet({ALICE: {PERCENT: 3.0}, BOB: {PRODUCE: 4.0}})
    changes = difference(NOW, new)
    assert list(map(str, changes)) == [
        "user alice: producer_byte_rate 1 -> none",
        "user alice: request_percentage 2 -> 3",
        "bob / <default>: producer_byte_rate none -> 4",
    ]
    assert changes[2].as_json() == {
        "entity": {"user": "bob", "client-id": None},
        "key": PRODUCE,
        "old": None,
        "new": 4.0,
    }
    assert (
        RuleChange(entity=ALICE, key=PRODUCE, old=nan, new=None).as_json().items()
        >= {"old": "NaN", "new": None}.items()
    )


def test_quotas_of_one_entity_are_set_and_removed() -> None:
    """Its others stay; the last one takes the entity with it. Merging sets, key by key, and removes nothing."""
    consumed = {"consumer_byte_rate": 5.0}
    assert altered(NOW, ALICE, {PRODUCE: None, **consumed}) == QuotaSet({ALICE: {PERCENT: 2.0, **consumed}})
    assert without(NOW, ALICE, [PRODUCE]) == QuotaSet({ALICE: {PERCENT: 2.0}})
    assert without(NOW, ALICE, None) == QuotaSet()
    both = merged(NOW, QuotaSet({ALICE: {PRODUCE: 9.0}, BOB: {PRODUCE: 4.0}}))
    assert both == QuotaSet({ALICE: {PRODUCE: 9.0, PERCENT: 2.0}, BOB: {PRODUCE: 4.0}})


def test_what_a_controller_refuses_is_refused_before() -> None:
    """With all that is wrong."""
    with pytest.raises(InvalidQuotas) as caught:
        altered(NOW, ALICE, {PRODUCE: -1.0, "nix": 1.0})
    assert str(caught.value).startswith("user alice: 2 problems\n")
    with pytest.raises(InvalidQuotas, match="is not a number"):
        altered(NOW, ALICE, {PERCENT: float("nan")})


def test_what_is_not_there_cannot_be_removed() -> None:
    """Most likely another entity was meant, such as the pair instead of the user."""
    with pytest.raises(InvalidQuotas, match="has no 'consumer_byte_rate' to remove"):
        without(NOW, ALICE, ["consumer_byte_rate"])
    with pytest.raises(InvalidQuotas, match="bob / <default>: has no quota to remove"):
        without(NOW, BOB, None)


CHANGES = difference(QuotaSet({ALICE: {PERCENT: 9.0}}), QuotaSet({ALICE: {PRODUCE: 5.0, "consumer_byte_rate": 6.0}}))


class SlowAdmin(ScriptedAdmin):
    """Shows what it was asked to store, or those of some keys, only after some reads."""

    def __init__(self, reads: int, *stored: str, refusal: Exception | None = None) -> None:
        super().__init__()
        self.reads_left, self.stored, self.refusal = reads, stored, refusal
        self.requests: list[Sequence[QuotaChange]] = []
        self.quotas = (ConfiguredQuota(entity=to_admin(ALICE), key=PERCENT, value=9.0),)

    def describe_quotas(self) -> tuple[ConfiguredQuota, ...]:
        self.reads_left -= 1
        if self.reads_left > 0 or not self.requests:
            return self.quotas
        return tuple(
            ConfiguredQuota(entity=change.entity, key=change.key, value=change.value)
            for change in self.requests[0]
            if change.value is not None and (not self.stored or change.key in self.stored)
        )

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        self.requests.append(changes)
        if self.refusal is not None:
            raise self.refusal


def apply(admin: SlowAdmin) -> list[float]:
    """Apply the changes; the pauses that were made, which are all that takes time."""
    pauses: list[float] = []
    apply_changes(admin, CHANGES, clock=lambda: sum(pauses), pause=pauses.append)
    return pauses


def test_changes_go_in_one_request_and_are_read_back() -> None:
    """As often as the broker that is asked needs to learn of them."""
    admin = SlowAdmin(3)
    assert len(apply(admin)) == 2
    (request,) = admin.requests
    assert [(change.key, change.value) for change in request] == [
        ("consumer_byte_rate", 6.0),
        ("producer_byte_rate", 5.0),
        ("request_percentage", None),
    ]


def test_what_never_comes_into_force_is_reported() -> None:
    """After ten seconds, with what did."""
    with pytest.raises(NotApplied) as caught:
        apply(SlowAdmin(0, PRODUCE))
    assert caught.value.done == 2
    assert caught.value.missing == ("user alice: consumer_byte_rate none -> 6",)
    assert str(caught.value).startswith("the cluster shows something else; in force: 2,")


def test_a_refusal_is_reported_with_what_came_into_force() -> None:
    """A controller stores each entity by itself."""
    admin = SlowAdmin(0, "consumer_byte_rate", refusal=AdminRequestFailed("AlterClientQuotas", 42, "no"))
    with pytest.raises(NotApplied, match=r"AlterClientQuotas failed \(error 42\): no") as caught:
        apply(admin)
    assert caught.value.done == 2


def test_a_missing_permission_is_an_error_of_its_own() -> None:
    """It names the ACL."""
    missing = PermissionMissing(request="AlterClientQuotas", operation="AlterConfigs", username="me")
    with pytest.raises(PermissionMissing, match="--operation AlterConfigs"):
        apply(SlowAdmin(0, refusal=missing))
