"""
Responses that make a client itself wait (KIP-219).

The broker mutes the connection whatever the version is; the version decides whether the client, too, holds back its
next request. Up to Kafka 4.3 a response class has to say so (`shouldClientThrottle`); since 4.4 those that say nothing
make the client wait as well, in every version. The release is that of the client's library, not the broker's.
"""

from typing import Final

from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import KAFKA_4_4, NEWEST_RELEASE, KafkaRelease

_SINCE: Final[dict[int, tuple[ApiKey, ...]]] = {
    0: (
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.OFFSET_DELETE,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ),
    1: (
        ApiKey.DELETE_RECORDS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DELETE_GROUPS,
    ),
    2: (
        ApiKey.FIND_COORDINATOR,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.API_VERSIONS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_CONFIGS,
    ),
    3: (ApiKey.LIST_OFFSETS, ApiKey.JOIN_GROUP, ApiKey.CREATE_TOPICS),
    4: (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH),
    6: (ApiKey.PRODUCE, ApiKey.METADATA),
    8: (ApiKey.FETCH,),
}

_WITHOUT_THROTTLE_TIME: Final = frozenset({
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.ENVELOPE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
})  # fmt: skip

_FIRST: Final = {api: version for version, apis in _SINCE.items() for api in apis}


def first_waiting_version(api: ApiKey, release: KafkaRelease = NEWEST_RELEASE) -> int | None:
    """Return the first version of a response that makes the client wait; None when the client never does."""
    if release >= KAFKA_4_4 and has_throttle_time(api):
        return _FIRST.get(api, 0)
    return _FIRST.get(api)


def client_waits(api: ApiKey, version: int, release: KafkaRelease = NEWEST_RELEASE) -> bool:
    """
    Return whether a client waits for the throttle time in a response of this version.

    As `shouldClientThrottle` of Kafka's responses.
    """
    first_version = first_waiting_version(api, release)
    return first_version is not None and version >= first_version


def has_throttle_time(api: ApiKey) -> bool:
    """Return whether the response has a field for a throttle time in any version, even if clients ignore it."""
    return api not in _WITHOUT_THROTTLE_TIME
