"""Quotas on the traffic among brokers (KIP-73)."""

from collections.abc import Iterable
from enum import Enum

from .byte_rate_quota import ByteRateQuota
from .numbers import LONG_MAX, trunc_i64
from .quota import Quota
from .registry import Registry
from .throttled_replicas import ALL_REPLICAS
from .window_config import WindowConfig


class ReplicationQuotaType(Enum):
    """What a replication quota limits; the value is Kafka's name for it, the metric group and the MBean type."""

    LEADER = "LeaderReplication"
    """Bytes of throttled partitions that this broker sends to followers."""

    FOLLOWER = "FollowerReplication"
    """Bytes of throttled partitions that this broker fetches from leaders."""

    ALTER_LOG_DIRS = "AlterLogDirsReplication"
    """Bytes that this broker moves from one log directory to another."""

    @property
    def label(self) -> str:
        """The value of our label `direction`, such as `alter_log_dirs`."""
        return self.name.lower()

    @property
    def rate_key(self) -> str:
        """The dynamic broker config that sets the bound in bytes per second."""
        return _RATE_KEYS[self]


_RATE_KEYS = {
    ReplicationQuotaType.LEADER: "leader.replication.throttled.rate",
    ReplicationQuotaType.FOLLOWER: "follower.replication.throttled.rate",
    ReplicationQuotaType.ALTER_LOG_DIRS: "replica.alter.log.dirs.io.max.bytes.per.second",
}


class ReplicationQuotaManager(ByteRateQuota):
    """
    A bound on replicated bytes, and which partitions it is for (Kafka: `ReplicationQuotaManager`).

    There is no throttle time: the thread that moves data calls `should_throttle` first and leaves out a partition while the rate
    is past its bound. Recording never refuses. Without a rate there is no bound, before one was set (`quota` is None)
    and after.

    Args:
        registry: where the sensor and its metric live.
        quota_type: what is limited.
        config: windows, `replication.quota.window.*` or `alter.log.dirs.replication.quota.window.*`.

    """

    def __init__(
        self,
        registry: Registry,
        quota_type: ReplicationQuotaType,
        config: WindowConfig | None = None,
    ) -> None:
        group = quota_type.value
        super().__init__(
            registry, group, f"Tracking byte-rate for {group}", config, None
        )
        self.quota_type: ReplicationQuotaType = quota_type
        # None stands for all partitions of a topic.
        self._throttled: dict[str, frozenset[int] | None] = {}

    @property
    def upper_bound(self) -> int:
        """The bound in whole bytes per second, the largest 64-bit number without one."""
        quota = self.quota
        return LONG_MAX if quota is None else trunc_i64(quota.bound)

    def update_rate(self, bytes_per_second: int | None) -> None:
        """Set the bound as a broker does: None means that no config sets it, which is the largest 64-bit number."""
        bound = LONG_MAX if bytes_per_second is None else bytes_per_second
        self.update_quota(Quota(bound))

    def mark_throttled(
        self, topic: str, partitions: Iterable[int] = ALL_REPLICAS
    ) -> None:
        """Let the bound be for these partitions of a topic, and no longer for its others; all unless given."""
        marks = tuple(partitions)
        self._throttled[topic] = None if marks == ALL_REPLICAS else frozenset(marks)

    def remove_throttle(self, topic: str) -> None:
        """Let the bound be for no partition of a topic."""
        self._throttled.pop(topic, None)

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Whether the bound is for a partition; its bytes are to be recorded then."""
        marks = self._throttled.get(topic, frozenset())
        return marks is None or partition in marks

    def is_quota_exceeded(self, now_ms: int) -> bool:
        """Whether the rate is past its bound at `now_ms` (epoch ms); has the effect of a read."""
        return self.violation(now_ms) is not None

    def should_throttle(
        self, topic: str, partition: int, now_ms: int, *, in_sync: bool
    ) -> bool:
        """
        Whether a partition has to be left out of a fetch.

        A replica in sync never is, else it would fall out. The same rule on the leader's side and on the follower's
        (Kafka: `ReplicaManager.shouldLeaderThrottle`, `RemoteLeaderEndPoint.shouldFollowerThrottle`). Moves between
        log directories know no marks: they are skipped while `is_quota_exceeded`.
        """
        return (
            not in_sync
            and self.is_throttled(topic, partition)
            and self.is_quota_exceeded(now_ms)
        )
