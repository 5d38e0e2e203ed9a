"""Which configured limit entities and IP addresses are under."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite
from types import MappingProxyType
from typing import Final, TypeAlias

from quotascope.metrics import INT_MAX, NO_RULE, MalformedName, QuotaRules, QuotaType, RuleTable, host_address

from ..limits import Limits, NodeSettings
from ..limits.model import DEFAULT_IP
from ..mapping import in_base_unit
from ..snapshot import Entity

NO_RULES: Final[RuleTable] = QuotaRules().snapshot()


StaticLimits: TypeAlias = Mapping[QuotaType, float]
"""
The limits of Strimzi's kafka-quotas-plugin on one node, in Kafka's units: infinite when unlimited, missing when unknown; empty without the plugin.

All clients of the node share them, but for the excluded principals.
"""
_EXCLUDED_TAGS: Final = {
    "excluded-principal-quota-key",
    "excluded_principal_quota_key",  # in dialects where tags are labels
}
"""The tag that the plugin gives the entity of the excluded principals, which have no limit (``StaticQuotaCallback``)."""
_PLUGIN_TYPES: Final = {"Produce": QuotaType.PRODUCE, "Fetch": QuotaType.FETCH, "Request": QuotaType.REQUEST}
_UNLIMITED: Final = sys.float_info.max
"""``Double.MAX_VALUE``, the plugin's default."""
_LEAST: Final = 1.0
"""The plugin never limits to less, whatever its factor."""


def static_limits(configured: Mapping[str, float], factor: float) -> StaticLimits:
    """
    The limits of Strimzi's plugin on a node that reports them, empty for any other.

    Args:
        configured: By the name of the bean, in Kafka's unit.
        factor: What the storage check multiplies the produce limit by; NaN without that check.

    """
    found = {QuotaType.CONTROLLER_MUTATION: inf} if configured else {}
    for name, bound in configured.items():
        kind = _PLUGIN_TYPES.get(name)
        if kind is not None and isfinite(bound):
            checked = kind is QuotaType.PRODUCE and isfinite(factor)
            most = max(bound * factor if checked else bound, _LEAST)
            found[kind] = inf if most >= _UNLIMITED else most
    return found


def deciding(limits: Limits | None, *, callback_seen: bool = False) -> Limits | None:
    """
    The limits if the configured rules decide.

    None when they are unknown, and where a custom callback (``client.quota.callback.class``) makes
    tags and limits of its own: by the configuration, or by the tags of some bean.
    """
    if limits is None or callback_seen:
        return None
    configured = any(settings.quota_callback_class for settings in limits.nodes.values())
    return None if configured else limits


def alike(one: Limits | None, other: Limits | None) -> bool:
    """Whether limits are equal in all that decides, as when they were only read again."""
    if one is None or other is None or one is other:
        return one is other
    return one.rules == other.rules and one.nodes == other.nodes


def limited(
    entity: Entity,
    rules: Limits | None,
    static: Mapping[str, StaticLimits] = MappingProxyType({}),
    tags: Sequence[str] = (),
) -> Entity:
    """The entity under these rules, or under the ``static`` limits by node with its ``tags``; the same object where its limit stays."""
    kind, resolution, limit, burst = entity.quota_type, None, None, None
    if entity.tags is not None and entity.broker in static:
        named = zip(tags, entity.tags, strict=True)
        excluded = any(value and key in _EXCLUDED_TAGS for key, value in named)
        bound = inf if excluded else static[entity.broker].get(kind)
        resolution = None if bound is None else NO_RULE
        if bound is not None and isfinite(bound):
            limit = in_base_unit(kind, bound)
    if rules is not None and entity.tags is None:
        table = rules.rules.get(kind, NO_RULES)
        resolution = table.limit(entity.user, entity.client_id) or NO_RULE
        if resolution.bound is not None and isfinite(resolution.bound):
            limit = in_base_unit(kind, resolution.bound)
        if limit is not None and kind is QuotaType.CONTROLLER_MUTATION:
            # The Admin API does not report the settings of a node that is only a controller: a broker's are the best guess.
            guess = next(iter(rules.nodes.values()), NodeSettings())
            node = rules.nodes.get(entity.broker, guess)
            seconds = node.controller_quota_samples * node.controller_quota_window_seconds
            burst = limit * seconds
    now = resolution, limit, burst
    if (entity.resolution, entity.limit, entity.burst_tokens) == now:
        return entity
    return replace(entity, resolution=resolution, limit=limit, burst_tokens=burst)


class IpLimits:
    """
    The limits of new connections by address, from the configured ones in connections/s.

    A rule may name a host instead, which each broker looks up itself. Then an address without a rule of its own
    can be that host, and its limit is not known.
    """

    def __init__(self, rules: Mapping[str, float]) -> None:
        self._default = rules.get(DEFAULT_IP)
        self._own: dict[str, float] = {}
        self._names_hosts = False
        for name, limit in rules.items():
            try:
                self._own[host_address(name)] = limit
            except MalformedName:
                self._names_hosts |= name != DEFAULT_IP

    def limit(self, ip: str) -> float | None:
        """The limit of an address in connections/s, None when it is unlimited or not known."""
        limit = self._own.get(ip, None if self._names_hosts else self._default)
        return None if limit == INT_MAX else limit

    def may_limit(self, ip: str) -> bool:
        """Whether brokers measure an address; what they keep of others is left over from earlier rules."""
        return self.limit(ip) is not None or (self._names_hosts and ip not in self._own)
