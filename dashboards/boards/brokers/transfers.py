"""Transfers beside those of clients: replication and remote storage."""

from __future__ import annotations

from quotascope.metrics import catalog

from ...model import Row
from ...scope import Scope
from ...shortcuts import graph
from .series import limit_of, of


def replication(scope: Scope) -> Row:
    """Replication under a throttle, and the throttle that was left on."""
    moved = graph(
        "Throttled replication",
        f"{catalog.REPLICATION_BYTES_PER_SECOND.help} A limit that stays after a reassignment slows down recovery.",
        "Bps",
        of(scope, catalog.REPLICATION_BYTES_PER_SECOND, "broker", "direction"),
        limit_of(scope, catalog.REPLICATION_LIMIT, "broker", "direction"),
    )
    return Row(title="Replication", panels=((24, moved),))


def remote_storage(scope: Scope) -> Row:
    """Tiered storage."""
    moved = graph(
        "Remote storage",
        catalog.REMOTE_STORAGE_BYTES_PER_SECOND.help,
        "Bps",
        of(scope, catalog.REMOTE_STORAGE_BYTES_PER_SECOND, "broker", "direction"),
        limit_of(scope, catalog.REMOTE_STORAGE_LIMIT, "broker", "direction"),
    )
    delay = graph(
        "Delay of remote storage",
        catalog.REMOTE_STORAGE_THROTTLE_SECONDS.help,
        "s",
        of(scope, catalog.REMOTE_STORAGE_THROTTLE_SECONDS, "broker", "direction"),
    )
    return Row(title="Remote storage", panels=((12, moved), (12, delay)))
