"""Counts as plain values, which any pickle and any JSON holds."""

from __future__ import annotations

from typing import Any

from quotascope.clients.accounting import Client, ClientTotals

from .names import clipped

_SIDES = ("read", "write", "admin")
_MOST = 2**53
"""The largest whole number that every JSON holds."""


class StrangeRow(ValueError):
    """What came is no row of counts."""


def row(totals: ClientTotals) -> tuple[Any, ...]:
    """
    User, client id, side, throttled ms, responses, longest ms, quota retries: without what only the driver's clock can tell.

    They are Python's own types, whatever they were counted with: the driver may not have somebody's numpy.
    """
    counts = (
        totals.throttled_ms,
        totals.responses,
        totals.longest_ms,
        totals.quota_retries,
    )
    return (*map(str, totals.client), *map(int, counts))


def totals_of(values: object) -> ClientTotals:
    """The counts of a row. Raises `StrangeRow`."""
    if not isinstance(values, (list, tuple)) or len(values) != 7:  # noqa: PLR2004 - as `row`
        raise StrangeRow
    user, client_id, side, *counts = values
    if not isinstance(user, str) or not isinstance(client_id, str):
        raise StrangeRow
    if side not in _SIDES or not all(map(is_count, counts)):
        raise StrangeRow
    throttled_ms, responses, longest_ms, quota_retries = counts
    return ClientTotals(
        Client(clipped(user), clipped(client_id), side),
        throttled_ms,
        responses,
        longest_ms,
        quota_retries=quota_retries,
    )


def is_count(value: object) -> bool:
    """Whether it is a whole number of something."""
    return type(value) is int and 0 <= value <= _MOST
