"""
Lines of `kafka.request.logger` as a broker of Kafka 4.3 writes them.

The layouts, the mix of requests, the sizes and the times are those of a log that a real broker wrote under librdkafka's
clients: about 1 kB a line. Whole names and numbers are drawn again for each line; a client is throttled now and then,
and is answered an empty Fetch then.
"""

from typing import Final, NamedTuple

_HEAD: Final = (
    b'[%b,%03d] DEBUG Completed request:{"isForwarded":%b,"requestHeader":{"requestApiKey":%d,'
    b'"requestApiVersion":%d,"correlationId":%d,"clientId":"%b","requestApiKeyName":"%b"},"request":{'
)
_TAIL: Final = (
    b',"connection":"%b:%d-%b-%d-%d","totalTimeMs":%.3f,"requestQueueTimeMs":%.3f,"localTimeMs":%.3f,'
    b'"remoteTimeMs":%.3f,"throttleTimeMs":%d,"responseQueueTimeMs":%.3f,"sendTimeMs":%.3f,"securityProtocol":'
    b'"SASL_PLAINTEXT","principal":"User:%b","listener":"%b","clientInformation":{"softwareName":"'
    b'confluent-kafka-python","softwareVersion":"2.16.1-rdkafka-2.16.0"}} (kafka.request.logger)\n'
)
_PRODUCE: Final = (
    b'"transactionalId":null,"acks":-1,"timeoutMs":30000,"topicData":[{"name":"%b","partitionData":[{"index":%d,'
    b'"recordsSizeInBytes":%d}]}]},"response":{"responses":[{"name":"%b","partitionResponses":[{"index":%d,"errorCode":0,'
    b'"baseOffset":%d,"logAppendTimeMs":-1,"logStartOffset":0,"recordErrors":[],"errorMessage":null}]}],'
    b'"throttleTimeMs":%d}'
)
_FETCH: Final = (
    b'"maxWaitMs":500,"minBytes":1,"maxBytes":52428800,"isolationLevel":1,"sessionId":0,"sessionEpoch":-1,"topics":'
    b'[{"topicId":"%b","partitions":[%b]}],"forgottenTopicsData":[],"rackId":""},"response":{"throttleTimeMs":%d,'
    b'"errorCode":0,"sessionId":0,"responses":[%b]}'
)
_ASKED: Final = (
    b'{"partition":%d,"currentLeaderEpoch":0,"fetchOffset":%d,"lastFetchedEpoch":-1,"logStartOffset":-1,'
    b'"partitionMaxBytes":1048576}'
)
_GIVEN: Final = (
    b'{"partitionIndex":%d,"errorCode":0,"highWatermark":%d,"lastStableOffset":%d,"logStartOffset":0,"abortedTransactions":'
    b'[],"preferredReadReplica":-1,"recordsSizeInBytes":%d}'
)
_HEARTBEAT: Final = (
    b'"groupId":"g-%b","generationId":1,"memberId":"%b-1ca4d26c-a952-4407-9635-7616870bb956","groupInstanceId":null},'
    b'"response":{"throttleTimeMs":%d,"errorCode":0}'
)
_CREATE: Final = (
    b'"topics":[{"name":"%b","numPartitions":%d,"replicationFactor":1,"assignments":[],"configs":[]}],"timeoutMs":60000,'
    b'"validateOnly":false},"response":{"throttleTimeMs":%d,"topics":[{"name":"%b","errorCode":0,"errorMessage":null}]}'
)
_DELETE: Final = (
    b'"topicNames":["%b"],"timeoutMs":60000},"response":{"throttleTimeMs":%d,"responses":[{"name":"%b","errorCode":0}]}'
)


class Call(NamedTuple):
    """One request and its answer, as far as they differ from others; times in ms, sizes in bytes."""

    second: bytes
    """Time of completion, as log4j writes it, to the second."""
    millisecond: int
    correlation_id: int
    broker: bytes
    """The broker's address."""
    peer: bytes
    """Address and port of the client."""
    user: bytes
    client_id: bytes
    topic: bytes
    """A topic, or the id of one in a Fetch."""
    partition: int
    size: int
    """Bytes of records, or partitions of a new topic."""
    throttle: int
    queue_time: float
    local_time: float
    remote_time: float
    response_time: float
    send_time: float


def produce(call: Call) -> bytes:
    """Return a Produce (version 10) of one partition."""
    topic, index = call.topic, call.partition
    offset = call.correlation_id
    body = (topic, index, call.size, topic, index, offset, call.throttle)
    return _line(call, 0, 10, b"PRODUCE", _PRODUCE % body)


def fetch(call: Call) -> bytes:
    """Return a Fetch (version 16) of three partitions, one of which has records; empty when it is throttled."""
    correlation_id = call.correlation_id
    requested = b",".join([_ASKED % (index, correlation_id) for index in range(3)])
    sizes = [call.size if index == call.partition else 0 for index in range(3)]
    fetched = b",".join([_GIVEN % (at_, correlation_id, correlation_id, size) for at_, size in enumerate(sizes)])
    answer = b'{"topicId":"%b","partitions":[%b]}' % (call.topic, fetched)
    answer = b"" if call.throttle else answer
    return _line(call, 1, 16, b"FETCH", _FETCH % (call.topic, requested, call.throttle, answer))


def heartbeat(call: Call) -> bytes:
    """Return a Heartbeat (version 3)."""
    body = (call.client_id, call.client_id, call.throttle)
    return _line(call, 12, 3, b"HEARTBEAT", _HEARTBEAT % body)


def create_topic(call: Call) -> bytes:
    """
    Return a CreateTopics (version 4) of one topic.

    The controller's line, and that of the broker that forwarded it.
    """
    body = _CREATE % (call.topic, call.size, call.throttle, call.topic)
    return _forwarded(call, 19, b"CREATE_TOPICS", body)


def delete_topic(call: Call) -> bytes:
    """Return a DeleteTopics (version 4) of one topic, likewise."""
    body = _DELETE % (call.topic, call.throttle, call.topic)
    return _forwarded(call, 20, b"DELETE_TOPICS", body)


def _forwarded(call: Call, key: int, name: bytes, body: bytes) -> bytes:
    controllers = _line(call, key, 4, name, body, forwarded=True)
    return controllers + _line(call, key, 4, name, body)


def _line(call: Call, key: int, version: int, name: bytes, body: bytes, *, forwarded: bool = False) -> bytes:
    mark = b"true" if forwarded else b"false"
    head = (*(call.second, call.millisecond, mark, key, version), *(call.correlation_id, call.client_id, name))
    return b"".join((_HEAD % head, body, _tail(call, forwarded=forwarded)))


def _tail(call: Call, *, forwarded: bool) -> bytes:
    port, listener = (9094, b"CONTROLLER") if forwarded else (9092, b"SASL")
    total = call.queue_time + call.local_time + call.remote_time + call.response_time + call.send_time
    return _TAIL % (
        *(call.broker, port, call.peer, 0, call.correlation_id % 8),
        *(total, call.queue_time, call.local_time, call.remote_time),
        *(call.throttle, call.response_time, call.send_time, call.user, listener),
    )
