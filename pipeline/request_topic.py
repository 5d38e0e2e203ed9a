"""The topic to which brokers' request logs are shipped, and which `quotascope ingest` reads: made unless it is there."""

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
    """A topic that is there now."""

    topic: TopicFound
    created: bool
    """Whether it was not there before."""


def shape_of(partitions: int | None, replication_factor: int | None, retention_hours: int | None) -> TopicShape:
    """What a new topic is to be; None leaves it to the cluster."""
    configs = {} if retention_hours is None else {"retention.ms": str(retention_hours * _HOUR_MS)}
    return TopicShape(partitions=partitions, replication_factor=replication_factor, configs=configs)


def ensure(admin: TopicAdmin, name: str, shape: TopicShape, timeout_ms: int) -> Ensured:
    """
    Make the topic unless it is there; one that is there stays as it is.

    While a quota on controller mutations refuses it, this waits for the broker's throttle time and tries again (KIP-599).

    Args:
        admin: of the cluster.
        name: of the topic.
        shape: what it is to be.
        timeout_ms: for making it, with all that is tried again.

    Raises:
        BadOption: no topic can have this name.
        OtherTopic: it is there with other numbers of partitions or replicas.
        ClientError: Kafka cannot be reached, does not permit it, or refuses it until the time is over.

    """
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise BadOption(f"{name[:60]!r} cannot name a topic: 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'")
    found = admin.find(name)
    if found is None:
        made = admin.create(name, shape, timeout_ms)
        if made is not None:
            return Ensured(topic=made, created=True)
        found = admin.find(name) or TopicFound(partitions=None, replication_factor=None)
    differences = [
        f"{is_there} {word}, not {wanted}"
        for word, wanted, is_there in (
            ("partitions", shape.partitions, found.partitions),
            ("replicas", shape.replication_factor, found.replication_factor),
        )
        if None not in (wanted, is_there) and wanted != is_there
    ]
    if differences:
        raise OtherTopic(name, " and ".join(differences))
    return Ensured(topic=found, created=False)
