"""
Kafka's network layer and its response classes against our throttled clients.

However requests, answers and time follow one another, a connection waits, is ready and times out when Kafka's does.
"""

from tests.differential.choice import Choice
from tests.differential.comparison import Operation, Twin
from tests.differential.drive import Subject, nothing
from tests.differential.wire import flag
from tests.strategies import EPOCH_MS

from quotascope.clients.throttling import ClientConnection, least_loaded
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import KafkaRelease

APIS = (
    (ApiKey.PRODUCE, 3, 13),
    (ApiKey.FETCH, 4, 17),
    (ApiKey.METADATA, 3, 13),
    (ApiKey.CREATE_TOPICS, 2, 7),
    (ApiKey.HEARTBEAT, 1, 4),
    (ApiKey.OFFSET_DELETE, 0, 0),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1),
)
"""
Some that wait from a version on, one that always does, one that never does; with the versions that have the field.
"""


class ClientTwin(Twin):
    """Our connection behind the operations of `java/ClientSession.java`."""

    def __init__(self, release: KafkaRelease) -> None:
        super().__init__(EPOCH_MS)
        self._connection = ClientConnection(release=release)
        self._unanswered: list[tuple[ApiKey, int]] = []

    def _op_send(self, api: int, version: int, timeout_ms: int) -> str:
        if not self._connection.ready(self._now_ms):
            return self._state("throttled")
        self._connection.sent(timeout_ms, self._now_ms)
        self._unanswered.append((ApiKey(api), version))
        return self._op_poll()

    def _op_answer(self, throttle_ms: int) -> str:
        if not self._unanswered:
            return self._state("none")
        api, version = self._unanswered.pop(0)
        self._connection.received(api, version, throttle_ms, self._now_ms)
        return self._op_poll()

    def _op_poll(self) -> str:
        """Let the client look at its timeouts, and connect again when it gave up."""
        if not self._connection.timed_out(self._now_ms):
            return self._state("ok")
        self._connection.disconnected()
        self._unanswered.clear()
        return self._state("lost")

    def _state(self, answer: str) -> str:
        connection, now_ms = self._connection, self._now_ms
        parts = (
            flag(connection.ready(now_ms)),
            connection.throttle_delay_ms(now_ms),
            connection.poll_delay_ms(now_ms),
            connection.in_flight,
            flag(least_loaded({0: connection}, now_ms) is not None),
        )
        return " ".join((answer, *map(str, parts)))


def operation(choice: Choice, _shape: None) -> Operation:
    step_ms = choice.of((0, 1, 10, 90, 100, 101, 1_000, 10_000, -50))
    match choice.integer(0, 4):
        case 0 | 1:
            api, first_version, last_version = choice.of(APIS)
            timeout_ms = choice.of((100, 0, 1, 1_000, 30_000))
            arguments = (int(api), choice.integer(first_version, last_version), timeout_ms)
            return Operation("send", step_ms, arguments)
        case 2 | 3:
            return Operation("answer", step_ms, (choice.of((0, 100, 1, 10, 200, 5_000, -1)),))
        case _:
            return Operation("poll", step_ms)


SUBJECT = Subject(
    name="clients",
    share=0.05,
    shape=nothing,
    opening=lambda _: f"new client {EPOCH_MS}",
    twin=lambda _, release: ClientTwin(release),
    operation=operation,
)
