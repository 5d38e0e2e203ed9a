"""
Which quota a throttle comes from.

Every throttle that Kafka counts in group Produce, Fetch or ControllerMutation is of that quota.
Group Request is ambiguous under KRaft: a broker that forwards a request to the controller throttles its
client by the response's throttle time, and counts that as a request throttle, even when the
controller refused the request over its mutation quota. What tells them apart:

1. A request quota never throttles for longer than one window (``ClientRequestQuotaManager``:
   ``quota.window.size.seconds``), so an average above it holds a throttle by mutations. This is proof.
2. An entity that was seen at its request limit within the last minute is throttled by that.
3. An entity without a request limit cannot exceed one. What is left is a mutation quota that may apply to its
   clients. Where no rule does, the throttle lingers from a rule that was removed: which one is unknown.
   (A request limit removed less than a minute before this exporter started is the exception.)
4. An entity below its request limit, while within the last minute a mutation bucket of the same user or client was
   in debt. This is evidence, not proof: between two collections both may have been otherwise.
5. An entity whose clients are under no mutation quota, or made no controller mutation within the last minute according to
   the active controller's buckets, is throttled by its own quota.

Where none of these holds, the cause is unknown. A bucket that shares neither user nor client-id with the entity is
no evidence: a mutation quota for client-ids does not say whose clients they are. It only makes rule 5 fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from quotascope.metrics import QuotaType, RuleTable
from quotascope.metrics.entities import Name

from ..limits import Limits
from ..snapshot import Cause, Entity, EntityUsage
from .recent import LINGER_SECONDS, Recent
from .standing import NO_RULES


class Causes:
    """Finds causes, and remembers for a minute what they are inferred from."""

    def __init__(self) -> None:
        self._mutating: Recent[tuple[str, str]] = Recent(LINGER_SECONDS)
        self._in_debt: Recent[tuple[str, str]] = Recent(LINGER_SECONDS)
        self._at_limit: Recent[tuple[str, str, str]] = Recent(LINGER_SECONDS)
        self._rules: RuleTable = NO_RULES
        self._ruled = _Clients(())

    def find(
        self,
        usages: Sequence[EntityUsage],
        limits: Limits | None,
        at: float,
        *,
        controller_read: bool,
    ) -> None:
        """
        Set the cause of every throttled entity.

        Args:
            usages: All of the cluster, controller mutations of the active controller only.
            limits: What is configured, None when unknown.
            at: Unix time in seconds.
            controller_read: Whether the active controller is among the nodes, so that a client
                without a bucket is known to have made no controller mutations.

        """
        self._remember(usages, at)
        throttled = [usage for usage in usages if usage.throttle_time_seconds > 0]
        debtors, mutators = _Clients(self._in_debt), _Clients(self._mutating)
        for usage in throttled:
            entity = usage.entity
            if entity.quota_type is not QuotaType.REQUEST:
                usage.cause = Cause.OWN
            elif _longer_than_own(usage, limits):
                usage.cause = Cause.CONTROLLER_MUTATION
            elif _key(entity) in self._at_limit:
                usage.cause = Cause.OWN
            elif debtors.share_a_name(entity):
                usage.cause = Cause.CONTROLLER_MUTATION
            elif limits is not None and not self._ruled_by(limits).overlap(entity):
                usage.cause = Cause.UNKNOWN if entity.limit is None else Cause.OWN
            elif limits is not None and entity.limit is None:
                usage.cause = Cause.CONTROLLER_MUTATION
            elif controller_read and not mutators.overlap(entity):
                usage.cause = Cause.OWN
            else:
                usage.cause = Cause.UNKNOWN

    def _remember(self, usages: Sequence[EntityUsage], at: float) -> None:
        for usage in usages:
            entity = usage.entity
            if entity.quota_type is QuotaType.CONTROLLER_MUTATION:
                in_debt = usage.tokens is not None and usage.tokens < 0
                if in_debt:
                    self._in_debt.note((entity.user, entity.client_id), at)
                # The rate lingers as long as throttles do: both are kept in two samples of 30 s.
                if in_debt or usage.usage is None or usage.usage > 0:
                    self._mutating.note((entity.user, entity.client_id), at)
            elif entity.quota_type is QuotaType.REQUEST and _at_limit(usage):
                self._at_limit.note(_key(entity), at)
        for recent in (self._mutating, self._in_debt, self._at_limit):
            recent.forget(at)

    def _ruled_by(self, limits: Limits) -> _Clients:
        """The clients that mutation quotas are configured for."""
        rules = limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)
        if rules is not self._rules:
            self._rules = rules
            self._ruled = _Clients(
                (_literal(rule.user), _literal(rule.client_id)) for rule in rules
            )
        return self._ruled


class _Clients:
    """
    Clients by user and client-id, with look-ups that take no longer when they are many.

    Args:
        names: User and client-id of each; an empty one stands for all.

    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        # None is the place of a name that a look-up leaves open.
        self._index = {
            pair
            for user, client_id in names
            for pair in product({user, None}, {client_id, None})
        }

    def overlap(self, entity: Entity) -> bool:
        """Whether some may be the entity's clients: equal in each name that both have."""
        return self._any(_fitting(entity.user), _fitting(entity.client_id))

    def share_a_name(self, entity: Entity) -> bool:
        """Whether some may be the entity's clients, and have its user or client-id in their own tags."""
        user, client_id = entity.user, entity.client_id
        return bool(user and self._any((user,), _fitting(client_id))) or bool(
            client_id and self._any(_fitting(user), (client_id,))
        )

    def _any(
        self, users: Iterable[str | None], client_ids: Iterable[str | None]
    ) -> bool:
        return not self._index.isdisjoint(product(users, client_ids))


def _fitting(name: str) -> tuple[str | None, ...]:
    return ("", name) if name else (None,)


def _literal(name: Name | None) -> str:
    return name if isinstance(name, str) else ""


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
