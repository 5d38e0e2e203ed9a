"""Who was told throttle times: what failed attempts noted, and what others count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quotascope.clients.accounting import OVERFLOW, ClientTotals, ThrottleAccount

from .snapshot import QueryTotals

ThrottleReader = Callable[[], Iterable[QueryTotals]]
"""Tells absolute counts, which never go down, by the id of the query (empty for none)."""

_MOST_QUERIES = 200
_MOST_CLIENTS = 1_000


class ThrottleNotes:
    """Adds up the notes of failed attempts; of queries that come too late together, as `OVERFLOW`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts: dict[str, ThrottleAccount] = {}

    def add(self, query: str, totals: Iterable[ClientTotals]) -> None:
        """Count what one attempt was told."""
        if query not in self._accounts and len(self._accounts) >= _MOST_QUERIES:
            query = OVERFLOW
        account = self._accounts.get(query)
        if account is None:
            account = ThrottleAccount(_MOST_CLIENTS, self._clock)
            self._accounts[query] = account
        for each in totals:
            account.add(each)

    def totals(self) -> Iterator[QueryTotals]:
        """By id of the query."""
        for query, account in self._accounts.items():
            for totals in account.totals():
                yield query, totals


class LastRead:
    """What a reader last told; when it fails, that stands."""

    def __init__(self, read: ThrottleReader) -> None:
        self._read = read
        self._told: tuple[QueryTotals, ...] = ()

    def ask(self) -> bool:
        """Ask again; return whether it answered."""
        try:
            self._told = tuple(self._read())
        except Exception:  # noqa: BLE001 - a JVM or an executor may be gone
            return False
        return True

    @property
    def totals(self) -> tuple[QueryTotals, ...]:
        """Absolute counts, by id of the query."""
        return self._told


def summed(told: Iterable[QueryTotals]) -> tuple[QueryTotals, ...]:
    """The sums by query and client, sorted."""
    sums: dict[tuple[str, object], QueryTotals] = {}
    for query, totals in told:
        key = query, totals.client
        before = sums.get(key)
        sums[key] = query, totals if before is None else _plus(before[1], totals)
    return tuple(sorted(sums.values()))


def named(
    told: Iterable[QueryTotals], name: Callable[[str], str]
) -> Iterator[QueryTotals]:
    """The same by the names of queries."""
    return ((name(query), totals) for query, totals in told)


def _plus(one: ClientTotals, other: ClientTotals) -> ClientTotals:
    return ClientTotals(
        client=one.client,
        throttled_ms=one.throttled_ms + other.throttled_ms,
        responses=one.responses + other.responses,
        longest_ms=max(one.longest_ms, other.longest_ms),
        recent_longest_ms=max(one.recent_longest_ms, other.recent_longest_ms),
        quota_retries=one.quota_retries + other.quota_retries,
    )
