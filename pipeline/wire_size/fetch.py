"""
The size of a Fetch response, `FetchResponse.json`.

Kafka's `FetchResponse.sizeOf`, which `KafkaApis.handleFetchRequest` charges: the body and four bytes, without the response's header and
without the endpoints of new leaders that the answer may name.
"""

from ..errors import UnreadableMessage
from .encoding import NO_TAGS, UUID, WRONG_SHAPE, Json, count, records, text
from .versions import known_version

NEWEST = 18
THROTTLE_SINCE = 1
LAST_STABLE_OFFSET_SINCE = 4
LOG_START_OFFSET_SINCE = 5
SESSIONS_SINCE = 7
PREFERRED_REPLICA_SINCE = 11
FLEXIBLE_SINCE = 12
TOPIC_IDS_SINCE = 13

FRAME = 4
PARTITION_TAGS = {"divergingEpoch": 15, "currentLeader": 11, "snapshotId": 15}
"""Tagged fields of a partition: tag, length, two numbers, no tags of their own."""


def fetch_bytes(header: Json, response: Json) -> int | None:
    """
    Bytes that the Fetch quota is charged, from `requestHeader` and `response` of the line.

    None when the answer was throttled: it went out empty, the broker took its charge back, and the log does not tell what it was.
    Raises `UnknownVersion` for a version newer than this schema and `UnreadableMessage` when the message is not a Fetch response.
    """
    version = known_version("Fetch", header, newest=NEWEST)
    try:
        return (
            None
            if response.get("throttleTimeMs", 0) > 0
            else FRAME + _body(response, version)
        )
    except WRONG_SHAPE as error:
        raise UnreadableMessage(
            f"not a Fetch response of version {version}: {error!r}"
        ) from error


def from_follower(request: Json) -> bool:
    """Whether another broker fetched; replication is not charged to clients. The id moved to `replicaState` in version 15 (KIP-903)."""
    state = request.get("replicaState") or request
    return int(state.get("replicaId", -1)) >= 0


def _body(response: Json, version: int) -> int:
    flexible = version >= FLEXIBLE_SINCE
    topics = response["responses"]
    size = count(topics, flexible=flexible) + sum(
        [_topic(topic, version) for topic in topics]
    )
    size += 4 if version >= THROTTLE_SINCE else 0
    size += 2 + 4 if version >= SESSIONS_SINCE else 0
    return size + (NO_TAGS if flexible else 0)


def _topic(topic: Json, version: int) -> int:
    flexible = version >= FLEXIBLE_SINCE
    partitions = topic["partitions"]
    size = (
        UUID if version >= TOPIC_IDS_SINCE else text(topic["topic"], flexible=flexible)
    )
    size += count(partitions, flexible=flexible) + len(partitions) * _fixed_part(
        version
    )
    for partition in partitions:
        size += records(partition.get("recordsSizeInBytes"), flexible=flexible)
        size += _aborted(partition.get("abortedTransactions"), version)
        if flexible:
            size += sum(
                [
                    length
                    for field, length in PARTITION_TAGS.items()
                    if field in partition
                ]
            )
    return size + (NO_TAGS if flexible else 0)


def _fixed_part(version: int) -> int:
    """What every partition has: index, error, high watermark, and what later versions added."""
    size = 4 + 2 + 8
    size += 8 if version >= LAST_STABLE_OFFSET_SINCE else 0
    size += 8 if version >= LOG_START_OFFSET_SINCE else 0
    size += 4 if version >= PREFERRED_REPLICA_SINCE else 0
    return size + (NO_TAGS if version >= FLEXIBLE_SINCE else 0)


def _aborted(transactions: list[Json] | None, version: int) -> int:
    """The aborted transactions of a partition: producer id and first offset each."""
    if version < LAST_STABLE_OFFSET_SINCE:
        return 0
    flexible = version >= FLEXIBLE_SINCE
    each = 8 + 8 + (NO_TAGS if flexible else 0)
    return count(transactions, flexible=flexible) + each * len(transactions or ())
