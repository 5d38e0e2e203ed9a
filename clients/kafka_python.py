"""
The adapter to kafka-python 3.0: the only file that imports `kafka`.

It speaks in the library's protocol classes through one private call, `admin._manager.run(admin._manager.send,
request)`, because 3.0.12 has no public method for client quotas, and its public `describe_configs` hides a missing
permission behind an empty answer. `tests/clients/test_kafka_python.py` fails when a new version moves what is used
here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar, cast

import kafka
from kafka.errors import KafkaError, KafkaTimeoutError, RequestTimedOutError, UnsupportedVersionError
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
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.version import __version__

from quotascope.metrics.kafka.release import KafkaRelease, ReleaseRange

from . import answers
from .diagnosis import Exchange, diagnose
from .errors import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    ClientError,
    UnsupportedByCluster,
    UnsupportedByLibrary,
)
from .library_log import LibraryLog
from .login import check_login, ticket_missing
from .quota_admin import (
    BrokerSettings,
    ClusterDescription,
    ConfigOrigin,
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
"""Number of brokers that are asked, one after the other, for an answer that any of them can give."""
_ONE_NODE_SECONDS: Final = 1.0
"""Longest wait for one broker before the next is asked for an answer that any broker can give."""
_NO_ANSWER: Final = (KafkaTimeoutError, RequestTimedOutError)
_BROKER: Final = 4  # ConfigResource.Type.BROKER
_Value = TypeVar("_Value")


class KafkaPythonAdmin:
    """The part of the Admin API that quotas need, by kafka-python. `QuotaAdmin` describes the methods."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._check = partial(
            answers.check,
            username=(connection.sasl.username or None) if connection.sasl else None,
            servers=connection.bootstrap_servers,
            is_secured=connection.protocol.is_secured,
        )
        self._lock = threading.Lock()
        self._admin: kafka.KafkaAdminClient | None = None
        self._closed = False
        self._last_node: int | None = None
        """The broker that last answered a request that any broker can answer."""

    def describe_quotas(self) -> tuple[ConfiguredQuota, ...]:
        """Return every configured quota."""
        answer = self._ask("DescribeClientQuotas", lambda: DescribeClientQuotasRequest(components=[], strict=False))
        return answers.quotas(answer)

    def describe_cluster(self) -> ClusterDescription:
        """Return the cluster and its brokers."""
        return answers.cluster(self._cluster(DescribeClusterRequest))

    def _cluster(self, request: Callable[[], ApiMessage]) -> answers.Answer:
        """Return the answer to DescribeCluster, or, before Kafka 2.8, to Metadata, which has the same fields."""
        try:
            return self._ask("DescribeCluster", request)
        except UnsupportedByCluster:
            return self._ask("Metadata", lambda: MetadataRequest(topics=[]))

    def describe_release(self) -> KafkaRelease | None:
        """Return the release of the broker that answers."""
        answer = self._ask("ApiVersions", _features_request)
        return answers.release(answer)

    def describe_releases(
        self, node_ids: Collection[int], patience_seconds: float
    ) -> dict[int, ReleaseRange | ClientError]:
        """Return the releases that each of several brokers may have, or an error for a broker without an answer."""
        seconds = min(patience_seconds, self._connection.timeout_seconds)

        async def release_of(
            manager: KafkaConnectionManager, node_id: int, deadline: float
        ) -> ReleaseRange | ClientError:
            answer = await _sent(manager, _features_request(), node_id, deadline)
            if isinstance(answer, KafkaError):
                return _failure("ApiVersions", answer, seconds)
            releases = answers.releases(answer)
            return releases or AdminRequestFailed("ApiVersions", None, f"node {node_id} answers as no broker does")

        return self._side_by_side(node_ids, seconds, release_of)

    def describe_brokers(self) -> RegisteredBrokers:
        """Return the brokers, including those that are down where the cluster reports them."""
        return answers.brokers(self._cluster(lambda: DescribeClusterRequest(include_fenced_brokers=True)))

    def describe_voters(self) -> QuorumVoters:
        """Return the controllers of the quorum; none when there is no quorum."""
        answer = self._quorum()
        if answer is None:
            return QuorumVoters(node_ids=(), nodes=())
        return answers.quorum_voters(answer)

    def describe_all_settings(
        self, node_ids: Collection[int], patience_seconds: float
    ) -> dict[int, BrokerSettings | ClientError]:
        """Return the settings of several brokers, asked concurrently, or an error for a broker without an answer."""
        seconds = min(patience_seconds, self._connection.timeout_seconds)

        async def one(manager: KafkaConnectionManager, node_id: int, deadline: float) -> BrokerSettings | ClientError:
            values: dict[str, str | None] = {}
            origins: dict[str, ConfigOrigin] = {}
            keys: Sequence[str] = answers.SETTINGS
            while keys:
                answer = await _sent(manager, _configs_request(node_id, keys), node_id, deadline)
                if isinstance(answer, KafkaError):
                    return _failure("DescribeConfigs", answer, seconds)
                try:
                    self._check("DescribeConfigs", answer)
                except ClientError as error:
                    return error
                answer_values = answers.configs(answer)
                keys = () if values else answers.listener_rate_keys(answer_values)
                values |= answer_values
                origins |= answers.config_origins(answer)
            try:
                return answers.settings(node_id, values, origins)
            except ClientError as error:
                return error

        return self._side_by_side(node_ids, seconds, one)

    def _side_by_side(
        self,
        node_ids: Collection[int],
        seconds: float,
        ask: Callable[[KafkaConnectionManager, int, float], Awaitable[_Value]],
    ) -> dict[int, _Value]:
        """Call `ask` for each broker concurrently until a deadline (steady time in seconds), and return the results."""
        with self._lock:
            manager = _manager(self._connected())

            async def ask_all() -> dict[int, _Value]:
                deadline = time.monotonic() + seconds
                if not {broker.node_id for broker in manager.cluster.brokers()}.issuperset(node_ids):
                    # the library refreshes its brokers every five minutes: one may be new, or was down at the last time
                    refresh = manager.call_soon(manager.cluster.refresh_metadata)
                    with suppress(KafkaError):
                        await manager.wait_for(refresh, _ONE_NODE_SECONDS * 1000)
                pending = {node_id: manager.call_soon(ask, manager, node_id, deadline) for node_id in node_ids}
                return {node_id: await answer for node_id, answer in pending.items()}

            results: dict[int, _Value] = manager.run(ask_all)
            return results

    def describe_quorum_leader(self) -> int | None:
        """Return the active controller, or None when there is no quorum."""
        answer = self._quorum()
        return None if answer is None else answers.quorum_leader(answer)

    def _quorum(self) -> answers.Answer | None:
        try:
            return self._ask("DescribeQuorum", _quorum_request)
        except UnsupportedByCluster:
            return None

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> None:
        """Set and remove quotas."""
        groups = answers.by_entity(changes)
        if groups:
            self._ask("AlterClientQuotas", lambda: _alter_request(groups))

    def close(self) -> None:
        """Close the connection, which ends a call under way."""
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
        self._check(name, answer)
        return answer

    def _ask_again(self, name: str, request: Callable[[], ApiMessage]) -> answers.Answer:
        """
        Send a request, and send it once more if the connection was lost.

        The broker may have restarted since the last call.
        """
        try:
            return self._send(request)
        except KafkaError as error:
            self._forget_unless_refused(name, error)
            raise AdminUnreachable(self._connection.bootstrap_servers, str(error)) from error

    def _forget_unless_refused(self, name: str, error: KafkaError) -> None:
        """Drop the connection after a connection error; raise any other error as one of ours."""
        if isinstance(error, UnsupportedVersionError):
            raise UnsupportedByCluster(name, answers.SINCE.get(name, "")) from error
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
        for candidate in _candidates(admin, self._last_node)[:-1]:
            manager = _manager(admin)
            deadline = time.monotonic() + _ONE_NODE_SECONDS
            answer = manager.run(_sent, manager, request(), candidate, deadline)
            if not isinstance(answer, KafkaError):
                self._last_node = candidate
                return cast("answers.Answer", answer)
        last_candidate = _candidates(admin, self._last_node)[-1:]
        return private_send(admin, message, last_candidate[0] if last_candidate else None)

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


