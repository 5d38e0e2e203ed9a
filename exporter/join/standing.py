"""
Which beans count.

A bean is not a rule: it stays for up to an hour after more specific rules, or the removal of
all rules, have moved its clients elsewhere, and then counts them twice. Since Kafka 4.1
(KAFKA-19282) the rules in force alone say under which tags a client is measured, so that a bean
with other tags is stale. An older broker also remembers rules removed since its start; there a
bean in use can look stale, and is kept only while it rises (``Staleness``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from quotascope.metrics import QuotaRules, QuotaType, RuleTable

from ..limits import Limits
from ..snapshot import Entity

NO_RULES: Final[RuleTable] = QuotaRules().snapshot()


class Standing(IntEnum):
    """What the rules in force say of a bean with certain tags."""

    IN_USE = 0
    """Clients are measured under these tags."""
    FORWARDED = 1
    """
    In use while it carries a throttle. Without request quotas nothing is recorded in group
    Request, but a broker still keeps the throttles there that the controller's mutation quotas
    impose on the requests it forwards.
    """
    STALE = 2
    """No client is measured under these tags."""


def deciding(limits: Limits | None, *, callback_seen: bool = False) -> Limits | None:
    """
    The limits, if it is the configured rules that decide.

    None when they are unknown, and where a custom callback (``client.quota.callback.class``) makes
    tags and limits of its own: by the configuration, or by the tags of some bean.
    """
    if limits is None or callback_seen:
        return None
    configured = any(
        settings.quota_callback_class for settings in limits.nodes.values()
    )
    return None if configured else limits


def alike(one: Limits | None, other: Limits | None) -> bool:
    """Whether limits differ in nothing that decides, as when they were only read again."""
    if one is None or other is None or one is other:
        return one is other
    return one.rules == other.rules and one.nodes == other.nodes


def standing_of(entity: Entity, limits: Limits | None) -> Standing:
    """What the rules say of an entity's bean; without limits to go by it is taken as in use."""
    if limits is None or entity.tags is not None:
        return Standing.IN_USE
    rules = limits.rules.get(entity.quota_type, NO_RULES)
    if not rules.would_record(entity.user, entity.client_id):
        return Standing.STALE
    if rules.enabled:
        return Standing.IN_USE
    mutations = limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)
    forwarded = entity.quota_type is QuotaType.REQUEST and mutations.enabled
    return Standing.FORWARDED if forwarded else Standing.STALE


def active_controllers(
    reported: Mapping[str, bool | None], leader: str | None
) -> dict[str, bool | None]:
    """
    Which nodes lead the KRaft quorum; None where nothing says so.

    A former leader keeps its mutation beans for an hour, and a broker has some of its own from
    auto-created topics; only the leader's describe the quota. What a node says of itself
    (``ActiveControllerCount``) is fresher than what the Admin API said at the last refresh. During
    an election two nodes may both think they lead, and both count.

    Args:
        reported: What each node says of itself, None when it says nothing.
        leader: Node id of the leader according to the Admin API, None when unknown.

    """
    if any(reported.values()):
        return {node: bool(says) for node, says in reported.items()}
    guessed = {node: None if leader is None else node == leader for node in reported}
    return {
        node: guessed[node] if says is None else says for node, says in reported.items()
    }
