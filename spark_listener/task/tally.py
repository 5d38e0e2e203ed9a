"""What the Kafka clients of one attempt at a task were told, on its way to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quotascope.clients.accounting import Client, ClientTotals, ThrottleAccount

from .attempt import Attempt
from .rows import row

VERSION = 1
"""Of what is sent: a driver leaves alone what it does not know."""
_MOST_CLIENTS = 100
"""A task has a few; those that come later are counted together."""


class Tally:
    """
    The counts of one attempt.

    It is the value of the task's accumulator, and turns into plain tuples when the worker pickles that at the end of a successful
    task: whatever is told until then is on its way, also by clients that outlive the scope.
    """

    def __init__(self, attempt: Attempt, query: str) -> None:
        self.attempt = attempt
        self.query = query
        self.account = ThrottleAccount(_MOST_CLIENTS)
        self._sent: dict[Client, ClientTotals] = {}

    def send(self) -> tuple[ClientTotals, ...]:
        """The counts so far, which are the receiver's affair from now on."""
        totals = self.account.totals()
        self._sent = {each.client: each for each in totals}
        return totals

    def take_over(self, before: Tally) -> None:
        """Count what clients of the task that ran here before were told too late to be sent with it."""
        for totals in before.rest():
            self.account.add(totals)

    def rest(self) -> Iterator[ClientTotals]:
        """What was told since it was sent."""
        for totals in self.account.totals():
            late = _minus(totals, self._sent.get(totals.client))
            if late.responses or late.quota_retries:
                yield late

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        rows = tuple(row(each) for each in self.send())
        return tuple, ((VERSION, self.attempt.stage, self.query, rows),)


def _minus(totals: ClientTotals, sent: ClientTotals | None) -> ClientTotals:
    if sent is None:
        return totals
    return totals._replace(
        throttled_ms=totals.throttled_ms - sent.throttled_ms,
        responses=totals.responses - sent.responses,
        quota_retries=totals.quota_retries - sent.quota_retries,
    )
