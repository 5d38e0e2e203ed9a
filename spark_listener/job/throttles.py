"""Throttle times by query and client, from notes of failed attempts and from the accumulator and the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quotascope.clients.accounting import OVERFLOW, ClientTotals, ThrottleAccount

from .snapshot import ClientKind, QueryTotals

ThrottleReader = Callable[[], Iterable[QueryTotals]]
"""Function that returns absolute counts, which never go down, by the id of the query (empty for none)."""

_MOST_QUERIES = 200
_MOST_CLIENTS = 1_000


class ThrottleNotes:
    """Sums of the notes of failed attempts. Queries beyond the cap are counted together, as `OVERFLOW`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts: dict[str, ThrottleAccount] = {}

    def add(self, query: str, totals: Iterable[ClientTotals]) -> None:
        """Count the throttle times of one attempt."""
        if query not in self._accounts and len(self._accounts) >= _MOST_QUERIES:
            query = OVERFLOW
        account = self._accounts.get(query)
        if account is None:
            account = ThrottleAccount(_MOST_CLIENTS, self._clock)
            self._accounts[query] = account
        for client_totals in totals:
            account.add(client_totals)

    def totals(self) -> Iterator[QueryTotals]:
        """Yield the counts by id of the query."""
        for query, account in self._accounts.items():
            for totals in account.totals():
                yield query, totals


class LastRead:
    """Last counts of a reader, which stay if it fails."""

    def __init__(self, reader: ThrottleReader, kind: ClientKind | None) -> None:
        self._read = reader
        self._kind = kind
        self.seen: ClientKind | None = None
        """Kind of the clients whose throttle times are all in `totals`; None until the reader has answered for them."""
        self.totals: tuple[QueryTotals, ...] = ()
        """Absolute counts, by id of the query."""

    def update(self) -> bool:
        """Call the reader, and return whether it succeeded."""
        try:
            self.totals = tuple(self._read())
        except Exception:  # noqa: BLE001 - a JVM or an executor may be gone
            return False
        if self._kind == "jvm" or self.totals:
            self.seen = self._kind
        return True


def summed(counts: Iterable[QueryTotals]) -> tuple[QueryTotals, ...]:
    """Return the sums by query and client, sorted."""
    sums: dict[tuple[str, object], QueryTotals] = {}
    for query, totals in counts:
        key = query, totals.client
        entry = sums.get(key)
        sums[key] = query, totals if entry is None else entry[1].plus(totals)
    return tuple(sorted(sums.values()))


def named(counts: Iterable[QueryTotals], name: Callable[[str], str]) -> Iterator[QueryTotals]:
    """Yield counts with the id of the query replaced by its name."""
    for query, totals in counts:
        yield name(query), totals
