"""
Whether the rules in force explain a bean.

A bean is not a rule: it stays for up to an hour after more specific rules, or the removal of
all rules, have moved its clients elsewhere, and then counts them twice. Since Kafka 4.1
(KAFKA-19282) the rules in force alone say under which tags a client is measured, so that a bean
with other tags is stale. An older broker also remembers rules removed since its start; there a
bean in use can look stale, and is kept only while it rises (see ``staleness``).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from quotascope.metrics import QuotaRules, QuotaType, RuleTable

from ..limits import Limits
from .interpretation import Tags

NO_RULES: Final[RuleTable] = QuotaRules().snapshot()


class Standing(Enum):
    """What the rules in force say of a bean with certain tags."""

    IN_USE = auto()
    """Clients are measured under these tags."""
    FORWARDED = auto()
    """
    In use while it carries a throttle. Without request quotas nothing is recorded in group
    Request, but a broker still keeps the throttles there that the controller's mutation quotas
    impose on the requests it forwards.
    """
    STALE = auto()
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


def standing_of(tags: Tags, limits: Limits | None) -> Standing:
    """What the rules say of a bean; without limits to go by it is taken as in use."""
    if limits is None:
        return Standing.IN_USE
    quota_type, user, client_id = tags
    rules = limits.rules.get(quota_type, NO_RULES)
    if not rules.would_record(user, client_id):
        return Standing.STALE
    if rules.enabled:
        return Standing.IN_USE
    mutations = limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)
    forwarded = quota_type is QuotaType.REQUEST and mutations.enabled
    return Standing.FORWARDED if forwarded else Standing.STALE
