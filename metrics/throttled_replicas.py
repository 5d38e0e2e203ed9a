"""Which replicas of a topic are throttled: the lists in topic configs."""

import re
from typing import Final

from .errors import InvalidConfig
from .numbers import INT_MAX

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
    return tuple(
        _number(partition, text)
        for partition, broker in pairs
        if _number(broker, text) == broker_id
    )


def _replica(element: str, text: str) -> tuple[str, str]:
    partition, _, broker = element.partition(":")
    if not _REPLICA.fullmatch(element):
        raise InvalidConfig(
            f"throttled replicas are * or partition:broker,..., not {text[:200]!r}"
        )
    return partition, broker


def _number(digits: str, text: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > _MOST_DIGITS or int(significant) > INT_MAX:
        raise InvalidConfig(f"a number of 32 bits was expected in {text[:200]!r}")
    return int(significant)
