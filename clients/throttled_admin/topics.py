"""Topics by `kafka_python.ThrottleAwareAdmin`. `TopicAdmin` describes the methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from kafka import KafkaAdminClient, errors

from quotascope.metrics.kafka.protocol import ErrorCode

from ..accounting import ThrottleAccount
from ..errors import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    ClientError,
    MutationThrottled,
    PermissionMissing,
)
from ..kafka_python import connect
from ..security import Connection
from ..topic_admin import TopicFound, TopicShape
from .kafka_python import ThrottleAwareAdmin
from .outcomes import Entry

_NOT_ALLOWED: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_NO_ANSWER: Final = (errors.KafkaTimeoutError, errors.RequestTimedOutError)
_DEFAULT: Final = -1
_Connect: TypeAlias = Callable[[], KafkaAdminClient]


class KafkaPythonTopics:
    """
    The topics of a cluster.

    Args:
        connection: how to reach it.
        account: where throttle times and what was repeated are counted.

    """

    def __init__(self, connection: Connection, account: ThrottleAccount) -> None:
        self._connection = connection
        self._user = connection.sasl.username if connection.sasl else ""
        make = partial(ThrottleAwareAdmin, account, user=self._user)
        self._connect: _Connect = partial(connect, connection, make)
        self._admin: KafkaAdminClient | None = None

    def find(self, name: str) -> TopicFound | None:
        """Return a topic; None when there is none of that name."""
        (entry,) = self._ask("Metadata", lambda admin: admin.describe_topics([name]))
        if entry["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        self._check("Metadata", "Describe", name, entry)
        replicas = [len(partition["replica_nodes"]) for partition in entry["partitions"]]
        return TopicFound(partitions=len(replicas), replication_factor=min(replicas, default=None))

    def create(self, name: str, shape: TopicShape, timeout_ms: int) -> TopicFound | None:
        """Create a topic, at the pace that quotas allow; None if another client created it meanwhile."""
        topic = {
            "num_partitions": shape.partitions or _DEFAULT,
            "replication_factor": shape.replication_factor or _DEFAULT,
            "configs": dict(shape.configs),
        }

        def ask(admin: Any) -> list[Entry]:  # noqa: ANN401 - half typed
            response: dict[str, list[Entry]] = admin.create_topics(
                {name: topic}, timeout_ms=timeout_ms, raise_errors=False
            )
            return response["topics"]

        (entry,) = self._ask("CreateTopics", ask)
        if entry["error_code"] == ErrorCode.TOPIC_ALREADY_EXISTS:
            return None
        if entry["error_code"] == ErrorCode.REQUEST_TIMED_OUT:
            raise AdminTimeout("CreateTopics", timeout_ms / 1_000)
        self._check("CreateTopics", "Create", name, entry)
        return TopicFound(
            partitions=_reported(entry, "num_partitions") or shape.partitions,
            replication_factor=_reported(entry, "replication_factor") or shape.replication_factor,
        )

    def close(self) -> None:
        """Close the connection."""
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def _ask(self, request: str, ask: Callable[[KafkaAdminClient], list[Entry]]) -> list[Entry]:
        if self._admin is None:
            self._admin = self._connect()
        try:
            return ask(self._admin)
        except errors.KafkaError as error:
            raise self._as_ours(request, error) from error

    def _as_ours(self, request: str, error: errors.KafkaError) -> ClientError:
        if isinstance(error, _NO_ANSWER):
            servers = ", ".join(self._connection.bootstrap_servers)
            return AdminTimeout(f"{request} of Kafka at {servers}", self._connection.timeout_seconds)
        if error.retriable:
            return AdminUnreachable(self._connection.bootstrap_servers, str(error))
        return AdminRequestFailed(request, getattr(error, "errno", None), str(error))

    def _check(self, request: str, operation: str, name: str, entry: Entry) -> None:
        """Raise an error if an answer has an error code for the topic."""
        code, message = entry["error_code"], entry.get("error_message")
        if code == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            raise MutationThrottled(request, entry.get("throttle_time_ms", 0), message)
        if code in _NOT_ALLOWED:
            raise PermissionMissing(
                request=request,
                operation=operation,
                username=self._user or None,
                topic=name,
                servers=self._connection.bootstrap_servers,
                is_secured=self._connection.protocol.is_secured,
            )
        if code:
            raise AdminRequestFailed(request, code, message or _described(code))


def _reported(entry: Entry, key: str) -> int | None:
    """Return a number of the answer, which is -1 without the permission to see it, and missing in old versions."""
    value = entry.get(key, _DEFAULT)
    return int(value) if value > 0 else None


def _described(code: int) -> str:
    return str(errors.for_code(code).__name__)
