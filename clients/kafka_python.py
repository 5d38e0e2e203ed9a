"""
The adapter to kafka-python 3.0: the only file that imports `kafka`.

It speaks in the library's protocol classes through one private call, `admin._manager.run(admin._manager.send, request)`,
because 3.0.12 has no public method for client quotas, and its public `describe_configs` hides a missing permission behind an
empty answer. `tests/clients/test_kafka_python.py` fails when a new version moves what is used here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, cast

import kafka
from kafka.errors import KafkaError, KafkaTimeoutError, RequestTimedOutError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import get_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
)
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.version import __version__

from quotascope.metrics import KafkaRelease
from quotascope.metrics.protocol import ErrorCode

from . import answers
from .diagnosis import Exchange, diagnose
from .errors import AdminRequestFailed, AdminTimeout, AdminUnreachable, ClientError, UnsupportedByLibrary
from .library_log import LibraryLog
from .login import check_login, ticket_missing
from .quota_admin import (
    BrokerSettings,
    ClusterDescription,
    ConfiguredQuota,
    Entity,
    QuorumVoters,
    QuotaChange,
    RegisteredBrokers,
)
from .reach import check_reachable, combined
from .security import BearerTokens, Connection, Sasl, SaslMechanism

_FIRST_ATTEMPT_SECONDS: Final = 1.0
_MOST_ASKED: Final = 4
"""How many brokers are asked, one after the other, for an answer that any of them can give."""
_ONE_NODE_SECONDS: Final = 1.0
"""How long one broker is waited for before another one is asked what any broker can answer."""
_NO_ANSWER: Final = (KafkaTimeoutError, RequestTimedOutError)
_BROKER: Final = 4  # ConfigResource.Type.BROKER


class KafkaPythonAdmin:
    """The part of the Admin API that quotas need, by kafka-python. `QuotaAdmin` describes the methods."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._username = (connection.sasl.username or None) if connection.sasl else None
        self._lock = threading.Lock()
        self._admin: kafka.KafkaAdminClient | None = None
        self._closed = False
        self._answered: int | None = None
        """The broker that answered last what any broker can."""

    def describe_quotas(self) -> tuple[ConfiguredQuota, ...]:
        """Every configured quota."""
        answer = self._ask("DescribeClientQuotas", lambda: DescribeClientQuotasRequest(components=[], strict=False))
        return answers.quotas(answer)

    def describe_cluster(self) -> ClusterDescription:
        """The cluster and its brokers."""
        found = answers.cluster(self._ask("DescribeCluster", DescribeClusterRequest))
        return replace(found, release=self._release())

    def _release(self) -> str:
        manager = getattr(self._admin, "_manager", None)
        version = getattr(manager, "broker_version", None) or ()
        return ".".join(map(str, version))

    def describe_release(self) -> KafkaRelease | None:
        """The release of the broker that answers."""
        answer = self._ask("ApiVersions", _features_request)
        return answers.release(answer)

    def describe_brokers(self) -> RegisteredBrokers:
        """The brokers, with those that are down where the cluster reports them."""
        answer = self._ask("DescribeCluster", lambda: DescribeClusterRequest(include_fenced_brokers=True))
        return answers.brokers(answer)

    def describe_voters(self) -> QuorumVoters:
        """The controllers of the quorum, none when there is no quorum."""
        answer = self._quorum()
        if answer is None:
            return QuorumVoters(node_ids=(), nodes=())
        return answers.quorum_voters(answer)

    def describe_all_settings(
        self, node_ids: Collection[int], patience_seconds: float
    ) -> dict[int, BrokerSettings | ClientError]:
        """The settings of several brokers, asked side by side, and an error for each that does not give them."""
        seconds = min(patience_seconds, self._connection.timeout_seconds)
        with self._lock:
            manager = _manager(self._connected())

            async def all_of_them() -> dict[int, BrokerSettings | ClientError]:
                deadline = time.monotonic() + seconds
                if not {broker.node_id for broker in manager.cluster.brokers()}.issuperset(node_ids):
                    # the library looks every five minutes only, and a broker was new or down when it did last
                    look = manager.call_soon(manager.cluster.refresh_metadata)
                    with suppress(KafkaError):
                        await manager.wait_for(look, _ONE_NODE_SECONDS * 1000)

                async def one(node_id: int) -> BrokerSettings | ClientError:
                    found: dict[str, str | None] = {}
                    keys: Sequence[str] = answers.SETTINGS
                    while keys:
                        request = _configs_request(node_id, keys)
                        answer = await _sent(manager, request, node_id, deadline)
                        try:
                            some = self._configs_in(answer, seconds)
                        except ClientError as error:
                            return error
                        keys = () if found else answers.listener_rate_keys(some)
                        found |= some
                    return answers.settings(node_id, found)

                asked = {each: manager.call_soon(one, each) for each in node_ids}
                return {node_id: await answer for node_id, answer in asked.items()}

            settings: dict[int, BrokerSettings | ClientError] = manager.run(all_of_them)
            return settings

    def _configs_in(self, answer: answers.Answer | KafkaError, seconds: float) -> dict[str, str | None]:
        if isinstance(answer, _NO_ANSWER):
            raise AdminTimeout("DescribeConfigs", seconds)
        if isinstance(answer, KafkaError):
            raise AdminRequestFailed("DescribeConfigs", getattr(answer, "errno", None), str(answer))
        answers.check("DescribeConfigs", answer, self._username)
        return answers.configs(answer)

    def describe_quorum_leader(self) -> int | None:
        """The active controller, or None when there is no quorum."""
        answer = self._quorum()
        return None if answer is None else answers.quorum_leader(answer)

    def _quorum(self) -> answers.Answer | None:
        try:
            return self._ask("DescribeQuorum", _quorum_request)
        except AdminRequestFailed as error:
            if error.code == ErrorCode.UNSUPPORTED_VERSION:
                return None
            raise

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        """Set and remove quotas."""
        groups = answers.by_entity(changes)
        if groups:
            self._ask("AlterClientQuotas", lambda: _alter_request(groups))

    def close(self) -> None:
        """End the connection, and with it a call under way."""
        self._closed = True
        self._disconnect()

    def _ask(self, name: str, request: Callable[[], ApiMessage]) -> answers.Answer:
        with self._lock:
            try:
                answer = self._send(request)
            except KafkaError as error:
                self._forget_unless_refused(name, error)
                answer = self._ask_again(name, request)
            except Exception:
                self._disconnect()  # its state is unknown
                raise
        answers.check(name, answer, self._username)
        return answer

    def _ask_again(self, name: str, request: Callable[[], ApiMessage]) -> answers.Answer:
        """A lost connection is no reason to fail: the broker may have restarted since the last call."""
        try:
            return self._send(request)
        except KafkaError as error:
            self._forget_unless_refused(name, error)
            raise AdminUnreachable(self._connection.bootstrap_servers, str(error)) from error

    def _forget_unless_refused(self, name: str, error: KafkaError) -> None:
        """Drop the connection after an error of the connection; raise every other error as ours."""
        if not error.retriable:
            raise AdminRequestFailed(name, getattr(error, "errno", None), str(error)) from error
        self._disconnect()
        if isinstance(error, _NO_ANSWER):
            servers = ", ".join(self._connection.bootstrap_servers)
            raise AdminTimeout(f"{name} of Kafka at {servers}", self._connection.timeout_seconds) from error

    def _send(self, request: Callable[[], ApiMessage]) -> answers.Answer:
        admin = self._connected()
        message = request()
        if isinstance(message, AlterClientQuotasRequest):
            return private_send(admin, message)
        # One broker that hangs must not hide what the others know: each but the last is waited for a moment only.
        for other in _candidates(admin, self._answered)[:-1]:
            manager = _manager(admin)
            deadline = time.monotonic() + _ONE_NODE_SECONDS
            answer = manager.run(_sent, manager, request(), other, deadline)
            if not isinstance(answer, KafkaError):
                self._answered = other
                return cast("answers.Answer", answer)
        last = _candidates(admin, self._answered)[-1:]
        return private_send(admin, message, last[0] if last else None)

    def _connected(self) -> kafka.KafkaAdminClient:
        if self._closed:
            raise AdminUnreachable(self._connection.bootstrap_servers, "this client was closed")
        if self._admin is None:
            self._admin = connect(self._connection)
        return self._admin

    def _disconnect(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()


def _manager(admin: kafka.KafkaAdminClient) -> KafkaConnectionManager:
    manager: KafkaConnectionManager | None = getattr(admin, "_manager", None)
    if manager is None or not (hasattr(manager, "run") and hasattr(manager, "send")):
        raise UnsupportedByLibrary("kafka-python", __version__, "admin._manager.run and send")
    return manager


def _candidates(admin: kafka.KafkaAdminClient, first: int | None) -> list[int]:
    """The brokers to ask, in this order: the one that answered last, those that are connected, the others."""
    manager = _manager(admin)
    ids = [broker.node_id for broker in manager.cluster.brokers()]
    connected = {conn.node_id for conn in manager.least_used_connections()}
    return sorted(ids, key=lambda each: (each != first, each not in connected))[:_MOST_ASKED]


async def _sent(
    manager: KafkaConnectionManager, request: ApiMessage, node_id: int, deadline: float
) -> answers.Answer | KafkaError:
    """The answer of one broker until then (steady time in seconds), or why there is none."""
    left = max(0.0, deadline - time.monotonic())
    try:
        future = manager.send(request, node_id)
        answer: answers.Answer = (await manager.wait_for(future, left * 1000)).to_dict()
    except KafkaError as error:
        return error
    return answer


def private_send(admin: kafka.KafkaAdminClient, request: ApiMessage, node_id: int | None = None) -> answers.Answer:
    """
    Send one request, to one broker or to any, and wait for the answer: the private call.

    Raises `UnsupportedByLibrary` when the library has changed inside, and `KafkaError`.
    """
    manager = _manager(admin)
    answer: answers.Answer = manager.run(manager.send, request, node_id).to_dict()
    return answer


def connect(
    connection: Connection, make: Callable[..., kafka.KafkaAdminClient] = kafka.KafkaAdminClient
) -> kafka.KafkaAdminClient:
    """
    A connected client of the library, or of another kind that `make` gives for its configuration.

    Raises `AdminUnreachable`, `TlsFailed`, `CredentialsUnavailable`, `AuthenticationFailed` or `AdminTimeout`. The library itself tries a wrong password
    again and again until its time is over; here one attempt that fails is enough, and only silence is waited out.
    """
    check_reachable(connection)
    first = min(_FIRST_ATTEMPT_SECONDS, connection.timeout_seconds)
    left = list(connection.bootstrap_servers)
    failures: list[AdminUnreachable] = []
    # The library would spend all of the time on the first server that it chooses, even if that one hangs.
    for server in connection.bootstrap_servers[:_MOST_ASKED]:
        try:
            admin = _attempt(connection, (server,), make, first)
        except AdminUnreachable as failure:
            failures.append(failure)
            left.remove(server)
        else:
            if admin is not None:
                return admin
    if left:
        try:
            admin = _attempt(connection, left, make, connection.timeout_seconds)
        except AdminUnreachable as failure:
            failures.append(failure)
        else:
            if admin is not None:
                return admin
            if not failures:
                servers = ", ".join(connection.bootstrap_servers)
                raise AdminTimeout(f"connecting to Kafka at {servers}", connection.timeout_seconds)
            reason = f"no answer within {connection.timeout_seconds:g} s"
            failures.append(AdminUnreachable(left, reason))
    raise combined(connection, failures)


def _attempt(
    connection: Connection, servers: Sequence[str], make: Callable[..., kafka.KafkaAdminClient], seconds: float
) -> kafka.KafkaAdminClient | None:
    """A client of one of these servers, None when they are silent. Raises what keeps us out."""
    if connection.sasl is not None:
        check_login(connection.sasl, connection.timeout_seconds)
    tried = replace(connection, bootstrap_servers=tuple(servers))
    log = LibraryLog("kafka")
    log.install()
    try:
        return _bootstrap(tried, make, seconds)
    except KafkaError as error:
        for complaint in log.complaints:
            if isinstance(complaint, ClientError):
                raise complaint from None  # there was no token any more
            if type(complaint).__module__.startswith("gssapi."):
                raise ticket_missing(complaint) from None
            if not isinstance(complaint, _NO_ANSWER):
                begin = partial(_exchange, tried)
                raise diagnose(tried, str(complaint), begin) from error
    return None


def _exchange(connection: Connection, sasl: Sasl, host: str) -> Exchange:
    """The library's side of a SASL mechanism, at its beginning."""
    mechanism = get_sasl_mechanism(sasl.mechanism.on_the_wire)
    configs = _sasl_configs(sasl, connection.timeout_seconds)
    exchange: Exchange = mechanism(host=host, **configs)
    return exchange


def _bootstrap(
    connection: Connection, make: Callable[..., kafka.KafkaAdminClient], seconds: float
) -> kafka.KafkaAdminClient:
    """One attempt; what it has started is stopped when it fails, which the library leaves undone."""
    started: list[KafkaNetClient] = []

    def start(**configs: object) -> KafkaNetClient:
        started.append(KafkaNetClient(**configs))
        return started[0]

    try:
        return make(**_configs(connection, seconds), kafka_client=start)
    except BaseException:
        for client in started:
            client.close()
        raise


def _configs(connection: Connection, seconds: float) -> dict[str, object]:
    pause = int(connection.timeout_seconds * 1000) + 1  # longer than an attempt: no second try within it
    return {
        "bootstrap_servers": list(connection.bootstrap_servers),
        "client_id": connection.client_id,
        "security_protocol": connection.protocol.value,
        "ssl_context": connection.tls.context() if connection.protocol.uses_tls else None,
        "bootstrap_timeout_ms": int(seconds * 1000),
        "request_timeout_ms": int(connection.timeout_seconds * 1000),
        "reconnect_backoff_ms": pause,
        "reconnect_backoff_max_ms": pause,
        **_sasl_configs(connection.sasl, connection.timeout_seconds),
    }


def _sasl_configs(sasl: Sasl | None, seconds: float) -> dict[str, object]:
    """What the library needs for a login; fetching a token takes about ``seconds`` at most."""
    if sasl is None:
        return {}
    mechanism = {"sasl_mechanism": sasl.mechanism.on_the_wire}
    if sasl.tokens is not None:
        return {**mechanism, "sasl_oauth_token_provider": _Provider(sasl.tokens, seconds)}
    if sasl.kerberos is not None:
        return {**mechanism, "sasl_kerberos_service_name": sasl.kerberos.service_name}
    username = sasl.username
    if sasl.mechanism is not SaslMechanism.PLAIN:  # RFC 5802, which the library leaves to its caller
        username = username.replace("=", "=3D").replace(",", "=2C")
    return {
        **mechanism,
        "sasl_plain_username": username,
        "sasl_plain_password": sasl.password.reveal(),
    }


class _Provider(AbstractTokenProvider):
    """Our tokens as the library asks for them: for each connection, and before a session ends (KIP-368)."""

    def __init__(self, tokens: BearerTokens, seconds: float) -> None:
        self._tokens = tokens
        self._seconds = seconds

    def token(self) -> str:
        """A token that has not expired."""
        return self._tokens.current(self._seconds).reveal()


def _features_request() -> ApiMessage:
    return ApiVersionsRequest(client_software_name="kafka-python", client_software_version=__version__, min_version=3)


def _configs_request(node_id: int, keys: Sequence[str]) -> ApiMessage:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(node_id), configuration_keys=list(keys)
    )
    return DescribeConfigsRequest(resources=[resource])


def _quorum_request() -> ApiMessage:
    topic = DescribeQuorumRequest.TopicData
    partitions = [topic.PartitionData(partition_index=0)]
    return DescribeQuorumRequest(topics=[topic(topic_name="__cluster_metadata", partitions=partitions)])


def _alter_request(groups: Sequence[tuple[Entity, list[QuotaChange]]]) -> ApiMessage:
    entry = AlterClientQuotasRequest.EntryData
    entries = [
        entry(
            entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            ops=[entry.OpData(key=op.key, value=op.value or 0.0, remove=op.value is None) for op in ops],
        )
        for entity, ops in groups
    ]
    return AlterClientQuotasRequest(entries=entries, validate_only=False)
