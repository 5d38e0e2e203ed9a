"""
Which quota a throttle comes from.

Every throttle that Kafka counts in group Produce, Fetch or ControllerMutation is of that quota.
Group Request is ambiguous under KRaft: a broker that forwards a request to the controller throttles its
client by the response's throttle time, and counts that as a request throttle, even when the
controller refused the request over its mutation quota. What tells them apart:

1. A request quota never throttles for longer than one window (``ClientRequestQuotaManager``:
   ``quota.window.size.seconds``), so an average above it holds a throttle by mutations. This is proof.
2. An entity that was seen at its request limit within the last minute is throttled by that.
3. An entity without a request limit cannot exceed one. Where there are mutation quotas, only these are left.
   (A limit removed less than a minute before this exporter started is the exception.)
4. An entity below its request limit, while within the last minute a mutation bucket of the same user or client was
   in debt. This is evidence, not proof: between two collections both may have been otherwise.

Where none of these holds, the throttle is taken as the entity's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quotascope.metrics import QuotaType

from ..limits import Limits
from ..snapshot import Cause, Entity, EntityUsage
from .recent import LINGER_SECONDS, Recent
from .standing import NO_RULES

Shape = tuple[bool, str, bool, str]


class Causes:
    """Finds causes, and remembers for a minute what they are inferred from."""

    def __init__(self) -> None:
        self._in_debt: Recent[tuple[str, str]] = Recent(LINGER_SECONDS)
        self._at_limit: Recent[tuple[str, str, str]] = Recent(LINGER_SECONDS)

    def find(
        self, usages: Sequence[EntityUsage], limits: Limits | None, at: float
    ) -> None:
        """
        Set the cause of every throttled entity.

        Args:
            usages: All of the cluster, controller mutations of the active controller only.
            limits: What is configured, None when unknown.
            at: Unix time in seconds.

        """
        self._remember(usages, at)
        debtors = _projections(self._in_debt)
        for usage in usages:
            if usage.throttle_time_seconds > 0:
                forwarded = (
                    usage.entity.quota_type is QuotaType.REQUEST
                    and self._is_forwarded(usage, limits, debtors)
                )
                usage.cause = Cause.CONTROLLER_MUTATION if forwarded else Cause.OWN

    def _remember(self, usages: Sequence[EntityUsage], at: float) -> None:
        for usage in usages:
            entity = usage.entity
            if usage.tokens is not None and usage.tokens < 0:
                self._in_debt.note((entity.user, entity.client_id), at)
            elif entity.quota_type is QuotaType.REQUEST and _at_limit(usage):
                self._at_limit.note(_key(entity), at)
        self._in_debt.forget(at)
        self._at_limit.forget(at)

    def _is_forwarded(
        self, usage: EntityUsage, limits: Limits | None, debtors: set[Shape]
    ) -> bool:
        entity = usage.entity
        if _longer_than_own(usage, limits):
            return True
        if _key(entity) in self._at_limit:
            return False
        if limits is not None and entity.limit is None:
            return limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES).enabled
        return any(shape in debtors for shape in _shapes_compatible_with(entity))


def _longer_than_own(usage: EntityUsage, limits: Limits | None) -> bool:
    settings = limits.nodes.get(usage.entity.broker) if limits else None
    if settings is None:
        return False
    return usage.throttle_time_seconds > settings.quota_window_seconds


def _key(entity: Entity) -> tuple[str, str, str]:
    return entity.broker, entity.user, entity.client_id


def _at_limit(usage: EntityUsage) -> bool:
    utilization = usage.utilization
    return utilization is not None and utilization >= 1


def _projections(debtors: Iterable[tuple[str, str]]) -> set[Shape]:
    """Debtors by their own tags, and by each of these left open, so that a look-up is enough to match them."""
    return {
        (bool(user), seen_user, bool(client_id), seen_client)
        for user, client_id in debtors
        for seen_user in {user, ""}
        for seen_client in {client_id, ""}
    }


def _shapes_compatible_with(entity: Entity) -> Iterator[Shape]:
    """
    Debtors that may be the entity's clients: equal in every dimension that both have.

    A request quota for users and a mutation quota for client-ids have no dimension in common; then
    every debtor may be.
    """
    for has_user in (True, False):
        for has_client in (True, False):
            yield (
                has_user,
                entity.user if has_user else "",
                has_client,
                entity.client_id if has_client else "",
            )
