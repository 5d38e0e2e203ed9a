"""Quotas on the traffic among brokers (KIP-73): throttled replicas, and a bound for each kind of traffic."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ...kafka.errors import InvalidConfig
from ...kafka.node_quota_types import ReplicationQuotaType
from ...kafka.numbers import INT_MAX, LONG_MAX, trunc_i64
from ...kafka.windows import WindowConfig
from ..quota import Quota
from ..registry import Registry
from .byte_rate_quota import ByteRateQuota

ALL_REPLICAS: Final = (-1,)
"""Stands for all partitions of a topic (Kafka: `ReplicationQuotaManager.ALL_REPLICAS`)."""

_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_SPACES = "".join(map(chr, range(33)))
"""What Java trims."""
_MOST_DIGITS = 10


def parse_throttled_replicas(text: str, broker_id: int) -> tuple[int, ...]:
    """
    Return the partitions with a throttled replica on this broker, `ALL_REPLICAS` for `*`.

    Args:
        text: `leader.replication.throttled.replicas` or `follower.replication.throttled.replicas` of a topic: `*` or
            `partition:broker,partition:broker,...`.
        broker_id: of this broker.

    Raises:
        InvalidConfig: it is neither. That includes two kinds of lists which Kafka lets pass and its brokers then fail
            on: those with an empty element before the last, and those with spaces around an element.

    """
    trimmed = text.strip(_SPACES)
    if trimmed == "*":
        return ALL_REPLICAS
    listed = trimmed.rstrip(",")
    elements = listed.split(",") if listed else []
    pairs = [_replica(element, text) for element in elements]
    return tuple(_number(partition, text) for partition, broker in pairs if _number(broker, text) == broker_id)


def _replica(element: str, text: str) -> tuple[str, str]:
    partition, _, broker = element.partition(":")
    if not _REPLICA.fullmatch(element):
        raise InvalidConfig(f"throttled replicas are * or partition:broker,..., not {text[:200]!r}")
    return partition, broker


def _number(digits: str, text: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > _MOST_DIGITS or int(significant) > INT_MAX:
        raise InvalidConfig(f"a number of 32 bits was expected in {text[:200]!r}")
    return int(significant)


class ReplicationQuotaManager(ByteRateQuota):
    """
    A bound on replicated bytes, and which partitions it is for (Kafka: `ReplicationQuotaManager`).

    There is no throttle time: the thread that moves data calls `should_throttle` first and leaves out a partition while
    the rate is past its bound. Recording never refuses. Without a rate there is no bound, before one was set (`quota`
    is None) and after.

    Args:
        registry: where the sensor and its metric live.
        quota_type: what is limited.
        config: windows, `replication.quota.window.*` or `alter.log.dirs.replication.quota.window.*`.

    """

    def __init__(
        self, registry: Registry, quota_type: ReplicationQuotaType, config: WindowConfig | None = None
    ) -> None:
        group = quota_type.value
        super().__init__(registry, group, f"Tracking byte-rate for {group}", config, None)
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

    def mark_throttled(self, topic: str, partitions: Iterable[int] = ALL_REPLICAS) -> None:
        """Throttle these partitions of a topic, by default all, and no longer its other ones."""
        marks = tuple(partitions)
        self._throttled[topic] = None if marks == ALL_REPLICAS else frozenset(marks)

    def remove_throttle(self, topic: str) -> None:
        """Throttle no partition of a topic any longer."""
        self._throttled.pop(topic, None)

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Return whether a partition is throttled; its bytes are to be recorded then."""
        marks = self._throttled.get(topic, frozenset())
        return marks is None or partition in marks

    def is_quota_exceeded(self, now_ms: int) -> bool:
        """Return whether the rate is past its bound at `now_ms` (epoch ms); has the effect of a read."""
        return self.violation(now_ms) is not None

    def should_throttle(self, topic: str, partition: int, now_ms: int, *, in_sync: bool) -> bool:
        """
        Return whether a partition has to be left out of a fetch.

        A replica in sync never is, else it would fall out. The same rule on the leader's side and on the follower's
        (Kafka: `ReplicaManager.shouldLeaderThrottle`, `RemoteLeaderEndPoint.shouldFollowerThrottle`). Moves between
        log directories know no marks: they are skipped while `is_quota_exceeded`.
        """
        return not in_sync and self.is_throttled(topic, partition) and self.is_quota_exceeded(now_ms)


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
        self.leader = ReplicationQuotaManager(registry, ReplicationQuotaType.LEADER, replication)
        self.follower = ReplicationQuotaManager(registry, ReplicationQuotaType.FOLLOWER, replication)
        self.alter_log_dirs = ReplicationQuotaManager(registry, ReplicationQuotaType.ALTER_LOG_DIRS, alter_log_dirs)

    def all(self) -> tuple[ReplicationQuotaManager, ...]:
        """Return the managers."""
        return self.leader, self.follower, self.alter_log_dirs

    def apply_broker_configs(self, broker: Mapping[str, str], cluster: Mapping[str, str]) -> None:
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
