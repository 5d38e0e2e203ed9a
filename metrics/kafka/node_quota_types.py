"""Quotas of a broker beside its clients': traffic of replication (KIP-73) and with tiered storage (KIP-956)."""

from enum import Enum


class ReplicationQuotaType(Enum):
    """Kind of a replication quota; the value is Kafka's name, the metric group and the MBean type."""

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


class RLMQuotaType(Enum):
    """A direction of the traffic; the value is Kafka's name for it, the metric group and the MBean type."""

    COPY = "RLMCopy"
    """Bytes per second that one broker copies to the remote storage."""

    FETCH = "RLMFetch"
    """Bytes per second that one broker fetches from it."""

    @property
    def label(self) -> str:
        """The value of our label `direction`: `copy` or `fetch`."""
        return self.name.lower()

    @property
    def rate_key(self) -> str:
        """The broker config that sets the bound in bytes per second, dynamic as well."""
        return f"remote.log.manager.{self.label}.max.bytes.per.second"
