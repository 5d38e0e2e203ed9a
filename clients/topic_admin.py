"""Topics of the Admin API, independent of the library that reads and creates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """What a new topic is to be."""

    partitions: int | None = None
    """None leaves it to the cluster (`num.partitions`)."""
    replication_factor: int | None = None
    """None leaves it to the cluster (`default.replication.factor`)."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """By topic config key, such as `retention.ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFound:
    """A topic that exists; None for what the cluster did not report."""

    partitions: int | None
    replication_factor: int | None
    """The least of its partitions."""


class TopicAdmin(Protocol):
    """
    The part of the Admin API that makes topics.

    Calls block and raise `ClientError`. The first one connects.
    """

    def find(self, name: str) -> TopicFound | None:
        """A topic; None when there is none of that name. Needs DESCRIBE on the topic."""
        ...

    def create(self, name: str, shape: TopicShape, timeout_ms: int) -> TopicFound | None:
        """
        Make a topic, at the pace that quotas allow; None when it has come to be meanwhile. Needs CREATE on the cluster or the topic.

        What a quota on controller mutations refuses (error 89) is tried again when the broker's throttle time is over, until the
        timeout is; then it is raised as `MutationThrottled` (KIP-599).
        """
        ...

    def close(self) -> None:
        """End the connection; safe to call twice."""
        ...
