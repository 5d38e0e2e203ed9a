"""
What is read of requests and responses, as `…DataJsonConverter` of Kafka writes them.

Where there is none the log has an empty string: no request when the log was switched on in the middle of it, no response when the client
did not wait for one.
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78

Name: TypeAlias = str | UnsetType | None
"""Null, or not in this version."""
_Size: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 31)]


class Message(msgspec.Struct, gc=False, rename="camel"):
    """Its fields are a message's, in camel case; more of them are passed over."""


class Answer(Message):
    """What most responses have in common; some have no such field."""

    throttle_time_ms: int | None = None


class Produced(Message):
    """A partition of a Produce request."""

    records_size_in_bytes: _Size | None = None


class ProducedTopic(Message):
    """A topic of a Produce request, by name or, since version 13, by id."""

    partition_data: list[Produced]
    name: Name = UNSET


class ProduceRequest(Message):
    """`ProduceRequest.json`."""

    topic_data: list[ProducedTopic]
    acks: int = -1
    transactional_id: Name = UNSET


class Fetched(Message):
    """A partition of a Fetch response."""

    records_size_in_bytes: _Size | None = None
    aborted_transactions: list[Any] | None = None
    diverging_epoch: Any = UNSET
    current_leader: Any = UNSET
    snapshot_id: Any = UNSET


class FetchedTopic(Message):
    """A topic of a Fetch response, by name or, since version 13, by id."""

    partitions: list[Fetched]
    topic: Name = UNSET


class FetchResponse(Answer):
    """`FetchResponse.json`."""

    responses: list[FetchedTopic] = []


class ReplicaState(Message):
    """Who fetches, since version 15."""

    replica_id: int = -1


class FetchRequest(Message):
    """`FetchRequest.json`."""

    replica_id: int = -1
    replica_state: ReplicaState | None = None

    @property
    def follower(self) -> bool:
        """Whether another broker fetches, which is not charged to clients."""
        return (self.replica_state or self).replica_id >= 0
