"""Against a cluster that takes its time, or refuses."""

from collections.abc import Sequence

import pytest
from tests.exporter.limits.test_admin import ScriptedAdmin

from quotascope.clients import (
    AdminRequestFailed,
    ConfiguredQuota,
    PermissionMissing,
    QuotaChange,
)
from quotascope.metrics import QuotaEntity
from quotascope.quotas import NotApplied, QuotaSet, apply_changes, difference, to_admin

ALICE = QuotaEntity("alice")
CHANGES = difference(
    QuotaSet({ALICE: {"request_percentage": 9.0}}),
    QuotaSet({ALICE: {"producer_byte_rate": 5.0, "consumer_byte_rate": 6.0}}),
)


class SlowAdmin(ScriptedAdmin):
    """Shows what it was asked to store only after some reads."""

    def __init__(self, reads: int, stored: Sequence[str] = ()) -> None:
        super().__init__()
        self.reads_left = reads
        self.requests: list[Sequence[QuotaChange]] = []
        self.stored = set(stored)
        self.quotas = (quota("request_percentage", 9.0),)
        self.refusal: Exception | None = None

    def describe_quotas(self) -> tuple[ConfiguredQuota, ...]:
        """What is in force."""
        self.reads_left -= 1
        if self.reads_left > 0 or not self.requests:
            return self.quotas
        return tuple(
            quota(change.key, change.value)
            for change in self.requests[0]
            if change.value is not None
            and (not self.stored or change.key in self.stored)
        )

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        """Remember the request."""
        self.requests.append(changes)
        if self.refusal is not None:
            raise self.refusal


def quota(key: str, value: float) -> ConfiguredQuota:
    """One of alice."""
    return ConfiguredQuota(entity=to_admin(ALICE), key=key, value=value)


def apply(admin: SlowAdmin) -> list[float]:
    """Apply the changes; the pauses that were made, which are all that takes time."""
    pauses: list[float] = []
    apply_changes(admin, CHANGES, clock=lambda: sum(pauses), pause=pauses.append)
    return pauses


def test_changes_go_in_one_request_and_are_read_back() -> None:
    """As often as the broker that is asked needs to learn of them."""
    admin = SlowAdmin(reads=3)
    assert len(apply(admin)) == 2
    (request,) = admin.requests
    assert [(change.key, change.value) for change in request] == [
        ("consumer_byte_rate", 6.0),
        ("producer_byte_rate", 5.0),
        ("request_percentage", None),
    ]


def test_what_never_comes_into_force_is_told() -> None:
    """After ten seconds, with what did."""
    with pytest.raises(NotApplied) as caught:
        apply(SlowAdmin(reads=0, stored=["producer_byte_rate"]))
    assert caught.value.done == 2
    assert caught.value.missing == ("user 'alice': consumer_byte_rate none -> 6",)
    assert str(caught.value).startswith(
        "the cluster shows something else; in force: 2,"
    )


def test_a_refusal_is_told_with_what_came_into_force() -> None:
    """A controller stores each entity by itself."""
    admin = SlowAdmin(reads=0, stored=["consumer_byte_rate"])
    admin.refusal = AdminRequestFailed("AlterClientQuotas", 42, "no")
    with pytest.raises(
        NotApplied, match=r"AlterClientQuotas failed \(error 42\): no"
    ) as caught:
        apply(admin)
    assert caught.value.done == 2


def test_a_missing_permission_is_an_error_of_its_own() -> None:
    """It names the ACL."""
    admin = SlowAdmin(reads=0)
    admin.refusal = PermissionMissing(
        request="AlterClientQuotas", operation="AlterConfigs", username="me"
    )
    with pytest.raises(PermissionMissing, match="--operation AlterConfigs"):
        apply(admin)
