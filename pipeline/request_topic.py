"""The topic to which brokers ship request logs, and which `quotascope ingest` reads; created unless it exists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from quotascope.clients.topic_admin import TopicAdmin, TopicFound, TopicShape

from .errors import BadOption, OtherTopic

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # Topic.validate
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensured:
    """Topic that exists now."""

    topic: TopicFound
    created: bool
    """True if the topic did not exist before."""


def shape_of(partitions: int | None, replication_factor: int | None, retention_hours: int | None) -> TopicShape:
    """Return the shape of a new topic; None leaves a number to the cluster."""
    configs = {} if retention_hours is None else {"retention.ms": str(retention_hours * _HOUR_MS)}
    return TopicShape(partitions=partitions, replication_factor=replication_factor, configs=configs)


def ensure(admin: TopicAdmin, name: str, shape: TopicShape, timeout_ms: int) -> Ensured:
    """
    Make the topic unless it is there; one that is there stays as it is.

    While a quota on controller mutations refuses it, this waits for the broker's throttle time and tries again
    (KIP-599).

    Args:
        admin: Admin API of the cluster.
        name: name of the topic.
        shape: shape of the topic if it is made.
        timeout_ms: longest time for making the topic, further attempts included.

    Raises:
        BadOption: no topic can have this name.
        OtherTopic: it is there with other numbers of partitions or replicas.
        ClientError: Kafka cannot be reached, does not permit it, or refuses it until the time is over.

    """
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise BadOption(f"{name[:60]!r} cannot name a topic: 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'")
    existing = admin.find(name)
    if existing is None:
        created = admin.create(name, shape, timeout_ms)
        if created is not None:
            return Ensured(topic=created, created=True)
        existing = admin.find(name) or TopicFound(partitions=None, replication_factor=None)
    differences = [
        f"{actual} {word}, not {expected}"
        for word, expected, actual in (
            ("partitions", shape.partitions, existing.partitions),
            ("replicas", shape.replication_factor, existing.replication_factor),
        )
        if None not in (expected, actual) and expected != actual
    ]
    if differences:
        raise OtherTopic(name, " and ".join(differences))
    return Ensured(topic=existing, created=False)
