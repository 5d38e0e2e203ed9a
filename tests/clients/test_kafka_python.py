"""The adapter over kafka-python, and what it needs of the library."""

import importlib.metadata
import inspect
import logging
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import kafka
import pytest
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    NodeNotReadyError,
    RequestTimedOutError,
)
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.admin import DescribeClusterRequest
from tests.integration.eventually import eventually

from quotascope.clients import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    Connection,
    LibraryMissing,
    QuotaChange,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
    UnsupportedByLibrary,
    kafka_python,
    open_quota_admin,
)
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.adapter import open_topic_admin
from quotascope.clients.kafka_python import KafkaPythonAdmin, connect, private_send

from .recorded import answer
from .servers import server, silent

CONNECTION = Connection(bootstrap_servers=("broker-1:9092",))
IMPATIENT = Connection(bootstrap_servers=("broker-1:9092",), timeout_seconds=3)


class Library:
    """A stand-in for `KafkaAdminClient` that gives its replies, or raises its errors, in order."""

    def __init__(self, script: list[Any]) -> None:
        self._manager = self
        self.cluster = self
        self.script = script
        self.sent: list[tuple[Any, int | None]] = []
        self.closed = False

    def brokers(self) -> list[Any]:
        """Return None, so that the library chooses the broker."""
        return []

    least_used_connections = brokers

    def send(self, request: Any, node_id: int | None) -> Any:
        self.sent.append((request, node_id))
        return self.script.pop(0)

    def run(self, call: Any, *arguments: Any) -> Any:
        """Return the reply, or raise the error, as the library does."""
        result = call(*arguments)
        if isinstance(result, Exception):
            raise result
        return SimpleNamespace(to_dict=lambda: result)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Library]]:
    """The clients of the next connections, first to last; each is removed when it is used."""
    prepared: list[Library] = []
    monkeypatch.setattr(kafka_python, "connect", lambda _: prepared.pop(0))
    yield prepared
    assert not prepared


def test_the_library_still_has_what_is_called_in_private() -> None:
    """A version of kafka-python without this inside breaks the adapter: pin another one, or change `private_send`."""
    client = object.__new__(kafka.KafkaAdminClient)
    with pytest.raises(UnsupportedByLibrary):
        private_send(client, DescribeClusterRequest())
    assert "self._manager = self._client._manager" in inspect.getsource(kafka.KafkaAdminClient.__init__)
    assert list(inspect.signature(KafkaConnectionManager.run).parameters) == ["self", "coro", "args"]
    assert list(inspect.signature(KafkaConnectionManager.send).parameters)[:3] == ["self", "request", "node_id"]
    assert "kafka_client" in kafka.KafkaAdminClient.DEFAULT_CONFIG


def test_each_request_is_read(libraries: list[Library]) -> None:
    """The answer to each request is read, over one connection."""
    names = ["quotas", "cluster", "cluster", "quorum", "quorum"]
    library = Library([answer(name) for name in names])
    libraries.append(library)
    admin = KafkaPythonAdmin(IMPATIENT)
    assert len(admin.describe_quotas()) == 7
    assert admin.describe_cluster().cluster_id == "cXVvdGFzY29wZS10ZXN0cw"
    assert [node.node_id for node in admin.describe_brokers().nodes] == [1]
    assert admin.describe_quorum_leader() == 1
    assert admin.describe_voters().node_ids == (1,)
    assert library.sent[2][0].include_fenced_brokers
    admin.close()
    assert library.closed


def test_changes_are_sent_as_one_entry_per_entity(libraries: list[Library]) -> None:
    """Changes of one entity are sent as one entry, in which a value of None removes a key."""
    library = Library([{"entries": []}])
    libraries.append(library)
    changes = [
        QuotaChange(entity={"user": "a"}, key="producer_byte_rate", value=1.0),
        QuotaChange(entity={"user": "a"}, key="consumer_byte_rate", value=None),
    ]
    KafkaPythonAdmin(IMPATIENT).alter_quotas(changes)
    (entry,) = library.sent[0][0].to_dict()["entries"]
    assert entry["entity"] == [{"entity_type": "user", "entity_name": "a"}]
    assert [(op["key"], op["value"], op["remove"]) for op in entry["ops"]] == [
        ("producer_byte_rate", 1.0, False),
        ("consumer_byte_rate", 0.0, True),
    ]


@pytest.mark.parametrize("lost", [KafkaConnectionError("reset"), NodeNotReadyError("No node_id provided")])
def test_a_lost_connection_is_made_again(libraries: list[Library], lost: Exception) -> None:
    """A broker that restarted since the last call is asked once more, on a new connection."""
    stale = Library([lost])
    libraries += [stale, Library([answer("cluster")])]
    assert KafkaPythonAdmin(IMPATIENT).describe_cluster().nodes
    assert stale.closed


@pytest.mark.parametrize(
    ("failures", "error", "words"),
    [
        (
            [KafkaConnectionError("reset"), KafkaConnectionError("reset again")],
            AdminUnreachable,
            "broker-1:9092: KafkaConnectionError: reset again",
        ),
        ([RuntimeError("event loop is closed")], RuntimeError, "event loop is closed"),
    ],
    ids=["lost twice", "defect"],
)
def test_the_call_after_a_failure_starts_afresh(
    libraries: list[Library], failures: list[Exception], error: type[Exception], words: str
) -> None:
    """A second lost connection, or an undocumented exception, is an error, and the next call connects again."""
    broken = [Library([failure]) for failure in failures]
    libraries += broken
    admin = KafkaPythonAdmin(IMPATIENT)
    with pytest.raises(error, match=words):
        admin.describe_cluster()
    assert all(library.closed for library in broken)
    libraries.append(Library([answer("cluster")]))
    assert admin.describe_cluster().nodes


