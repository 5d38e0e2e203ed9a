import inspect
import threading
from contextlib import suppress
from functools import partial
from typing import Any, cast
from uuid import uuid4

import kafka
import pytest
from kafka import errors
from kafka.protocol.admin import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse

from quotascope.clients import AdminRequestFailed, AdminTimeout, AdminUnreachable, ClientError, MutationThrottled
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.throttled_admin.counted import counted
from quotascope.clients.throttled_admin.kafka_python import ThrottleAwareAdmin
from quotascope.clients.throttled_admin.outcomes import QuotaExceeded, TopicOutcomes
from quotascope.clients.throttling import ApiError, MutationAnswer

PUBLIC = ("create_topics", "delete_topics", "create_partitions")


@pytest.mark.parametrize("name", PUBLIC)
def test_the_library_still_has_what_is_overridden(name: str) -> None:
    """A version of kafka-python without this inside breaks the client: pin another one, or change it."""
    library = getattr(kafka.KafkaAdminClient, name)
    assert (
        "self._manager.run(self._send_request_to_controller, request, response_errors, raise_errors)"
        in inspect.getsource(library)
    )
    theirs, ours = (
        [(parameter.name, parameter.default) for parameter in inspect.signature(method).parameters.values()]
        for method in (library, getattr(ThrottleAwareAdmin, name))
    )
    assert ours == [*theirs, ("retry_on_quota_violation", True)]


class Scripted(ThrottleAwareAdmin):
    """A client without a network: throttle times with codes of topics, or errors, come from a list."""

    def __init__(self, *script: Any) -> None:
        self.account = ThrottleAccount()
        self._turn = threading.Lock()
        self._answered = (0, 0)
        self._throttles = self.account.client("", "topics", "admin")
        self._script = list(script)
        self.config = {"request_timeout_ms": 30_000, "bootstrap_servers": "broker:9092"}
        self.sent: list[list[str]] = []
        self.raises: set[bool] = set()
        """Whether the library was asked to raise errors itself."""
        self._manager = cast("Any", self)

    broker_version = (4, 3)

    def run(self, _send: Any, request: Any, *arguments: Any) -> Any:
        """Return the next answer of the list, or raise the next error, in place of the library's event loop."""
        self.sent.append([topic.name for topic in request.topics])
        self.raises.add(arguments[-1])
        event = self._script.pop(0)
        if isinstance(event, Exception):
            raise event
        throttle_ms, codes = event
        self._answered = (7, throttle_ms)
        response, kind, key = RESPONSES[type(request).__name__]
        entries = [kind(name=name, error_code=code, error_message=None) for name, code in codes.items()]
        return response(throttle_time_ms=throttle_ms, **{key: entries})

    @property
    def retries(self) -> int:
        return self.account.totals()[0].quota_retries


RESPONSES: dict[str, Any] = {
    "CreateTopicsRequest": (
        partial(CreateTopicsResponse, version=7),
        CreateTopicsResponse.CreatableTopicResult,
        "topics",
    ),
    "DeleteTopicsRequest": (
        partial(DeleteTopicsResponse, version=6),
        DeleteTopicsResponse.DeletableTopicResult,
        "responses",
    ),
    "CreatePartitionsRequest": (
        partial(CreatePartitionsResponse, version=3),
        CreatePartitionsResponse.CreatePartitionsTopicResult,
        "results",
    ),
}
NewTopic: Any = vars(kafka.admin)["NewTopic"]


@pytest.mark.parametrize(
    ("call", "topics"),
    [
        ("create_topics", ["a", "b"]),
        ("create_topics", {"a": {}, "b": {"num_partitions": 3}}),
        ("create_topics", [NewTopic(name, 1, 1) for name in ("a", "b")]),
        ("delete_topics", ["a", "b"]),
        ("create_partitions", {"a": 2, "b": 3}),
    ],
)
def test_only_what_was_refused_is_sent_again(call: str, topics: Any) -> None:
    """
    Refused topics are sent again in each of the shapes that the library takes.

    An error in the answer is not the library's to raise.
    """
    admin = Scripted((1, {"a": 0, "b": 89}), (0, {"b": 0}))
    result = getattr(admin, call)(topics)
    entries = (
        [result_entry.to_dict() for result_entry in result.results] if call == "create_partitions" else result["topics"]
    )
    assert [(entry["name"], entry["error_code"]) for entry in entries] == [("a", 0), ("b", 0)]
    assert admin.sent == [["a", "b"], ["b"]]
    assert admin.raises == {False}
    assert admin.retries == 1


def test_a_lost_connection_is_tried_again() -> None:
    """A request without an answer is retried as well, until the call has no time left."""
    admin = Scripted(errors.NodeNotReadyError("paused"), (0, {"a": 0}))
    assert admin.create_topics(["a"])["topics"][0]["error_code"] == 0
    assert admin.retries == 0


