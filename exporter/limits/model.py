"""The configured limits of a cluster, as the join needs them, and how reading them goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from quotascope.metrics import QuotaType, RuleTable
from quotascope.quotas import Entity

CONNECTION_KEY: Final = "connection_creation_rate"
"""The quota key of IP addresses, which limits no client (KIP-612)."""
DEFAULT_IP: Final = "<default>"
"""The name of the default rule of IP addresses."""
QUOTA_KEYS: Final = (*(kind.quota_key for kind in QuotaType), CONNECTION_KEY)
"""All quota keys that can be configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The settings of one node that shape its quotas."""

    request_capacity_threads: float | None = None
    """``num.io.threads`` + ``num.network.threads``, of which every listener has as many: Kafka's documentation counts them once (client quotas)."""
    quota_samples: int = 11
    """``quota.window.num``."""
    quota_window_seconds: float = 1.0
    """``quota.window.size.seconds``: also the longest throttle of a request quota."""
    controller_quota_samples: int = 11
    """``controller.quota.window.num``."""
    controller_quota_window_seconds: float = 1.0
    """``controller.quota.window.size.seconds``."""
    quota_callback_class: str | None = None
    """``client.quota.callback.class``: where it is set, that class decides and not the configured rules."""
    connection_limit: float | None = None
    """``max.connection.creation.rate`` in connections/s; None when unlimited."""
    listener_connection_limits: Mapping[str, float] = field(default_factory=dict)
    """The same by listener in lower case; a listener that is not in it has the broker's."""
    replication_limits: Mapping[str, float] = field(default_factory=dict)
    """bytes/s by the label ``direction``; a direction that is not in it is not limited."""
    remote_storage_limits: Mapping[str, float] = field(default_factory=dict)
    """bytes/s by the label ``direction``; a direction that is not in it is not limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The quota configuration of one cluster at one moment. Never changed once made."""

    rules: Mapping[QuotaType, RuleTable] = field(default_factory=dict)
    """The configured quotas of each type, bounds in Kafka's units; a missing type has none."""
    connection_limits: Mapping[str, float] = field(default_factory=dict)
    """New connections per second by IP address; the default rule reads ``<default>``."""
    nodes: Mapping[str, NodeSettings] = field(default_factory=dict)
    """Settings by node id."""
    cluster_id: str | None = None
    """Kafka's id of the cluster, or None when it could not be read."""
    active_controller: str | None = None
    """Node id of the leader of the KRaft quorum, or None when it could not be read."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What else could not be read, and why."""
    read_at: float
    """Unix time in seconds."""

    def count(self, quota_key: str) -> int:
        """How many entities have a quota of this key."""
        quota_type = QuotaType.of_quota_key(quota_key)
        if quota_type is None:
            return len(self.connection_limits)
        return len(self.rules.get(quota_type, ()))

    def quotas(self) -> dict[Entity, dict[str, float]]:
        """The quotas of users and client-ids: by entity, then by quota key, in Kafka's unit."""
        found: dict[Entity, dict[str, float]] = {}
        for kind, rules in self.rules.items():
            for entity, value in rules.items():
                found.setdefault(entity, {})[kind.quota_key] = value
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsHealth:
    """How reading the configured limits goes."""

    configured: bool = True
    """False when no place to read the limits from is configured."""
    read_at: float | None = None
    """Unix time of the last success in seconds."""
    cluster_id: str | None = None
    """Kafka's id of the cluster that they are of; None when it is unknown."""
    error: str | None = None
    """Why the last read failed; None when it succeeded."""
    denied: bool = False
    """Whether it failed for a missing permission or wrong credentials."""
    errors_total: int = 0
    changes_total: Mapping[str, int] = field(default_factory=dict)
    """Limits set, changed or removed, by quota key."""

    def age_seconds(self, now: float) -> float | None:
        """Time from the last success to `now` (Unix time in seconds); None without one."""
        return None if self.read_at is None else max(0.0, now - self.read_at)


class LimitsSource(Protocol):
    """Where the configured limits come from: the Admin API, or an engine in this process."""

    async def read(self) -> Limits:
        """The limits as configured now. Raises ``LimitsError``."""
        ...

    async def close(self) -> None:
        """Release connections. Safe to call twice."""
        ...
