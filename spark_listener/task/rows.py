"""Counts of a client as plain values, for pickle and JSON, with names of bounded length."""

from __future__ import annotations

import hashlib
from typing import Any

from quotascope.clients.accounting import Client, ClientTotals

_SIDES = ("read", "write", "admin")
_LONGEST_NAME = 200
"""Characters of a user or a client-id that are kept."""
_MOST = 2**53
"""The largest whole number that every JSON holds."""


class UnreadableRow(ValueError):
    """Values that are not a row of counts."""


def row(totals: ClientTotals) -> tuple[Any, ...]:
    """
    Return user, client id, side, throttled ms, responses, longest ms, quota retries.

    Counts that depend on the driver's clock are left out.

    They are Python's own types, whatever they were counted with: the driver may lack the job's numpy.
    """
    counts = (
        totals.throttled_ms,
        totals.responses,
        totals.longest_ms,
        totals.quota_retries,
    )
    return (*map(str, totals.client), *map(int, counts))


def totals_of(values: object) -> ClientTotals:
    """Return the counts of a row. Raises `UnreadableRow`."""
    if not isinstance(values, (list, tuple)) or len(values) != 7:  # noqa: PLR2004 - as `row`
        raise UnreadableRow
    user, client_id, side, *counts = values
    if not isinstance(user, str) or not isinstance(client_id, str):
        raise UnreadableRow
    if side not in _SIDES or not all(map(is_count, counts)):
        raise UnreadableRow
    throttled_ms, responses, longest_ms, quota_retries = counts
    return ClientTotals(
        Client(clipped(user), clipped(client_id), side),
        throttled_ms,
        responses,
        longest_ms,
        quota_retries=quota_retries,
    )


def is_count(value: object) -> bool:
    """Return whether a value is a whole number that is not negative."""
    return type(value) is int and 0 <= value <= _MOST


def clipped(name: str) -> str:
    """
    Return the name, or its beginning and a checksum of the whole.

    Long names stay different, and are the same wherever they are cut.
    """
    if len(name) <= _LONGEST_NAME:
        return name
    checksum = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{name[: _LONGEST_NAME - len(checksum) - 1]}~{checksum}"
