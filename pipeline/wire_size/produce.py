"""
The size of a Produce request, `ProduceRequest.json`.

Kafka's `KafkaApis.handleProduceRequest` charges `request.sizeInBytes`: header and body, without the length of the frame.
"""

from ..errors import UnreadableMessage
from .encoding import NO_TAGS, UUID, WRONG_SHAPE, Json, count, records, text
from .versions import known_version

NEWEST = 13
TRANSACTIONS_SINCE = 3
FLEXIBLE_SINCE = 9
TOPIC_IDS_SINCE = 13


def produce_bytes(header: Json, request: Json) -> int:
    """
    Bytes that the Produce quota is charged, from `requestHeader` and `request` of the line.

    Raises `UnknownVersion` for a version newer than this schema and `UnreadableMessage` when the message is not a Produce request.
    """
    version = known_version("Produce", header, newest=NEWEST)
    try:
        return _header(header, version) + _body(request, version)
    except WRONG_SHAPE as error:
        raise UnreadableMessage(
            f"not a Produce request of version {version}: {error!r}"
        ) from error


def _header(header: Json, version: int) -> int:
    """`RequestHeader.json`: its client id keeps the old encoding in flexible versions."""
    api_key_version_correlation = 2 + 2 + 4
    tags = NO_TAGS if version >= FLEXIBLE_SINCE else 0
    return api_key_version_correlation + text(header["clientId"], flexible=False) + tags


def _body(request: Json, version: int) -> int:
    flexible = version >= FLEXIBLE_SINCE
    topics = request["topicData"]
    acks_timeout = 2 + 4
    size = (
        acks_timeout
        + count(topics, flexible=flexible)
        + sum([_topic(topic, version) for topic in topics])
    )
    if version >= TRANSACTIONS_SINCE:
        size += text(request["transactionalId"], flexible=flexible)
    return size + (NO_TAGS if flexible else 0)


def _topic(topic: Json, version: int) -> int:
    flexible = version >= FLEXIBLE_SINCE
    partitions = topic["partitionData"]
    size = (
        UUID if version >= TOPIC_IDS_SINCE else text(topic["name"], flexible=flexible)
    )
    size += count(partitions, flexible=flexible)
    index_and_tags = 4 + (NO_TAGS if flexible else 0)
    for partition in partitions:
        size += index_and_tags + records(
            partition.get("recordsSizeInBytes"), flexible=flexible
        )
    return size + (NO_TAGS if flexible else 0)
