"""Chooses the adapter; the Kafka library is loaded here, when it is needed, and not before."""

from __future__ import annotations

import importlib.metadata

from .errors import LibraryMissing, UnsupportedByLibrary
from .quota_admin import QuotaAdmin
from .security import Connection


def open_quota_admin(connection: Connection) -> QuotaAdmin:
    """
    The Admin API of a cluster; its first call connects.

    Raises `LibraryMissing` when kafka-python is not installed, `UnsupportedByLibrary` when it is a version without quotas.
    """
    try:
        from .kafka_python import KafkaPythonAdmin  # noqa: PLC0415 - an optional library
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "kafka":
            raise LibraryMissing("kafka-python", "kafka") from error
        raise UnsupportedByLibrary(
            "kafka-python", _version(), f"something of {error.name}"
        ) from error
    return KafkaPythonAdmin(connection)


def _version() -> str:
    try:
        return importlib.metadata.version("kafka-python")
    except importlib.metadata.PackageNotFoundError:
        return "(unknown version)"
