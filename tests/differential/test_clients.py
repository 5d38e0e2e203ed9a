"""Kafka's network layer and its response classes against our throttled clients."""

from tests.differential.budget import Budget, marks
from tests.differential.choice import Choice
from tests.differential.drive import Subject, drive_seeded, drive_shrinkable
from tests.differential.kafka import Kafka
from tests.differential.operation import Operation
from tests.differential.wire import flag
from tests.strategies import EPOCH_MS

from quotascope.clients.throttling import (
    ClientConnection,
    client_waits,
    has_throttle_time,
    least_loaded,
)
from quotascope.metrics import KAFKA_4_4, KafkaRelease
from quotascope.metrics.protocol import ApiKey

pytestmark = marks()
SHARE = 0.05
BEYOND = 200
"""No API has a number as high."""
APIS = (
    (ApiKey.PRODUCE, 3, 13),
    (ApiKey.FETCH, 4, 17),
    (ApiKey.METADATA, 3, 13),
    (ApiKey.CREATE_TOPICS, 2, 7),
    (ApiKey.HEARTBEAT, 1, 4),
    (ApiKey.OFFSET_DELETE, 0, 0),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1),
)
"""Some that wait from a version on, one that always does, one that never does; with the versions that have the field."""


class ClientTwin:
    """Our connection behind the operations of `java/ClientSession.java`."""

    def __init__(self, release: KafkaRelease) -> None:
        self._now_ms = EPOCH_MS
        self._connection = ClientConnection(release=release)
        self._unanswered: list[tuple[ApiKey, int]] = []

    def step(self, ms: int) -> None:
        """Let time pass, or go back."""
        self._now_ms += ms

    def send(self, api: int, version: int, timeout_ms: int) -> str:
        """Send a request, if that is allowed."""
        if not self._connection.ready(self._now_ms):
            return self._state("throttled")
        self._connection.sent(timeout_ms, self._now_ms)
        self._unanswered.append((ApiKey(api), version))
        return self.poll()

    def answer(self, throttle_ms: int) -> str:
        """Answer the oldest request."""
        if not self._unanswered:
            return self._state("none")
        api, version = self._unanswered.pop(0)
        self._connection.received(api, version, throttle_ms, self._now_ms)
        return self.poll()

    def poll(self) -> str:
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
    """Draw what happens next, mostly a little later."""
    step_ms = choice.of((0, 1, 10, 90, 100, 101, 1_000, 10_000, -50))
    match choice.integer(0, 4):
        case 0 | 1:
            api, first, last = choice.of(APIS)
            timeout_ms = choice.of((100, 0, 1, 1_000, 30_000))
            arguments = (int(api), choice.integer(first, last), timeout_ms)
            return Operation("send", step_ms, arguments)
        case 2 | 3:
            return Operation("answer", step_ms, (choice.of((0, 100, 1, 10, 200, 5_000, -1)),))  # fmt: skip
        case _:
            return Operation("poll", step_ms)


def shape(_choice: Choice) -> None:
    """Nothing stays the same."""


def opening(_shape: None) -> str:
    """The line that creates Kafka's side."""
    return f"new client {EPOCH_MS}"


def clients(release: KafkaRelease) -> Subject[None]:
    """The subject, as a release of Kafka is."""
    return Subject(
        name="clients",
        shape=shape,
        opening=opening,
        twin=lambda _: ClientTwin(release),
        operation=operation,
    )


def test_short_sessions(kafka: Kafka, budget: Budget) -> None:
    """However requests, answers and time follow one another, a connection waits, is ready and times out when Kafka's does."""
    drive_shrinkable(kafka, budget, clients(kafka.release), budget.shrinkable(SHARE))


def test_long_sessions(kafka: Kafka, budget: Budget) -> None:
    """The same over up to a thousand operations."""
    drive_seeded(kafka, budget, clients(kafka.release), budget.seeded(SHARE))


def asked(kafka: Kafka, operations: list[Operation]) -> list[str]:
    """Kafka's answers about its responses."""
    kafka.send(["new responses", *(each.line() for each in operations)])
    return kafka.receive()[1:]


def known(kafka: Kafka) -> dict[str, int]:
    """Number of every API that a release has, by its name."""
    names = asked(kafka, [Operation("name", 0, (number,)) for number in range(BEYOND)])
    return {name: number for number, name in enumerate(names) if name != "none"}


def test_no_api_is_missing(kafka: Kafka) -> None:
    """Every API of Kafka is known by its name and number, and no other but those that came with 4.4."""
    ours = {api.name: api.value for api in ApiKey}
    if kafka.release < KAFKA_4_4:
        del ours["STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE"]
        del ours["UNREGISTER_CONTROLLER"]
    assert ours == known(kafka)


def test_every_version_of_every_response(kafka: Kafka) -> None:
    """For all APIs, the same versions make the client wait, and those without a throttle time in any version have none."""
    apis = [ApiKey(number) for number in known(kafka).values()]
    ranges = asked(kafka, [Operation("versions", 0, (int(api),)) for api in apis])
    responses = [
        (api, version)
        for api, (low, high) in zip(apis, map(str.split, ranges), strict=True)
        for version in range(int(low), int(high) + 1)
    ]
    answers = asked(
        kafka, [Operation("response", 0, (int(api), version)) for api, version in responses]
    )  # fmt: skip
    fields = dict.fromkeys(apis, False)
    for (api, version), answer in zip(responses, answers, strict=True):
        field, waits = answer.split()
        fields[api] |= field == "1"
        ours = flag(client_waits(api, version, kafka.release))
        assert (api, version, waits) == (api, version, ours)
    assert fields == {api: has_throttle_time(api) for api in apis}
    assert len(responses) > len(apis)
