"""What a node says of itself, apart from its entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quotascope.metrics import QuotaType


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedRate:
    """What one of the quotas beside the client quotas measures, and what it allows."""

    rate: float | None = None
    """bytes/s or connections/s; None when the node gave none."""
    limit: float | None = None
    """In the unit of ``rate``; None when unlimited or unknown."""
    throttle_time_seconds: float | None = None
    """Average throttle of the last 30 to 60 s, 0 when there was none; None where Kafka keeps no such average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionUsage:
    """New connections of one node (KIP-612)."""

    broker: LimitedRate = field(default_factory=LimitedRate)
    listeners: Mapping[str, LimitedRate] = field(default_factory=dict)
    ips: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By IP address as Java writes it, those under a limit only."""
    ip_throttle_time_seconds: Mapping[str, float] = field(default_factory=dict)
    """Average delay of connections refused for the sake of their address, by listener; 0 when there were none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """What a broker or controller says of itself, apart from its entities."""

    broker: str
    delay_queue_size: Mapping[QuotaType, float] = field(default_factory=dict)
    exempt_request_threads: float | None = None
    request_capacity_threads: float | None = None
    request_throttled_seconds: Mapping[str, float] = field(default_factory=dict)
    """Total since the node started, by request."""
    throttling_errors: Mapping[str, float] = field(default_factory=dict)
    """Total since the node started, by request."""
    stale_entities: Mapping[QuotaType, int] = field(default_factory=dict)
    quota_callback: bool | None = False
    """Whether the node leaves quotas to a custom callback; None where neither its settings are known nor its beans show one."""
    utilization_disagreements: int | None = None
    """Entities whose utilisation the node tells otherwise than it is computed; None when it tells none, or limits are unknown."""
    active_controller: bool | None = None
    """None when the node did not tell."""
    controller_events: float | None = None
    """Events handled since the node started; the active controller only."""
    controller_event_queue_seconds: float | None = None
    """Total wait of these events; the active controller only."""
    connections: ConnectionUsage = field(default_factory=ConnectionUsage)
    replication: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By direction: ``leader``, ``follower``, ``alter_log_dirs``."""
    remote_storage: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By direction: ``copy``, ``fetch``."""
