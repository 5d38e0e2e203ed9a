"""Choice of the adapter; the Kafka library is imported when a connection is opened, not before."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import LibraryMissing, UnsupportedByLibrary

if TYPE_CHECKING:
    from .accounting import ThrottleAccount
    from .quota_admin import QuotaAdmin
    from .security import Connection
    from .topic_admin import TopicAdmin


def open_quota_admin(connection: Connection) -> QuotaAdmin:
    """
    Return the Admin API of a cluster; its first call connects.

    Raises `LibraryMissing` when kafka-python or a library of the login is not installed, `UnsupportedByLibrary` when it
    is a version without quotas.
    """
    with _library(connection):
        from .kafka_python import KafkaPythonAdmin  # noqa: PLC0415 - an optional library
    return KafkaPythonAdmin(connection)


def open_topic_admin(connection: Connection, account: ThrottleAccount) -> TopicAdmin:
    """
    Return the topics of a cluster; the first call connects.

    Waits and retries that quotas cause are counted in the account.

    Raises `LibraryMissing` and `UnsupportedByLibrary`, as `open_quota_admin`.
    """
    with _library(connection):
        from .throttled_admin.topics import KafkaPythonTopics  # noqa: PLC0415 - as above
    return KafkaPythonTopics(connection, account)


@contextmanager
def _library(connection: Connection) -> Iterator[None]:
    """Import kafka-python, and the library that the login needs, within the block: errors say what to install."""
    if connection.sasl is not None:
        from .login import check_library  # noqa: PLC0415 - it imports hashing and signing

        check_library(connection.sasl)
    try:
        yield
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "kafka":
            raise LibraryMissing("kafka-python") from error
        raise UnsupportedByLibrary("kafka-python", _version(), f"something of {error.name}") from error


def _version() -> str:
    try:
        return importlib.metadata.version("kafka-python")
    except importlib.metadata.PackageNotFoundError:
        return "(unknown version)"
