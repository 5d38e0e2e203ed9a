"""
The size of a ShareFetch response, `ShareFetchResponse.json` (KIP-932).

Kafka's `ShareFetchResponse.sizeOf`: the body as it is without an error and without endpoints, and four bytes. All versions are flexible.
"""

from ..errors import UnreadableMessage
from .encoding import NO_TAGS, UUID, WRONG_SHAPE, Json, count, records, text
from .versions import known_version

NEWEST = 2
LOCK_TIMEOUT_SINCE = 1

FRAME = 4
NULL_TEXT = 1
LEADER = 4 + 4 + NO_TAGS
ACQUIRED = 8 + 8 + 2 + NO_TAGS
"""First and last offset and the count of deliveries."""


def share_fetch_bytes(header: Json, response: Json) -> int | None:
    """
    Bytes that the Fetch quota is charged for a share group's fetch; None when it was throttled, as of `fetch_bytes`.

    Raises `UnknownVersion` for a version newer than this schema and `UnreadableMessage` when the message is not a ShareFetch response.
    """
    version = known_version("ShareFetch", header, newest=NEWEST)
    try:
        return (
            None if response["throttleTimeMs"] > 0 else FRAME + _body(response, version)
        )
    except WRONG_SHAPE as error:
        raise UnreadableMessage(
            f"not a ShareFetch response of version {version}: {error!r}"
        ) from error


def _body(response: Json, version: int) -> int:
    topics = response["responses"]
    throttle_error_message = 4 + 2 + NULL_TEXT
    no_endpoints_and_tags = 1 + NO_TAGS
    lock_timeout = 4 if version >= LOCK_TIMEOUT_SINCE else 0
    size = (
        throttle_error_message
        + lock_timeout
        + count(topics, flexible=True)
        + no_endpoints_and_tags
    )
    for topic in topics:
        size += UUID + count(topic["partitions"], flexible=True) + NO_TAGS
        size += sum([_partition(partition) for partition in topic["partitions"]])
    return size


def _partition(partition: Json) -> int:
    acquired = partition["acquiredRecords"]
    size = 4 + 2 + text(partition["errorMessage"], flexible=True)
    size += 2 + text(partition["acknowledgeErrorMessage"], flexible=True)
    size += LEADER + records(partition.get("recordsSizeInBytes"), flexible=True)
    return size + count(acquired, flexible=True) + ACQUIRED * len(acquired) + NO_TAGS
