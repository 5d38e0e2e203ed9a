"""Changes are sent to the cluster, and read back until they are in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from quotascope.clients.errors import AdminRequestFailed
from quotascope.clients.quota_admin import QuotaAdmin

from .change import Change
from .errors import NotApplied
from .quota_set import QuotaSet

_WITHIN_SECONDS = 10.0
_PAUSE_SECONDS = 0.1


def apply_changes(
    admin: QuotaAdmin,
    changes: Sequence[Change],
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """
    Send all changes in one request, each entity once, and read them back.

    The controller stores each entity separately, and the broker that answers learns of it a moment later.

    Raises `NotApplied`, which lists what is in force and what is not, and `ClientError` when the cluster cannot be asked.

    Args:
        admin: of the cluster.
        changes: what to set, change and remove.
        clock: seconds that never go back.
        pause: waits for a number of seconds.

    """
    try:
        admin.alter_quotas([change.for_admin for change in changes])
    except AdminRequestFailed as error:
        missing = _missing(admin, changes)
        raise _not_applied(str(error), changes, missing) from error
    deadline = clock() + _WITHIN_SECONDS
    while missing := _missing(admin, changes):
        if clock() >= deadline:
            raise _not_applied("the cluster shows something else", changes, missing)
        pause(_PAUSE_SECONDS)


def _not_applied(
    reason: str, changes: Sequence[Change], missing: Sequence[Change]
) -> NotApplied:
    done = len(changes) - len(missing)
    return NotApplied(reason, [str(change) for change in missing], done)


def _missing(admin: QuotaAdmin, changes: Sequence[Change]) -> list[Change]:
    quotas = QuotaSet.of(admin.describe_quotas())
    return [
        change
        for change in changes
        if quotas.get(change.entity, {}).get(change.key) != change.new
    ]