def test_an_error_that_stays_is_raised_as_it_is() -> None:
    """The library's own error is raised at once, and a topic's error in the end, unless the call suppresses it."""
    with pytest.raises(errors.ClusterAuthorizationFailedError):
        Scripted(errors.ClusterAuthorizationFailedError("no")).create_topics(["a"])
    unknown = (0, {"a": 3})  # UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        Scripted(unknown).delete_topics(["a"])
    (reported,) = Scripted(unknown).delete_topics(["a"], raise_errors=False)["topics"]
    assert reported["error_code"] == 3


def test_the_other_topics_keep_their_results() -> None:
    """A caller that asks not to raise errors gets all results when the time is over."""
    admin = Scripted((5_000, {"a": 0, "b": 89}))
    created, refused = admin.create_topics(["a", "b"], 200, raise_errors=False)["topics"]
    assert (created["error_code"], refused["error_code"]) == (0, 89)
    assert 0 < refused["throttle_time_ms"] <= 5_000


def test_wrong_arguments_are_the_librarys_to_report() -> None:
    """No topics at all, and a wait for topics that will not exist, are errors of the library."""
    with pytest.raises(ValueError, match="No valid topics"):
        Scripted().create_topics([])
    with pytest.raises(ValueError, match="exclude each other"):
        Scripted().create_topics(["a"], validate_only=True, wait_for_metadata=True)


THROTTLED = MutationThrottled("CREATE_TOPICS", 1_340, None)
LATE = AdminTimeout("CREATE_TOPICS", 60)


def entry(name: str | None, code: int = 0, **fields: Any) -> dict[str, Any]:
    return {"name": name, "error_code": code, "error_message": None, **fields}


def test_each_topic_has_its_last_word() -> None:
    """Each topic has its last answer, in the order of the request, with the rest of the throttle time."""
    outcomes = TopicOutcomes(["a", "b", "c"])
    errors = outcomes.answered([entry("c", 89), entry("a"), entry("b", 89)])
    assert errors == {"a": None, "b": ApiError(89), "c": ApiError(89)}
    assert outcomes.answered([entry("b"), entry("c", 89)])["b"] is None
    results: dict[Any, ClientError | None] = {"a": None, "b": None, "c": THROTTLED}
    assert outcomes.entries(results, raise_errors=False) == [
        entry("a"),
        entry("b"),
        entry("c", 89, throttle_time_ms=1_340),
    ]


def test_a_topic_asked_for_by_id_is_known_by_it() -> None:
    """The response reports its name as well, or not when that is a secret."""
    named, secret = uuid4(), uuid4()
    outcomes = TopicOutcomes([named, secret])
    answer = [entry("b", topic_id=str(named)), entry(None, 29, topic_id=str(secret))]
    assert outcomes.answered(answer) == {named: None, secret: ApiError(29)}


def test_a_topic_without_an_answer_has_an_entry() -> None:
    """The entry has the error of the call."""
    outcomes = TopicOutcomes(["a", "b"])
    missing = AdminRequestFailed("CREATE_TOPICS", None, "the answer leaves it out")
    late, lost = outcomes.entries({"a": LATE, "b": missing}, raise_errors=False)
    assert (late["error_code"], lost["error_code"]) == (7, -1)
    assert late["error_message"] == "CREATE_TOPICS: no answer within 60 s"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (THROTTLED, QuotaExceeded),
        (LATE, errors.KafkaTimeoutError),
        (AdminRequestFailed("CREATE_TOPICS", 36, "exists"), errors.TopicAlreadyExistsError),
        (AdminRequestFailed("CREATE_TOPICS", None, "missing"), errors.UnknownError),
    ]
)  # fmt: skip
def test_errors_are_the_librarys(error: ClientError, raised: type[Exception]) -> None:
    """The error is the library's for the first topic that failed. A refusal is also ours, with the time to wait."""
    outcomes = TopicOutcomes(["a", "b"])
    with pytest.raises(raised) as caught:
        outcomes.entries({"a": None, "b": error}, raise_errors=True)
    assert caught.value.__cause__ is error
    if isinstance(caught.value, QuotaExceeded):
        assert isinstance(caught.value, errors.ThrottlingQuotaExceededError)
        assert isinstance(caught.value, MutationThrottled)
        assert (caught.value.throttle_time_ms, caught.value.errno, caught.value.retriable) == (1_340, 89, True)
        assert "wait 1340 ms" in str(caught.value)


REFUSED = ApiError(89)


def test_only_what_follows_a_refusal_is_a_retry() -> None:
    """A request that is repeated because the connection was lost is not counted once more."""
    client = ThrottleAccount().client("", "topics", "admin")
    lost = AdminUnreachable(["broker:9092"], "gone")
    events: list[ApiError | ClientError | None] = [lost, REFUSED, lost, REFUSED, None]

    def send(topics: tuple[str, ...], _: int) -> MutationAnswer[str]:
        event = events.pop(0)
        if isinstance(event, ClientError):
            raise event
        return MutationAnswer(version=7, throttle_time_ms=0, results={topics[0]: event})

    sending = counted(send, client)
    retries = []
    while events:
        with suppress(AdminUnreachable):
            sending(("a",), 100)
        retries.append(client.totals.quota_retries)
    assert retries == [0, 0, 1, 1, 2]