def test_no_answer_is_not_waited_for_twice(libraries: list[Library]) -> None:
    """A request that timed out is reported at once, with its name and the time."""
    libraries.append(Library([RequestTimedOutError()]))
    with pytest.raises(AdminTimeout, match=r"DescribeClientQuotas of Kafka at .*: no answer within 3 s"):
        KafkaPythonAdmin(IMPATIENT).describe_quotas()


def test_an_old_cluster_has_no_quorum(libraries: list[Library]) -> None:
    """A broker that does not know DescribeQuorum has no active controller to report; any other failure is reported."""
    too_old = IncompatibleBrokerVersion("too old")
    libraries.append(Library([too_old, too_old, answer("quorum") | {"error_code": 6}]))
    admin = KafkaPythonAdmin(IMPATIENT)
    assert admin.describe_quorum_leader() is None
    assert admin.describe_voters().node_ids == ()
    with pytest.raises(AdminRequestFailed, match=r"\(error 6\)"):
        admin.describe_quorum_leader()


def test_a_closed_client_connects_no_more() -> None:
    """
    A client connects at its first call only, and no change asks nothing.

    A call after `close` opens no connection.
    """
    admin = open_quota_admin(CONNECTION)
    admin.alter_quotas([])
    admin.close()
    admin.close()
    with pytest.raises(AdminUnreachable, match="this client was closed"):
        admin.describe_quotas()


def test_silence_is_a_timeout_and_leaves_nothing_running(caplog: pytest.LogCaptureFixture) -> None:
    """
    A server that accepts and never answers is reported as a timeout.

    No thread is left, and nothing is logged or reported.
    """
    caplog.set_level(logging.DEBUG)
    threads_before = set(threading.enumerate())
    other_threads = {thread.ident for thread in threads_before - {threading.current_thread()}}
    sasl = Sasl(mechanism=SaslMechanism.PLAIN, username="alice", password=Secret("hunter2"))
    with server(silent) as address:
        settings = Connection(
            bootstrap_servers=(address,), protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl, timeout_seconds=0.3
        )
        with pytest.raises(
            AdminTimeout, match=r"connecting to Kafka at 127\.0\.0\.1:\d+: no answer within 0\.3 s"
        ) as caught:
            connect(settings)

    def nothing_runs() -> None:
        assert set(threading.enumerate()) <= threads_before

    eventually(nothing_runs)
    records = [record for record in caplog.records if record.thread not in other_threads]
    assert not [record for record in records if record.name.startswith("kafka")]
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.slow
@pytest.mark.parametrize("dead", [1, 5])
def test_servers_that_are_down_are_passed_over(dead: int) -> None:
    """One reachable broker of many is enough, wherever it is in the list; without any, each one's error is reported."""
    with server(silent) as address, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = f"127.0.0.1:{closed.getsockname()[1]}"
        settings = Connection(bootstrap_servers=(*[down] * dead, address), timeout_seconds=0.3)
        library: Any = Library([])

        def make(**configs: Any) -> Any:
            if address in configs["bootstrap_servers"]:
                return library
            return kafka.KafkaAdminClient(**configs)

        assert connect(settings, make) is library
        with pytest.raises(AdminUnreachable) as caught:
            connect(settings)
    assert "ECONNREFUSED" in str(caught.value)
    silence = f"{address}: no answer within 0.3 s"
    assert (silence in str(caught.value)) is (dead == 1)


def test_scram_names_are_escaped() -> None:
    """RFC 5802 gives `=` and `,` a meaning of their own in SCRAM, but not in PLAIN."""
    for mechanism, sent in [
        (SaslMechanism.PLAIN, "a=b,c"),
        (SaslMechanism.SCRAM_SHA_512, "a=3Db=2Cc"),
    ]:
        sasl = Sasl(mechanism=mechanism, username="a=b,c", password=Secret("x"))
        assert kafka_python._sasl_configs(sasl, 1)["sasl_plain_username"] == sent


ADAPTER = "quotascope.clients.kafka_python"
TOPICS = "quotascope.clients.throttled_admin.topics"


def without(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Make a module impossible to import, and the adapter not yet imported."""
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    monkeypatch.setitem(sys.modules, module, None)


def test_topics_need_the_library_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client connects at its first call; without kafka-python the error names the command that installs it."""
    open_topic_admin(CONNECTION, ThrottleAccount()).close()
    without(monkeypatch, "kafka")
    monkeypatch.delitem(sys.modules, TOPICS)
    with pytest.raises(LibraryMissing):
        open_topic_admin(CONNECTION, ThrottleAccount())


@pytest.mark.parametrize(
    ("module", "distribution", "error", "words"),
    [
        ("kafka", "kafka-python", LibraryMissing, "pip install kafka-python"),
        (
            "kafka.protocol.admin",
            "kafka-python",
            UnsupportedByLibrary,
            r"kafka-python 3\.\d+\.\d+ lacks something of kafka\.protocol\.admin",
        ),
        ("kafka.protocol.admin", "no such", UnsupportedByLibrary, r"kafka-python \(unknown version\) lacks"),
    ],
    ids=["missing", "too old", "something else that calls itself kafka"],
)  # fmt: skip
def test_a_library_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, distribution: str, error: type[Exception], words: str
) -> None:
    """The error about an unusable library has the command that installs it, or its version."""
    version = importlib.metadata.version
    without(monkeypatch, module)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version(distribution))
    with pytest.raises(error, match=words):
        open_quota_admin(CONNECTION)