def _failure(request: str, error: KafkaError, seconds: float) -> ClientError:
    """Return the error for a broker that gave no answer within some seconds."""
    if isinstance(error, _NO_ANSWER):
        return AdminTimeout(request, seconds)
    return AdminRequestFailed(request, getattr(error, "errno", None), str(error))


def _manager(admin: kafka.KafkaAdminClient) -> KafkaConnectionManager:
    manager: KafkaConnectionManager | None = getattr(admin, "_manager", None)
    if manager is None or not (hasattr(manager, "run") and hasattr(manager, "send")):
        raise UnsupportedByLibrary("kafka-python", __version__, "admin._manager.run and send")
    return manager


def _candidates(admin: kafka.KafkaAdminClient, preferred: int | None) -> list[int]:
    """Return the brokers to ask in order: the one that answered last, then connected ones, then the rest."""
    manager = _manager(admin)
    ids = [broker.node_id for broker in manager.cluster.brokers()]
    connected = {conn.node_id for conn in manager.least_used_connections()}
    return sorted(ids, key=lambda node_id: (node_id != preferred, node_id not in connected))[:_MOST_ASKED]


async def _sent(
    manager: KafkaConnectionManager, request: ApiMessage, node_id: int, deadline: float
) -> answers.Answer | KafkaError:
    """Return the answer of one broker, or an error if there is none before the deadline (steady time in seconds)."""
    remaining = max(0.0, deadline - time.monotonic())
    try:
        future = manager.send(request, node_id)
        answer: answers.Answer = (await manager.wait_for(future, remaining * 1000)).to_dict()
    except KafkaError as error:
        return error
    return answer


