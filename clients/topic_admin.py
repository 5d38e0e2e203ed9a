"""Topics of the Admin API, independent of the library that reads and creates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """Shape of a new topic."""

    partitions: int | None = None
    """Number of partitions; None leaves it to the cluster (`num.partitions`)."""
    replication_factor: int | None = None
    """Replication factor; None leaves it to the cluster (`default.replication.factor`)."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Values by topic config key, such as `retention.ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFound:
    """A topic that exists; None for what the cluster did not report."""

    partitions: int | None
    replication_factor: int | None
    """Smallest replication factor of its partitions."""


class TopicAdmin(Protocol):
    """
    The part of the Admin API that creates topics.

    Calls block and raise `ClientError`. The first one connects.
    """

    def find(self, name: str) -> TopicFound | None:
        """Return a topic; None when there is none of that name. Needs DESCRIBE on the topic."""
        ...

    def create(self, name: str, shape: TopicShape, timeout_ms: int) -> TopicFound | None:
        """
        Create a topic, at the pace that quotas allow; None if another client created it meanwhile.

        Needs CREATE on the cluster or the topic.

        A request that a controller mutation quota refuses (error 89) is retried after the broker's throttle time. If
        the timeout ends before that, `MutationThrottled` is raised (KIP-599).
        """
        ...

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        ...
