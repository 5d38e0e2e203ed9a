"""The configured limits of entities and IP addresses."""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from types import MappingProxyType
from typing import Final, TypeAlias

from quotascope.metrics.catalog import CALLBACK_LIMIT
from quotascope.metrics.kafka.entities import NO_RULE, QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.host_address import host_address
from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.rules import QuotaRules, RuleTable

from ..limits import Limits, NodeSettings
from ..limits.model import DEFAULT_IP
from ..snapshot import Entity

NO_RULES: Final[RuleTable] = QuotaRules().snapshot()


StaticLimits: TypeAlias = Mapping[QuotaType, float]
"""
The limits of Strimzi's kafka-quotas-plugin on one node, in Kafka's units.

A limit is infinite if it is unlimited, and missing if it is unknown. All are missing without the plugin. The clients
of the node share the limits, except the excluded principals.
"""
_EXCLUDED_TAGS: Final = {
    "excluded-principal-quota-key",
    "excluded_principal_quota_key",  # in dialects where tags are labels
}
"""
The tag that the plugin gives the entity of the excluded principals, which have no limit (``StaticQuotaCallback``).
"""
_PLUGIN_TYPES: Final = {quota_type.group: quota_type for quota_type in CALLBACK_LIMIT}
_UNLIMITED: Final = sys.float_info.max
"""Limit that the plugin has by default: ``Double.MAX_VALUE``."""
_LOWEST: Final = 1.0
"""Lowest limit that the plugin sets, whatever its factor."""


def static_limits(configured: Mapping[str, float], factor: float) -> StaticLimits:
    """
    Return the limits of Strimzi's plugin on a node that reports them, empty for any other.

    Args:
        configured: Limits by the name of the bean, in Kafka's unit.
        factor: Factor by which the storage check multiplies the produce limit; NaN without that check.

    """
    limits = {QuotaType.CONTROLLER_MUTATION: inf} if configured else {}
    for name, bound in configured.items():
        kind = _PLUGIN_TYPES.get(name)
        if kind is not None and isfinite(bound):
            checked = kind is QuotaType.PRODUCE and isfinite(factor)
            enforced = max(bound * factor if checked else bound, _LOWEST)
            limits[kind] = inf if enforced >= _UNLIMITED else enforced
    return limits


@dataclass(frozen=True, slots=True, eq=False)
class RulesInForce:
    """
    The configured quotas, and the nodes on which a custom callback overrules them.

    A custom callback (``client.quota.callback.class``) sets limits of its own.
    """

    limits: Limits | None = None
    """The configured quotas; None if they are unknown."""
    overruled: frozenset[str] = frozenset()
    """Ids of the nodes that have a callback, or may have one."""

    def on(self, node_id: str) -> Limits | None:
        """Return the configured quotas if they decide on a node; None if they are unknown or may be overruled."""
        return None if node_id in self.overruled else self.limits


def has_callback(limits: Limits | None, node_id: str, *, plugin: bool) -> bool | None:
    """
    Return whether a node leaves quotas to a custom callback; None if that is unknown.

    The Admin API reports ``client.quota.callback.class``. A node without settings in the Admin API has a callback if it
    has the MBeans of Strimzi's ``plugin``. Labels that Kafka's own quotas do not have are no proof, since the rules of
    an agent may add labels, too.
    """
    settings = None if limits is None else limits.nodes.get(node_id)
    if settings is not None:
        return bool(settings.quota_callback_class)
    return True if plugin else None


def overruled(limits: Limits | None, nodes: Mapping[str, bool], plugins: Container[str]) -> frozenset[str]:
    """
    Return the nodes on which a callback overrules the configured quotas, or may.

    Args:
        limits: The configured quotas and the settings of brokers. A node without settings, such as one that is only a
            controller, is guessed to have a callback if a broker has one.
        nodes: Whether the beans of a node have tags that Kafka's own quotas do not have, by node id.
        plugins: Nodes with MBeans of Strimzi's quotas plugin.

    """
    any_broker_has_one = limits is not None and any(settings.quota_callback_class for settings in limits.nodes.values())
    overruled_nodes = set()
    for node_id, has_foreign_tags in nodes.items():
        callback = has_callback(limits, node_id, plugin=node_id in plugins)
        if callback is None:
            callback = has_foreign_tags or any_broker_has_one
        if callback:
            overruled_nodes.add(node_id)
    return frozenset(overruled_nodes)


def limited(
    entity: Entity,
    rules: Limits | None,
    static: Mapping[str, StaticLimits] = MappingProxyType({}),
    tags: Sequence[str] = (),
) -> Entity:
    """
    Return the entity with its limit; the same object if the limit has not changed.

    Args:
        entity: The entity.
        rules: The configured quotas, for an entity of Kafka's own quotas; None if they are unknown.
        static: The limits of Strimzi's quotas plugin by node, for an entity of a callback.
        tags: The keys of the tags of an entity of a callback.

    """
    kind, resolution, limit, burst = entity.quota_type, None, None, None
    if entity.tags is not None and entity.broker in static:
        tag_values = zip(tags, entity.tags, strict=True)
        is_excluded = any(value and key in _EXCLUDED_TAGS for key, value in tag_values)
        bound = inf if is_excluded else static[entity.broker].get(kind)
        resolution = None if bound is None else NO_RULE
        if bound is not None and isfinite(bound):
            limit = kind.in_base_unit(bound)
    if rules is not None and entity.tags is None:
        table = rules.rules.get(kind, NO_RULES)
        resolution = table.limit(entity.user, entity.client_id) or NO_RULE
        if resolution.bound is not None and isfinite(resolution.bound):
            limit = kind.in_base_unit(resolution.bound)
        if limit is not None and kind is QuotaType.CONTROLLER_MUTATION:
            # The Admin API does not report the settings of a node that is only a controller: a broker's are the best
            # guess.
            guess = next(iter(rules.nodes.values()), NodeSettings())
            node = rules.nodes.get(entity.broker, guess)
            seconds = node.controller_quota_samples * node.controller_quota_window_seconds
            burst = limit * seconds
    if (entity.resolution, entity.limit, entity.burst_tokens) == (resolution, limit, burst):
        return entity
    return replace(entity, resolution=resolution, limit=limit, burst_tokens=burst)


class IpLimits:
    """
    The limits of new connections by IP address.

    A rule may name a host, which each broker resolves itself. Then an address without a rule of its own may be that
    host, and its limit is unknown.

    Args:
        rules: The configured limits in connections/s by address, host or `DEFAULT_IP`.

    """

    def __init__(self, rules: Mapping[str, float]) -> None:
        self._default = rules.get(DEFAULT_IP)
        self._own: dict[str, float] = {}
        self._names_hosts = False
        for name, limit in rules.items():
            try:
                self._own[host_address(name)] = limit
            except MalformedName:  # the name of a host, or of the default
                self._names_hosts |= name != DEFAULT_IP

    def limit(self, ip: str) -> float | None:
        """Return the limit of an address in connections/s; None if it is unlimited or unknown."""
        limit = self._own.get(ip, None if self._names_hosts else self._default)
        return None if limit == INT_MAX else limit

    def may_limit(self, ip: str) -> bool:
        """Return whether an address has a limit, or may have one. Rates of other addresses are from removed rules."""
        return self.limit(ip) is not None or (self._names_hosts and ip not in self._own)
