"""The three replication quotas of a broker, set by its configs and its topics'."""

import re
from collections.abc import Mapping

from .errors import InvalidConfig
from .numbers import LONG_MAX
from .registry import Registry
from .replication_quota_manager import ReplicationQuotaManager, ReplicationQuotaType
from .throttled_replicas import parse_throttled_replicas
from .window_config import WindowConfig

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


class ReplicationQuotas:
    """
    A broker's replication quotas over one registry (Kafka: `BrokerConfigHandler`, `TopicConfigHandler`).

    Args:
        registry: where sensors and metrics live.
        broker_id: of this broker.
        replication: windows of leader and follower, `replication.quota.window.*`.
        alter_log_dirs: windows of moves between directories, `alter.log.dirs.replication.quota.window.*`.

    """

    def __init__(
        self,
        registry: Registry,
        broker_id: int,
        replication: WindowConfig | None = None,
        alter_log_dirs: WindowConfig | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.leader = ReplicationQuotaManager(
            registry, ReplicationQuotaType.LEADER, replication
        )
        self.follower = ReplicationQuotaManager(
            registry, ReplicationQuotaType.FOLLOWER, replication
        )
        self.alter_log_dirs = ReplicationQuotaManager(
            registry, ReplicationQuotaType.ALTER_LOG_DIRS, alter_log_dirs
        )

    def all(self) -> tuple[ReplicationQuotaManager, ...]:
        """Return the managers."""
        return self.leader, self.follower, self.alter_log_dirs

    def apply_broker_configs(
        self, broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> None:
        """
        Set all three bounds from dynamic configs.

        Args:
            broker: configs of this broker.
            cluster: defaults of all brokers, for keys that this broker does not have.

        Raises:
            InvalidConfig: a rate is no whole number from 0 to 64 bits.

        """
        for manager in self.all():
            key = manager.quota_type.rate_key
            text = broker.get(key, cluster.get(key))
            manager.update_rate(None if text is None else _rate(key, text))

    def apply_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """
        Mark the throttled partitions of a topic from its configs; a missing or empty list removes the marks.

        Raises:
            InvalidConfig: a list cannot be read, see `parse_throttled_replicas`.

        """
        for manager, key in (
            (self.leader, LEADER_REPLICAS),
            (self.follower, FOLLOWER_REPLICAS),
        ):
            text = configs.get(key, "")
            if text:
                marks = parse_throttled_replicas(text, self.broker_id)
                manager.mark_throttled(topic, marks)
            else:
                manager.remove_throttle(topic)


def _rate(key: str, text: str) -> int:
    if not re.fullmatch(r"\s*\+?[0-9]{1,30}\s*", text) or int(text) > LONG_MAX:
        raise InvalidConfig(f"{key} must be a whole number from 0, not {text[:60]!r}")
    return int(text)