def private_send(admin: kafka.KafkaAdminClient, request: ApiMessage, node_id: int | None = None) -> answers.Answer:
    """
    Send one request, to one broker or to any, and wait for the answer, by a private method of the library.

    Raises `UnsupportedByLibrary` when the library has changed inside, and `KafkaError`.
    """
    manager = _manager(admin)
    answer: answers.Answer = manager.run(manager.send, request, node_id).to_dict()
    return answer


def connect(
    connection: Connection, make: Callable[..., kafka.KafkaAdminClient] = kafka.KafkaAdminClient
) -> kafka.KafkaAdminClient:
    """
    Return a connected client of the library, or of the kind that `make` returns for the configuration.

    Raises `AdminUnreachable`, `TlsFailed`, `CredentialsUnavailable`, `AuthenticationFailed` or `AdminTimeout`. The
    library itself tries a wrong password again and again until its time is over; here one attempt that fails is enough,
    and only silence is waited out.
    """
    check_reachable(connection)
    seconds = min(_FIRST_ATTEMPT_SECONDS, connection.timeout_seconds)
    remaining = list(connection.bootstrap_servers)
    failures: list[AdminUnreachable] = []
    # The library would spend all of the time on the first server that it chooses, even if that one hangs.
    for server in connection.bootstrap_servers[:_MOST_ASKED]:
        try:
            admin = _attempt(connection, (server,), make, seconds)
        except AdminUnreachable as failure:
            failures.append(failure)
            remaining.remove(server)
        else:
            if admin is not None:
                return admin
    if remaining:
        try:
            admin = _attempt(connection, remaining, make, connection.timeout_seconds)
        except AdminUnreachable as failure:
            failures.append(failure)
        else:
            if admin is not None:
                return admin
            if not failures:
                servers = ", ".join(connection.bootstrap_servers)
                raise AdminTimeout(f"connecting to Kafka at {servers}", connection.timeout_seconds)
            reason = f"no answer within {connection.timeout_seconds:g} s"
            failures.append(AdminUnreachable(remaining, reason))
    raise combined(connection, failures)


def _attempt(
    connection: Connection, servers: Sequence[str], make: Callable[..., kafka.KafkaAdminClient], seconds: float
) -> kafka.KafkaAdminClient | None:
    """Return a client of one of these servers, None if they do not respond. Raises an error if the login fails."""
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
    """Return the library's side of a SASL mechanism, in its initial state."""
    mechanism = get_sasl_mechanism(sasl.mechanism.on_the_wire)
    configs = _sasl_configs(sasl, connection.timeout_seconds)
    exchange: Exchange = mechanism(host=host, **configs)
    return exchange


def _bootstrap(
    connection: Connection, make: Callable[..., kafka.KafkaAdminClient], seconds: float
) -> kafka.KafkaAdminClient:
    """Return a connected client after one attempt; stop its threads when it fails, which the library does not do."""
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
    """Return the library's settings for a login; fetching a token takes about ``seconds`` at most."""
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
    """Token provider for the library, which asks for a token at each connection and before a session ends (KIP-368)."""

    def __init__(self, tokens: BearerTokens, seconds: float) -> None:
        self._tokens = tokens
        self._seconds = seconds

    def token(self) -> str:
        """Return a token that has not expired."""
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
