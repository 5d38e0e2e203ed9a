"""The folder that logs go into."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from ..request_log.schema import QUARANTINE, REQUESTS
from ..table import Layout, Table

BUCKETS: Final = 16
REQUESTS_LAYOUT: Final = Layout(
    order=("user", "client_id", "broker", "timestamp"),
    bucket_of="user",
    buckets=BUCKETS,
    day_of="timestamp",
)
"""As usage history lies, so that history needs no shuffle."""


class Tables(NamedTuple):
    """`requests` and `quarantine`."""

    requests: Table
    quarantine: Table

    @classmethod
    def create(cls, folder: str, options: Mapping[str, str] | None = None) -> Self:
        """Make them, or open those that are there; raises `TableError`. `options` are credentials, as of `Table`."""
        at = folder.rstrip("/")
        return cls(
            Table.create(f"{at}/requests", REQUESTS, REQUESTS_LAYOUT, options),
            Table.create(f"{at}/quarantine", QUARANTINE, Layout(), options),
        )
