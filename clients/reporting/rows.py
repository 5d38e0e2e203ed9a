"""Rows of the catalog's families, read from an account."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from quotascope.metrics.catalog import (
    CLIENT_ADMIN_QUOTA_RETRIES,
    CLIENT_THROTTLE_MAX_SECONDS,
    CLIENT_THROTTLED_RESPONSES,
    CLIENT_THROTTLED_SECONDS,
    Family,
)

from ..accounting import ClientTotals, ThrottleAccount


class ClientReading(NamedTuple):
    """A family, and the function that reads its number from a client; None where the client has none."""

    family: Family
    number: Callable[[ClientTotals], float | None]

    def rows(self, account: ThrottleAccount) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield the label values and the number of each series. Text that UTF-8 cannot encode is escaped."""
        for totals in account.totals():
            value = self.number(totals)
            if value is not None:
                labels = totals.client._asdict()
                values = (_encodable(labels[name]) for name in self.family.labels)
                yield tuple(values), value


def _retries(totals: ClientTotals) -> float | None:
    return totals.quota_retries if totals.client.side == "admin" else None


READINGS: Final = (
    ClientReading(CLIENT_THROTTLED_SECONDS, lambda totals: totals.throttled_ms / 1_000),
    ClientReading(CLIENT_THROTTLED_RESPONSES, lambda totals: totals.responses),
    ClientReading(CLIENT_THROTTLE_MAX_SECONDS, lambda totals: totals.recent_longest_ms / 1_000),
    ClientReading(CLIENT_ADMIN_QUOTA_RETRIES, _retries),
)
"""Every family of a client, in the order of the catalog."""


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
